use garret_core::gate::{Gate, Mode};
use jiff::civil::date;
use proptest::prelude::*;

use super::*;

fn told(text: &str) -> Vec<(String, String, bool)> {
    let seen = read(text);
    for statement in &seen.statements {
        let object = &text[statement.object_at.clone()];
        assert!(object.starts_with(statement.object.split(' ').next().unwrap()), "{statement:?}");
        let quote = &text[statement.quote_at.clone()];
        assert!(quote.contains(object), "{quote:?} {object:?}");
    }
    let tell = |statement: Statement| (statement.relation, statement.object, statement.ended);
    seen.statements.into_iter().map(tell).collect()
}

#[test]
fn what_users_say_of_themselves_is_found() {
    for (text, relation, object) in [
        ("I live in Oslo.", "lives_in", "Oslo"),
        ("I've just moved to New York, finally", "lives_in", "New York"),
        ("so i live in oslo now and work a lot", "lives_in", "oslo"),
        ("I'm currently based in Leeds because of work", "lives_in", "Leeds"),
        ("Hi! I\u{2019}m called Ada", "name", "Ada"),
        ("My name is Ada Lovelace and I need help", "name", "Ada Lovelace"),
        ("I work at Acme Corp", "works_at", "Acme Corp"),
        ("I'm a nurse.", "occupation", "nurse"),
        ("I am 34 years old", "age", "34"),
        ("I'm 34.", "age", "34"),
        ("I'm allergic to peanuts, so no nuts", "allergic_to", "peanuts"),
        ("I can't stand cilantro", "dislikes", "cilantro"),
        ("I really love hiking with my dog", "likes", "hiking with my dog"),
        ("My dog is called Rex.", "dog", "Rex"),
        ("my sister's name is Anna", "sister", "Anna"),
        ("My favorite colour is green", "favourite_colour", "green"),
        ("My rent is 900 euros", "rent", "900 euros"),
        ("My dentist appointment is on Tuesday", "dentist_appointment", "Tuesday"),
        ("Ich wohne in M\u{fc}nchen.", "lives_in", "M\u{fc}nchen"),
        ("Ich hei\u{df}e Bernd", "name", "Bernd"),
        ("Ich bin 40 Jahre alt", "age", "40"),
        ("J'habite \u{e0} Lyon", "lives_in", "Lyon"),
        ("Je m'appelle Chlo\u{e9}", "name", "Chlo\u{e9}"),
        ("J'ai 28 ans", "age", "28"),
        ("Vivo en Madrid", "lives_in", "Madrid"),
        ("Me llamo Luc\u{ed}a", "name", "Luc\u{ed}a"),
        (
            "\u{c800}\u{b294} \u{c11c}\u{c6b8}\u{c5d0} \u{c0b4}\u{c544}\u{c694}",
            "lives_in",
            "\u{c11c}\u{c6b8}",
        ),
        (
            "\u{79c1}\u{306f}\u{6771}\u{4eac}\u{306b}\u{4f4f}\u{3093}\u{3067}\u{3044}\u{307e}\u{3059}",
            "lives_in",
            "\u{6771}\u{4eac}",
        ),
    ] {
        let found = told(text);
        assert_eq!(found, [(relation.to_owned(), object.to_owned(), false)], "{text}");
    }
    let both = told("I'm Ada, I live in Oslo and I work as a chef.");
    let relations: Vec<_> = both.iter().map(|(relation, ..)| &**relation).collect();
    assert_eq!(relations, ["lives_in", "occupation"]);
}

#[test]
fn what_is_no_more_is_told_as_ended() {
    for (text, relation, object) in [
        ("I don't live in Oslo anymore", "lives_in", "Oslo"),
        ("i no longer work at Acme", "works_at", "Acme"),
        ("I'm not allergic to cats", "allergic_to", "cats"),
        ("I quit Acme last week", "works_at", "Acme"),
        ("Ich wohne nicht mehr in Bonn", "lives_in", "Bonn"),
        ("Je n'habite plus \u{e0} Lyon", "lives_in", "Lyon"),
        ("Ya no vivo en Madrid", "lives_in", "Madrid"),
    ] {
        assert_eq!(told(text), [(relation.to_owned(), object.to_owned(), true)], "{text}");
    }
    assert_eq!(told("No, I live in Oslo"), [("lives_in".into(), "Oslo".into(), false)]);
}

#[test]
fn what_users_do_not_say_of_themselves_is_not_found() {
    for text in [
        "Do I live in Oslo?",
        "Where do I live in your opinion",
        "If I live in Oslo, what do I pay?",
        "I wish I lived in Oslo",
        "She said \"I live in Oslo\" and left",
        "> I live in Oslo",
        "```\nI live in Oslo\n```",
        "I'd like a table",
        "I like it",
        "I have a question",
        "I'm a bit tired",
        "I used to live in Oslo",
        "i have an idea for the party",
        "My head is killing me",
        "my question is about Oslo",
        "The sky is blue",
        "call me later",
        "I'm 5 minutes away",
        "",
        "???",
    ] {
        assert_eq!(told(text), [], "{text}");
    }
}

#[test]
fn a_contradiction_needs_subject_relation_and_another_value() {
    let known = [
        KnownFact { subject: "user", relation: "lives_in", object: "Oslo" },
        KnownFact { subject: "user", relation: "likes", object: "coffee" },
        KnownFact { subject: "user", relation: "age", object: "34" },
        KnownFact { subject: "meeting", relation: "is", object: "Tuesday" },
    ];
    let clash = |text: &str| {
        let seen = read(text);
        seen.statements.iter().find_map(|statement| contradicted(statement, &known))
    };
    for text in [
        "I live in Bergen",
        "I don't live in Oslo any more",
        "I hate coffee",
        "I'm 35 years old",
        "The meeting is on Thursday",
    ] {
        assert!(clash(text).is_some(), "{text}");
    }
    // The first four are those that token overlap and numbers took for contradictions.
    for text in [
        "I don't like Mondays in Oslo",
        "I was in Oslo 3 times in 2019",
        "My rent is 900 euros",
        "I never drink coffee after 4",
        "I live in Oslo, Norway",
        "I like tea",
        "I don't live in Bergen",
        "The party is on Thursday",
    ] {
        assert_eq!(clash(text), None, "{text}");
    }
}

#[test]
fn spans_are_found_and_nothing_else() {
    let text = "See https://example.org/a?b=1, mail ada@example.org; 10.0.0.1:8080 or \
                550e8400-e29b-41d4-a716-446655440000 (www.example.org).";
    let kinds: Vec<_> = read(text).spans.iter().map(|span| span.kind).collect();
    use SpanKind::{Email, Ip, Url, Uuid};
    assert_eq!(kinds, [Url, Email, Ip, Uuid, Url]);
    let spans = read(text).spans;
    assert_eq!(&text[spans[0].at.clone()], "https://example.org/a?b=1");
    assert_eq!(&text[spans[2].at.clone()], "10.0.0.1:8080");
    assert_eq!(read("1.2.3 @ada a@b std::fmt 300.1.1.1 ab-cd").spans, []);
}

#[test]
fn dates_are_found_and_versions_are_not() {
    let dates = |text: &str| {
        let found = read(text).dates;
        found.iter().map(|date| (date.year, date.month, date.day)).collect::<Vec<_>>()
    };
    for (text, expected) in [
        ("due 2026-12-24.", (Some(2026), 12, 24)),
        ("am 24.12.2026 um 8", (Some(2026), 12, 24)),
        ("12/24/2026", (Some(2026), 12, 24)),
        ("on 24 December 2026", (Some(2026), 12, 24)),
        ("on December 24th, 2026", (Some(2026), 12, 24)),
        ("on Dec 24", (None, 12, 24)),
        ("am 24. Dezember", (None, 12, 24)),
        ("le 24 d\u{e9}cembre 2026", (Some(2026), 12, 24)),
        ("el 24 de diciembre de 2026", (Some(2026), 12, 24)),
        ("2026\u{b144} 12\u{c6d4} 24\u{c77c}\u{c5d0}", (Some(2026), 12, 24)),
        ("2026\u{5e74}12\u{6708}24\u{65e5}\u{306b}", (Some(2026), 12, 24)),
        ("12\u{6708}24\u{65e5}", (None, 12, 24)),
        ("29 February", (None, 2, 29)),
    ] {
        assert_eq!(dates(text), [expected], "{text}");
    }
    for text in [
        "version 1.12.2026.4",
        "3.11.2",
        "31.02.2026",
        "may 5 of them",
        "2026-13-01",
        "24/7",
        "9:00",
        "1e10",
        "I may 3 times",
    ] {
        assert_eq!(dates(text), [], "{text}");
    }
}

#[test]
fn dates_without_a_year_are_the_next_ones() {
    let today = date(2026, 11, 30);
    let found = |text: &str| read(text).dates[0].resolve(today).unwrap();
    assert_eq!(found("Dec 24"), date(2026, 12, 24));
    assert_eq!(found("3 June"), date(2027, 6, 3));
    assert_eq!(found("29 February"), date(2028, 2, 29));
}

#[test]
fn cues_are_read_in_several_languages() {
    for text in
        ["what's the latest news", "Was gibt es heute?", "\u{c624}\u{b298} \u{b0a0}\u{c528}"]
    {
        assert!(read(text).freshness, "{text}");
    }
    for text in ["install the latest version", "currentness", "how do bees fly?"] {
        assert!(!read(text).freshness, "{text}");
    }
    for text in ["what about the other one?", "why is that", "\u{305d}\u{308c}\u{306f}\u{4f55}"] {
        assert!(read(text).anaphora > 0.0, "{text}");
    }
    for text in ["thanks, that helps", "how long does it take to boil an egg", "what is rust"] {
        assert_eq!(read(text).anaphora, 0.0, "{text}");
    }
    assert_eq!(read("I'm not sure if I should go").hedge, 1.0);
    assert_eq!(read("vielleicht sp\u{e4}ter").hedge, 0.5);
    assert_eq!(read("boil two eggs").hedge, 0.0);
    assert_eq!(read("My oven just died and guests are coming").oblique, 1.0);
    assert_eq!(read("My oven died. Can you find a recipe without one?").oblique, 0.0);
    assert!(read("don't do it").negation && !read("do it").negation);
}

#[test]
fn words_are_counted_in_scripts_without_spaces_too() {
    assert_eq!(read("It's one, two; three!").words, 4);
    assert_eq!(read("\u{79c1}\u{306f}\u{6771}\u{4eac}\u{306b}\u{4f4f}\u{3093}\u{3067}").words, 2);
}

#[test]
fn a_quoted_statement_does_not_reach_the_gate() {
    let quoted = read("> I live in Bergen").signals();
    assert!(!quoted.personal);
    let mut gate = Gate::default();
    assert!(!gate.decide(Mode::ColdStart, &quoted).extract);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 512, ..Default::default() })]

    /// Every sensor gives something that lies in the text.
    #[test]
    fn no_text_breaks_a_sensor(
        parts in prop::collection::vec(prop_oneof![
            any::<String>(), "[ -~]{0,20}", "(I|my|no|not|live|in|is|'|\u{2019}|\"|`|>|\n|\\.|,|\u{201c}| ){0,20}",
            "[0-9./: -]{0,20}", "[\u{6708}\u{65e5}\u{5e74}\u{b144}\u{c6d4}\u{c77c}0-9 ]{0,9}",
            Just("I live in ".to_owned()), Just("my \u{130}\u{df}x is ".to_owned()),
        ], 0..8),
    ) {
        let text = parts.concat();
        let seen = read(&text);
        for statement in &seen.statements {
            prop_assert!(text.get(statement.quote_at.clone()).is_some());
            prop_assert!(text.get(statement.object_at.clone()).is_some());
        }
        for at in seen.dates.iter().map(|date| &date.at).chain(seen.spans.iter().map(|s| &s.at)) {
            prop_assert!(text.get(at.clone()).is_some());
        }
        for date in &seen.dates {
            date.resolve(jiff::civil::date(2026, 11, 30));
        }
        for sure in [seen.anaphora, seen.hedge, seen.oblique] {
            prop_assert!((0.0..=1.0).contains(&sure));
        }
        Gate::default().decide(Mode::ColdStart, &seen.signals());
    }
}
