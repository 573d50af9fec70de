//! `garret memory forget`: said beforehand, done for good, proved afterwards.

use std::process::{Command, Output};

use garret_tests::program::{failed, feed, garret, only, stderr, stdout, succeeded};
use garret_tests::wire::objects;
use serde_json::{Value, json};
use tempfile::TempDir;

fn memory(home: &TempDir, args: &[&str]) -> Command {
    let mut command = garret(home.path());
    command.env("GARRET_DATA", home.path().join("data")).env("TZ", "UTC").arg("memory").args(args);
    command
}

fn ran(home: &TempDir, args: &[&str]) -> Output {
    memory(home, args).output().unwrap()
}

fn told(home: &TempDir, args: &[&str]) -> String {
    succeeded(&ran(home, args))
}

fn value(home: &TempDir, args: &[&str]) -> Value {
    only(objects(&told(home, &[args, &["--json"]].concat())))
}

const LINES: &str = r#"{"session":"kitchen","speaker":"user","text":"The safe opens with Nebukadnezar.","id":"1"}
{"session":"kitchen","speaker":"assistant","text":"I keep nebukadnezar in mind.","id":"2"}
{"session":"kitchen","speaker":"user","text":"The bees are well.","id":"3"}
{"session":"hall","speaker":"Ada","text":"The lamp is green.","id":"4"}
"#;

/// A secret in a message, its reply, a fact and the lines that were typed, beside other things.
fn home() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    succeeded(&feed(&mut memory(&home, &["import", "-"]), LINES.as_bytes()));
    told(&home, &["add", "NEBUKADNEZAR is the word for the safe."]);
    told(&home, &["add", "The shed is locked."]);
    let typed = home.path().join("data/default.history");
    std::fs::write(typed, "#V2\nThe safe opens with Nebukadnezar.\nThe bees are well.\n").unwrap();
    home
}

fn ids(report: &Value) -> Vec<(&str, &str)> {
    let items = report["items"].as_array().unwrap().iter();
    items.map(|item| (item["kind"].as_str().unwrap(), item["id"].as_str().unwrap())).collect()
}

/// Every file of the namespace as one text.
fn everything(home: &TempDir) -> String {
    let files = std::fs::read_dir(home.path().join("data")).unwrap();
    let bytes = files.flat_map(|file| std::fs::read(file.unwrap().path()).unwrap());
    String::from_utf8_lossy(&bytes.collect::<Vec<_>>()).to_lowercase()
}

#[test]
fn words_are_forgotten_in_every_place_they_are_in() {
    let home = home();
    let before = everything(&home);
    assert!(before.contains("nebukadnezar"));
    let found = ran(&home, &["verify", "--erased", "Nebukadnezar"]);
    assert_eq!(found.status.code(), Some(1));
    let told_of = stdout(&found);
    assert!(told_of.contains("kitchen/1/user: not forgotten"), "{told_of}");
    assert!(told_of.contains("default.history: a line that was typed"), "{told_of}");

    let dry = value(&home, &["forget", "--match", "nebukadnezar"]);
    let gone = [("turn", "kitchen/1/user"), ("reply", "kitchen/1/assistant"), ("fact", "f1")];
    for item in gone {
        assert!(ids(&dry).contains(&item), "{dry}");
    }
    assert_eq!((&dry["dry_run"], &dry["erasure"]), (&json!(true), &Value::Null));
    assert_eq!(everything(&home), before, "asking changes nothing");
    assert!(stderr(&ran(&home, &["forget", "--match", "nebukadnezar"])).contains("--yes"));

    let done = value(&home, &["forget", "--match", "nebukadnezar", "--yes"]);
    assert_eq!(ids(&done), ids(&dry));
    assert_eq!((&done["dry_run"], &done["erasure"]), (&json!(false), &json!(1)));
    assert_eq!(done["unfinished"], Value::Null);
    assert!(!everything(&home).contains("nebukadnezar"));
    let proof = value(&home, &["verify", "--erased", "Nebukadnezar"]);
    assert_eq!(proof, json!({"erased": true, "traces": []}));
    assert!(told(&home, &["verify"]).starts_with("Nothing is wrong"));

    let found = value(&home, &["search", "safe Nebukadnezar bees lamp shed"]);
    let left: Vec<_> = found["hits"].as_array().unwrap().iter().map(|hit| &hit["id"]).collect();
    assert!(left.contains(&&json!("kitchen/2/user")), "{found}");
    assert!(!left.contains(&&json!("kitchen/1/user")), "{found}");
    assert!(everything(&home).contains("the bees are well."), "other words stay");
    failed(&ran(&home, &["get", "kitchen/1/user"]), 1);
    failed(&ran(&home, &["get", "f1"]), 1);
    let ledger = value(&home, &["ledger"]);
    assert_eq!([&ledger["number"], &ledger["turns"], &ledger["facts"]], [1, 1, 1]);
    assert!(told(&home, &["ledger"]).starts_with("1. "));
    let again = ran(&home, &["forget", "--match", "nebukadnezar", "--yes"]);
    assert!(stderr(&again).contains("nothing to forget"), "{again:?}");
}

#[test]
fn facts_turns_and_sessions_are_forgotten_by_name() {
    let home = home();
    let done = value(&home, &["forget", "f2", "kitchen/2/user", "--session", "hall", "--yes"]);
    for item in [("fact", "f2"), ("turn", "kitchen/2/user"), ("session", "hall")] {
        assert!(ids(&done).contains(&item), "{done}");
    }
    let stats = value(&home, &["stats"]);
    assert_eq!((&stats["sessions"], &stats["facts"]["all"]), (&json!(1), &json!(1)));
    let left = everything(&home);
    for gone in ["the bees are well", "the lamp is green", "the shed is locked", "ada"] {
        assert!(!left.contains(gone), "{gone}");
    }
    assert!(left.contains("nebukadnezar"));
}

#[test]
fn what_can_not_be_forgotten_is_refused() {
    let home = home();
    let refused = |args: &[&str], code| failed(&ran(&home, args), code);
    refused(&["forget"], 2);
    refused(&["forget", "--yes"], 2);
    assert!(refused(&["forget", "f9"], 1).contains("f9"));
    assert!(refused(&["forget", "cellar/1/user"], 1).contains("cellar"));
    assert!(refused(&["forget", "--session", "cellar", "--yes"], 1).contains("cellar"));
    assert!(refused(&["forget", "nonsense"], 1).contains("is no id"));
    let blank = refused(&["forget", "--match", "  "], 1);
    assert!(!blank.is_empty());
    let stats = value(&home, &["stats"]);
    assert_eq!((&stats["sessions"], &stats["facts"]["all"]), (&json!(2), &json!(2)));
}

#[test]
fn a_vacuum_leaves_what_is_there() {
    let home = home();
    let long = "word ".repeat(20_000);
    succeeded(&feed(&mut memory(&home, &["add", "-"]), long.as_bytes()));
    told(&home, &["forget", "f3", "--yes"]);
    let sizes = value(&home, &["vacuum"]);
    assert!(sizes["bytes_after"].as_u64() <= sizes["bytes_before"].as_u64(), "{sizes}");
    // The name of before this one: scripts of then still run.
    assert!(value(&home, &["compact"])["bytes_after"].is_u64());
    assert!(!told(&home, &["--help"]).contains("compact"));
    assert!(told(&home, &["verify"]).starts_with("Nothing is wrong in 2 sessions, 3 turns"));
}
