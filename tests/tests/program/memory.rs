//! `garret memory search`, as its users run it: no model is there, and none is needed.

use std::process::Command;

use garret_core::time::{Confidence, WallTime};
use garret_hal::media::FileMedium;
use garret_storage::Store;
use garret_tests::program::{failed, garret, only, stderr, stdout, succeeded};
use garret_tests::talk::tell;
use garret_tests::wire::{Hit, Searched, objects};
use tempfile::TempDir;

const MAY_8: i64 = 1_683_554_160_000;
const DAY: i64 = 86_400_000;

/// A home in which this was said.
fn home() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(&home.path().join("data"), "default", |path| {
        Ok(Box::new(FileMedium::open(path)?))
    });
    let store = store.unwrap();
    for (number, (session, user, reply)) in SAID.iter().enumerate() {
        let session = session.parse().unwrap();
        let unix_ms = MAY_8 + number as i64 * 30 * DAY;
        let at = WallTime { unix_ms, confidence: Confidence::Good };
        tell(&store, &session, user, reply, at);
    }
    home
}

const SAID: [(&str, &str, &str); 4] = [
    ("garden", "I planted tomatoes behind the shed.", "Water them in the evening."),
    ("bees", "My bees swarmed yesterday!", "Did you catch\nthe swarm\u{1b}[31m?"),
    ("bees", "Yes, it sits in the oak. I read about it in C++ news.", "Hang up a lure box."),
    ("caf\u{e9}", "Nous avons mang\u{e9} les pommes dans le jardin.", "Bon app\u{e9}tit!"),
];

fn search(home: &TempDir, args: &[&str]) -> Command {
    let mut command = garret(home.path());
    command.env("GARRET_DATA", home.path().join("data")).env("TZ", "UTC");
    command.args(["memory", "search"]).args(args);
    command
}

fn found(home: &TempDir, args: &[&str]) -> Searched {
    let output = search(home, &[&["--json"], args].concat()).output().unwrap();
    only(objects(&succeeded(&output)))
}

fn ids(searched: &Searched) -> Vec<&str> {
    searched.hits.iter().map(|hit| hit.id.as_str()).collect()
}

#[test]
fn a_message_is_found_with_all_there_is_to_know_of_it() {
    let home = home();
    let searched = found(&home, &["when did the bee swarm?"]);
    assert_eq!(searched.searched, 8);
    let hit = &searched.hits[0];
    let Hit { id, text, score, source, session, turn, valid_at, valid_to, parts } = hit;
    assert_eq!((id.as_str(), text.as_str()), ("bees/1/user", "My bees swarmed yesterday!"));
    assert_eq!((source.as_str(), session.as_deref(), *turn), ("user", Some("bees"), Some(1)));
    assert_eq!(valid_at.as_deref(), Some("2023-06-07 13:56:00 +00:00"));
    assert_eq!(valid_to, &None);
    assert!((0.0..=1.0).contains(score) && parts["relevance"] == *score, "{hit:?}");
    assert!(parts["words"] > 0.0 && parts["when"] > 0.0 && parts["question"] == 0.0, "{hit:?}");
    let scores: Vec<_> = searched.hits.iter().map(|hit| hit.score).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
}

#[test]
fn people_read_where_when_and_what() {
    let home = home();
    let output = search(&home, &["swarms", "--k", "3"]).output().unwrap();
    let text = succeeded(&output);
    assert!(text.contains("bees, turn 1, user, 2023-06-07 13:56:00 +00:00 ("), "{text}");
    assert!(text.contains("   My bees swarmed yesterday!\n"), "{text}");
    assert!(
        text.contains("   Did you catch the swarm\u{241b}[31m?\n"),
        "it can't drive a terminal"
    );
    assert_eq!(text.lines().count(), 6, "{text}");
    let output = search(&home, &["swarms", "--k", "1", "--explain"]).output().unwrap();
    assert!(succeeded(&output).contains("   = words "), "{output:?}");
}

#[test]
fn hits_are_as_many_and_from_where_they_were_asked_for() {
    let home = home();
    assert_eq!(found(&home, &["bees", "--k", "1"]).hits.len(), 1);
    let one = found(&home, &["shed swarm", "--session", "garden"]);
    assert_eq!(one.searched, 2);
    assert!(
        !one.hits.is_empty() && one.hits.iter().all(|hit| hit.session.as_deref() == Some("garden")),
        "{one:?}"
    );
    assert_eq!(ids(&found(&home, &["manger pomme"]))[0], "caf\u{e9}/1/user");
    assert_eq!(ids(&found(&home, &["C++"]))[0], "bees/2/user");
    assert_eq!(ids(&found(&home, &["in May 2023"]))[0].split('/').next(), Some("garden"));
}

#[test]
fn nothing_is_found_for_nonsense_and_no_query_is_an_error() {
    let home = home();
    for query in ["zxqv wlkj", "", "the of and", "???", "\"", "OR", "NEAR(", "*", "'; --"] {
        let output = search(&home, &[query]).output().unwrap();
        assert_eq!(succeeded(&output), "", "{query}");
        assert!(stderr(&output).contains("Nothing found in 8 messages and facts"), "{query}");
        let searched = found(&home, &[query]);
        assert_eq!((searched.hits.len(), searched.searched), (0, 8), "{query}");
    }
    for query in ["bees AND NOT (", "\"bees", "bees*", "text:bees", "-40 bees", "{bees} ~2"] {
        assert_eq!(ids(&found(&home, &[query]))[0], "bees/1/user", "{query}");
    }
    assert_eq!(ids(&found(&home, &["--", "--bees"])), ["bees/1/user"]);
}

#[test]
fn what_can_not_be_searched_is_refused() {
    let refused = |home: &TempDir, args: &[&str], code| {
        let output = search(home, args).output().unwrap();
        assert_eq!(stdout(&output), "", "{args:?}");
        failed(&output, code)
    };
    let home = home();
    let unknown = refused(&home, &["bees", "--session", "cellar"], 1);
    assert!(unknown.contains("`cellar`") && unknown.contains("garret session list"), "{unknown}");
    let elsewhere = refused(&home, &["bees", "--namespace", "other"], 1);
    assert!(elsewhere.contains("`other`"), "{elsewhere}");
    refused(&home, &["bees", "--k", "0"], 2);
    refused(&home, &[], 2);
    let empty = tempfile::tempdir().unwrap();
    assert!(refused(&empty, &["bees"], 1).contains("nothing is stored"));
    assert!(!empty.path().join("data").exists(), "looking leaves nothing behind");
}

/// Facts are found beside messages, as they were at any moment, and everything can be narrowed down.
#[test]
fn facts_are_found_and_filters_hold() {
    let home = home();
    let memory = |args: &[&str]| {
        let mut command = garret(home.path());
        command.env("GARRET_DATA", home.path().join("data")).env("TZ", "UTC").arg("memory");
        succeeded(&command.args(args).output().unwrap())
    };
    let lives = ["--subject", "user", "--predicate", "lives_in", "--object"];
    for (place, from) in [("Oslo", "2020-01-01"), ("Bergen", "2024-06-01")] {
        let text = format!("I live in {place} by the harbour.");
        memory(&[&["add", &text, "--valid-at", from], &lives[..], &[place]].concat());
    }
    let query = "where do I live by the harbour";
    assert_eq!(ids(&found(&home, &[query]))[0], "f2");
    assert!(!ids(&found(&home, &[query])).contains(&"f1"), "what was replaced isn't true now");
    let then = found(&home, &[query, "--as-of", "2022-01-01"]);
    assert_eq!(ids(&then)[0], "f1");
    assert!(!ids(&then).contains(&"f2"), "{then:?}");
    let hit = &then.hits[0];
    assert_eq!((hit.session.as_deref(), hit.turn, hit.source.as_str()), (None, None, "user"));
    assert_eq!(hit.valid_at.as_deref(), Some("2020-01-01 00:00:00 +00:00"));
    assert_eq!(hit.valid_to.as_deref(), Some("2024-06-01 00:00:00 +00:00"));
    for part in ["relevance", "recency", "importance", "words", "meaning"] {
        assert!(hit.parts.contains_key(part), "{part}");
    }
    assert!(ids(&found(&home, &[query, "--replaced"])).contains(&"f1"));
    let before = found(&home, &["bees swarm", "--as-of", "2023-01-01"]);
    assert!(before.hits.is_empty(), "nothing had been said: {before:?}");
    let bees = |args: &[&str]| {
        let found = found(&home, &[&["bees swarm harbour"], args].concat());
        found.hits.into_iter().map(|hit| hit.id).collect::<Vec<_>>()
    };
    let all = bees(&[]);
    assert!(all.contains(&"f2".into()) && all.contains(&"bees/1/assistant".into()), "{all:?}");
    assert!(bees(&["--source", "assistant"]).iter().all(|id| id.ends_with("/assistant")));
    assert!(!bees(&["--source", "assistant"]).is_empty());
    assert_eq!(bees(&["--source", "nobody"]), [""; 0]);
    assert_eq!(bees(&["--kind", "fact"]), ["f2"]);
    assert_eq!(bees(&["--kind", "supersedes"]), bees(&["--kind", "fact"]));
    assert!(bees(&["--kind", "message"]).iter().all(|id| id.contains('/')));
}

/// Searching writes nothing.
#[test]
fn the_store_is_left_as_it_is() {
    let home = home();
    let file = home.path().join("data/default.redb");
    let before = std::fs::read(&file).unwrap();
    found(&home, &["bees"]);
    assert!(std::fs::read(&file).unwrap() == before);
}
