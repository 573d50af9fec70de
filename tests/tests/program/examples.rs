//! The examples: each runs as its page says and shows what it promises.

use std::process::Command;

use garret_tests::program::{Place, built, succeeded};

/// Runs an example that needs nothing, and returns what it prints.
fn run(name: &str) -> String {
    let output = Command::new(built(name)).env_clear().output().expect("the example starts");
    succeeded(&output)
}

#[track_caller]
fn assert_lines(shown: &str, lines: &[&str]) {
    for line in lines {
        assert!(shown.lines().any(|shown| shown.contains(line)), "{line:?} isn't in:\n{shown}");
    }
}

#[test]
fn memory_without_a_model_finds_dates_and_forgets() {
    let lines = [
        "found garden/1/user: The bees swarmed, they hang in the oak.",
        "known f1: I live in Oslo.",
        "known f2: I moved to Bergen., now",
        "on day 5: I live in Oslo.",
        "would forget garden/2/user",
        "traces of it: 0",
    ];
    assert_lines(&run("garret-remember-and-search"), &lines);
}

#[test]
fn what_is_imported_is_exported_and_imported_again() {
    let lines = [
        "3 taken in",
        "0 taken in again",
        "exported: 1 session, 2 turns",
        "imported again: letters is letters-2",
        r#""speaker":"Ada","text":"The bees have swarmed.""#,
    ];
    assert_lines(&run("garret-import-and-export"), &lines);
}

#[test]
fn tools_answer_people_and_models() {
    let shown = run("garret-tools");
    let lines = ["garden/2: We took them home", "garden/1/user: The bees", "seven hives"];
    assert_lines(&shown, &lines);
    assert!(!shown.contains("<<"), "{shown}");
}

#[test]
fn a_message_is_answered_and_counted() {
    let Some(place) = Place::new() else { return };
    let first = succeeded(&place.program("garret-ask", &["Hello"]).output().unwrap());
    assert_lines(&first, &["[turn 1: "]);
    let second = succeeded(&place.program("garret-ask", &["And", "again"]).output().unwrap());
    assert_lines(&second, &["[turn 2: "]);

    let counted = succeeded(&place.program("garret-statistics", &[]).output().unwrap());
    assert_lines(
        &counted,
        &["1 sessions, 2 turns, 2 replies", "example: 2 turns", "nothing is wrong"],
    );
}

#[test]
fn a_model_of_ones_own_sees_the_conversation_grow() {
    let shown = run("garret-own-model");
    let lengths: Vec<u32> = shown
        .lines()
        .filter_map(|line| line.trim().strip_suffix(" tokens of prompt")?.parse().ok())
        .collect();
    assert!(matches!(lengths[..], [first, second] if first < second), "{shown}");
    assert_lines(&shown, &[&format!("-> I was shown {} tokens.", lengths[1])]);
}

#[test]
fn receipts_add_up_and_name_what_the_cache_saved() {
    let Some(place) = Place::new() else { return };
    let messages = ["My name is Ada and I live in Oslo.", "What is my name?"];
    let mut command = place.program("garret-receipts", &messages);
    let shown = succeeded(&command.output().unwrap());
    assert_lines(&shown, &["> What is my name?", "others were in the cache", "2 facts found"]);
    let number =
        |line: &str| line.split_whitespace().nth(1).and_then(|word| word.parse::<u32>().ok());
    let (first, second) = shown.split_once("> What").unwrap();
    for turn in [first, second] {
        let blocks =
            ["system", "tracked", "history", "time", "pinned", "carry", "memory", "message"];
        let of = |name: &str| {
            turn.lines().find(|line| line.trim_start().starts_with(name)).and_then(number)
        };
        let sum: u32 = blocks.iter().filter_map(|name| of(name)).sum();
        assert_eq!(Some(sum), of("prompt"), "{turn}");
    }
}
