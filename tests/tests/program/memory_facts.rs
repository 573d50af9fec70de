//! `garret memory`: facts, and conversations held elsewhere, on a program that has no model.

use std::process::{Command, Output};

use garret_tests::program::{failed, feed, garret, only, stderr, stdout, succeeded};
use garret_tests::wire::objects;
use serde::Deserialize;
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

/// A fact on the wire.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "every field must be there")]
struct Fact {
    id: String,
    text: String,
    kind: String,
    source: String,
    inferred: bool,
    session: Option<String>,
    turn: Option<u64>,
    quote: Option<String>,
    grounded: bool,
    subject: Option<String>,
    predicate: Option<String>,
    object: Option<String>,
    valid_at: String,
    valid_to: Option<String>,
    superseded_by: Option<String>,
    invalidated_by: Option<String>,
    latest: bool,
    stage: String,
    recorded_at: String,
    salience: f32,
    confidence: f32,
    pinned: String,
}

fn fact(home: &TempDir, id: &str) -> Fact {
    only(objects(&told(home, &["get", id, "--json"])))
}

fn ids(page: &Value) -> Vec<&str> {
    page["facts"].as_array().unwrap().iter().map(|fact| fact["id"].as_str().unwrap()).collect()
}

const OSLO: [&str; 10] = [
    "add",
    "I live in Oslo.",
    "--subject",
    "user",
    "--predicate",
    "lives_in",
    "--object",
    "Oslo",
    "--valid-at",
    "2020-01-01",
];

fn bergen(home: &TempDir) -> Value {
    let args = ["add", "I moved to Bergen.", "--subject", "user", "--predicate", "lives_in"];
    value(home, &[&args[..], &["--object", "Bergen", "--valid-at", "2024-06-01 12:30"]].concat())
}

#[test]
fn a_fact_is_stored_shown_and_replaced_by_a_newer_one() {
    let home = tempfile::tempdir().unwrap();
    assert_eq!(told(&home, &OSLO), "f1\n");
    let added = bergen(&home);
    assert_eq!(added, json!({"id": "f2", "stored": true, "superseded": ["f1"], "invalidated": []}));
    let old = fact(&home, "f1");
    assert_eq!((old.valid_at.as_str(), old.latest), ("2020-01-01 00:00:00 +00:00", false));
    assert_eq!(old.valid_to.as_deref(), Some("2024-06-01 12:30:00 +00:00"));
    assert_eq!(old.superseded_by.as_deref(), Some("f2"));
    let new = fact(&home, "f2");
    assert_eq!((new.text.as_str(), new.source.as_str()), ("I moved to Bergen.", "user"));
    assert_eq!((new.subject.as_deref(), new.object.as_deref()), (Some("user"), Some("Bergen")));
    assert_eq!((new.predicate.as_deref(), new.latest), (Some("lives_in"), true));
    assert_eq!(new.stage, "fresh");
    assert_eq!(told(&home, &["history", "f2"]).lines().count(), 2);
    assert!(told(&home, &["history", "f1"]).starts_with("f1     2020-01-01 - 2024-06-01  user "));
    assert!(told(&home, &["get", "f1"]).contains("superseded by  f2\n"));
    let again = value(&home, &[&OSLO[..8], &["--valid-at", "2021-01-01"]].concat());
    assert_eq!((&again["id"], &again["stored"]), (&json!("f1"), &json!(false)));
}

#[test]
fn lists_have_filters_and_pages() {
    let home = tempfile::tempdir().unwrap();
    told(&home, &OSLO);
    bergen(&home);
    told(&home, &["add", "The boiler needs water.", "--source", "manual.pdf"]);
    told(&home, &["add", "Ada likes tea.", "--source", "assistant", "--inferred"]);
    let list = |args: &[&str]| value(&home, &[&["list"], args].concat());
    assert_eq!(ids(&list(&[])), ["f1", "f2", "f3", "f4"]);
    assert_eq!(ids(&list(&["--latest"])), ["f2", "f3", "f4"]);
    assert_eq!(ids(&list(&["--as-of", "2022-01-01"])), ["f1"]);
    assert_eq!(ids(&list(&["--source", "manual.pdf"])), ["f3"]);
    assert_eq!(ids(&list(&["--subject", "user", "--predicate", "lives_in"])), ["f1", "f2"]);
    assert_eq!(ids(&list(&["--kind", "derives"])), ["f4"]);
    let first = list(&["--limit", "3"]);
    assert_eq!((ids(&first), &first["next"]), (vec!["f1", "f2", "f3"], &json!("f3")));
    let last = list(&["--limit", "3", "--after", "f3"]);
    assert_eq!((ids(&last), &last["next"]), (vec!["f4"], &Value::Null));
    assert!(stderr(&ran(&home, &["list", "--limit", "1"])).contains("--after f1"));
    assert!(stderr(&ran(&home, &["list", "--source", "tool"])).contains("No such facts"));
}

#[test]
fn a_fact_takes_the_place_of_another_when_it_is_told_to() {
    let home = tempfile::tempdir().unwrap();
    told(&home, &["add", "The spare key is under the mat."]);
    let new = value(&home, &["supersede", "f1", "The spare key is with Ada."]);
    assert_eq!((&new["id"], &new["superseded"]), (&json!("f2"), &json!(["f1"])));
    let again = failed(&ran(&home, &["supersede", "f1", "It is lost."]), 1);
    assert!(again.contains("supersede f2 instead"), "{again}");
    let stdin = feed(&mut memory(&home, &["supersede", "f2", "-"]), b"The key is\nlost.\n");
    assert_eq!(succeeded(&stdin), "f3\n");
    assert_eq!(fact(&home, "f3").text, "The key is\nlost.");
}

#[test]
fn what_can_not_be_is_refused_and_says_what_to_do() {
    let home = tempfile::tempdir().unwrap();
    told(&home, &["add", "One fact."]);
    let refused = |args: &[&str], code| failed(&ran(&home, args), code);
    for command in ["get", "history"] {
        assert!(refused(&[command, "f9"], 1).contains("garret memory list"), "{command}");
        assert!(refused(&[command, "nonsense"], 1).contains("is no id"), "{command}");
    }
    assert!(refused(&["supersede", "f9", "x"], 1).contains("garret memory list"));
    assert!(refused(&["get", "kitchen/1/user"], 1).contains("garret session list"));
    assert!(refused(&["list", "--session", "kitchen"], 1).contains("garret session list"));
    assert!(refused(&["add", "x", "--valid-at", "soon"], 2).contains("2026-11-29"));
    assert!(refused(&["add", "x", "--predicate", "is"], 2).contains("--subject"));
    assert!(refused(&["add", " "], 1).contains("needs words"));
    let backwards = ["add", "x", "--valid-at", "2024-01-02", "--valid-to", "2024-01-01"];
    assert!(refused(&backwards, 1).contains("end"));
    let latin = feed(&mut memory(&home, &["add", "-"]), b"caf\xe9");
    assert!(failed(&latin, 1).contains("byte 4"));
    let empty = tempfile::tempdir().unwrap();
    assert!(failed(&ran(&empty, &["list"]), 1).contains("nothing is stored"));
    assert!(!empty.path().join("data").exists(), "looking leaves nothing behind");
}

const LINES: &str = r#"{"session":"kitchen","speaker":"user","text":"My bees live behind the shed.","at":"2024-05-01T10:00:00Z","id":"a"}
{"session":"kitchen","role":"assistant","text":"Noted.","timestamp":1714557660}

{"conv":"conv-26","dia_id":"D1:3","session":1,"timestamp":"2023-05-08T13:57:00Z","speaker":"Caroline","text":"I went to a support group yesterday.","caption":"a poster"}
{"session":"kitchen","text":"And the hens?"}
{"session":"kitchen","text":"And the hens?"}
"#;

fn import(home: &TempDir, lines: &str, args: &[&str]) -> Output {
    feed(&mut memory(home, &[&["import", "-"], args].concat()), lines.as_bytes())
}

#[test]
fn conversations_are_imported_once() {
    let home = tempfile::tempdir().unwrap();
    let told_of = |output: &Output| only::<Value>(objects(&succeeded(output)));
    let first = import(&home, LINES, &["--json"]);
    assert_eq!(told_of(&first), json!({"lines": 6, "added": 5, "skipped": 0}));
    let second = import(&home, LINES, &["--json"]);
    assert_eq!(told_of(&second), json!({"lines": 6, "added": 0, "skipped": 5}));
    let message = |id: &str| value(&home, &["get", id]);
    let asked = message("kitchen/1/user");
    assert_eq!(asked["text"], "My bees live behind the shed.");
    assert_eq!(asked["valid_at"], "2024-05-01 10:00:00 +00:00");
    assert_eq!(message("kitchen/1/assistant")["valid_at"], "2024-05-01 10:01:00 +00:00");
    assert_eq!(message("kitchen/3/user")["text"], "And the hens?");
    let said = &message("conv-26/1/1/user")["text"];
    assert_eq!(said, "I went to a support group yesterday. [image: a poster]");
    let found = value(&home, &["search", "when did Caroline go to the support group"]);
    assert_eq!(found["hits"][0]["session"], "conv-26/1");
}

/// Lines before one that can't be read are there; mended, the file goes on from there.
#[test]
fn a_bad_line_is_named_and_loses_nothing() {
    let cases = [
        ("{\"session\":\"k\",\"text\":\"three\"", "EOF"),
        ("{\"session\":\"k\"}", "missing field `text`"),
        ("{\"text\":\"three\"}", "--session"),
        ("{\"session\":\"k\",\"text\":\" \"}", "empty"),
        ("{\"session\":\" k\",\"text\":\"three\"}", "white space"),
        ("{\"session\":\"k\",\"text\":\"three\",\"at\":\"soon\"}", "is no date"),
        ("{\"session\":\"k\",\"text\":\"three\",\"at\":1e300}", "is no time"),
        ("[1]", "line 3"),
    ];
    let good = |text: &str| format!("{{\"session\":\"k\",\"text\":\"{text}\"}}\n");
    for (line, what) in cases {
        let home = tempfile::tempdir().unwrap();
        let lines = good("one") + &good("two") + line + "\n" + &good("four");
        let bad = import(&home, &lines, &[]);
        let complaint = failed(&bad, 1);
        assert!(complaint.contains("line 3: ") && complaint.contains(what), "{complaint}");
        let mended = lines.replace(line, good("three").trim_end());
        let output = succeeded(&import(&home, &mended, &[]));
        assert_eq!(output, "2 messages imported, 2 were there already\n", "{line}");
    }
    let home = tempfile::tempdir().unwrap();
    let missing = failed(&ran(&home, &["import", "/nowhere.jsonl"]), 1);
    assert!(missing.contains("/nowhere.jsonl"), "{missing}");
    let lines = "{\"text\":\"one\"}\n";
    assert_eq!(
        succeeded(&import(&home, lines, &["--session", "k"])),
        "1 messages imported, 0 were there already\n"
    );
}

#[test]
fn stats_count_what_is_there() {
    let home = tempfile::tempdir().unwrap();
    told(&home, &OSLO);
    bergen(&home);
    import(&home, LINES, &[]);
    let stats = value(&home, &["stats"]);
    let counts = ["sessions", "turns", "replies", "entities", "pending"].map(|name| &stats[name]);
    assert_eq!(counts[..4], [2, 4, 1, 1]);
    assert_eq!(
        stats["facts"],
        json!({"all": 2, "latest": 1, "superseded": 1, "ended": 0, "damaged": 0})
    );
    assert_eq!(stats["vectors"], Value::Null);
    let file = |name: &str| std::fs::metadata(home.path().join("data").join(name)).unwrap().len();
    assert_eq!(stats["bytes"]["redb"], file("default.redb"));
    let text = told(&home, &["stats"]);
    assert!(text.contains("facts      2: 1 hold, 1 replaced, 0 ended"), "{text}");
}

#[test]
fn a_backup_is_the_namespace_again() {
    let home = tempfile::tempdir().unwrap();
    told(&home, &OSLO);
    import(&home, LINES, &[]);
    let copies = home.path().join("copies");
    std::fs::create_dir(&copies).unwrap();
    let copy = copies.join("default.redb");
    let made = value(&home, &["backup", copy.to_str().unwrap()]);
    assert_eq!(made["bytes"], std::fs::metadata(&copy).unwrap().len());
    told(&home, &["add", "Later."]);
    let refused = failed(&ran(&home, &["backup", copy.to_str().unwrap()]), 1);
    assert!(refused.contains("choose a new file"), "{refused}");
    let from_copy = ["list", "--data", copies.to_str().unwrap()];
    assert_eq!(ids(&value(&home, &from_copy)), ["f1"]);
    let clean = value(&home, &["verify", "--data", copies.to_str().unwrap()]);
    assert_eq!(
        (&clean["clean"], &clean["facts"], &clean["turns"]),
        (&json!(true), &json!(1), &json!(4))
    );
    let nowhere = failed(&ran(&home, &["backup", "/nowhere/x.redb"]), 1);
    assert!(nowhere.contains("/nowhere/x.redb"), "{nowhere}");
}

/// Damage is told, with what to do, and by the exit status.
#[test]
fn verify_finds_a_flipped_byte() {
    let home = tempfile::tempdir().unwrap();
    import(&home, LINES, &[]);
    told(&home, &["add", "x"]);
    assert!(told(&home, &["verify"]).starts_with("Nothing is wrong in 2 sessions, 4 turns"));
    let folder = home.path().join("copies");
    std::fs::create_dir(&folder).unwrap();
    let copy = folder.join("default.redb");
    told(&home, &["backup", copy.to_str().unwrap()]);
    let mut bytes = std::fs::read(&copy).unwrap();
    let said = b"My bees live behind the shed.";
    let at = bytes.windows(said.len()).position(|window| window == said).unwrap();
    bytes[at] ^= 1;
    std::fs::write(&copy, bytes).unwrap();
    let output = ran(&home, &["verify", "--json", "--data", folder.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report = only::<Value>(objects(&stdout(&output)));
    assert_eq!(report["clean"], json!(false));
    assert!(report["problems"].as_array().unwrap().iter().all(|problem| problem["advice"] != ""));
}

#[test]
fn an_export_is_taken_in_elsewhere() {
    let home = tempfile::tempdir().unwrap();
    told(&home, &OSLO);
    bergen(&home);
    import(&home, LINES, &[]);
    for form in [&[][..], &["--lines"]] {
        let file = home.path().join(format!("export{}", form.len()));
        let file = file.to_str().unwrap();
        told(&home, &[&["export", file], form].concat());
        let refused = failed(&ran(&home, &["export", file]), 1);
        assert!(refused.contains("choose a new file"), "{refused}");
        let other = tempfile::tempdir().unwrap();
        let report = value(&other, &["import", file]);
        let counts = ["sessions", "turns", "replies", "facts"].map(|name| &report[name]);
        assert_eq!(counts, [2, 4, 1, 2], "{report}");
        assert_eq!(fact(&other, "f1").superseded_by.as_deref(), Some("f2"));
        assert_eq!(value(&other, &["get", "kitchen/3/user"])["text"], "And the hens?");
        let taken = failed(&ran(&other, &["import", file]), 1);
        assert!(taken.contains("kitchen") || taken.contains("conv-26/1"), "{taken}");
        let renamed = value(&other, &["import", file, "--rename"]);
        assert_eq!(renamed["renamed"].as_array().unwrap().len(), 2, "{renamed}");
        assert_eq!(value(&other, &["stats"])["sessions"], 4);
        let piped = ran(&home, &[&["export", "-"], form].concat());
        assert_eq!(piped.stdout, std::fs::read(file).unwrap());
    }
    let lines = home.path().join("export.jsonl");
    told(&home, &["export", lines.to_str().unwrap()]);
    let text = std::fs::read_to_string(&lines).unwrap();
    assert!(text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{text}");
}

/// A pin goes to what replaces its fact, and stands before those that matter more but aren't the
/// user's.
#[test]
fn a_fact_is_pinned_and_its_pin_moves_on() {
    let home = tempfile::tempdir().unwrap();
    told(&home, &OSLO);
    told(&home, &["add", "The boiler needs water.", "--salience", "9"]);
    let pinned = |home| value(home, &["list", "--pinned"]);
    assert!(stderr(&ran(&home, &["list", "--pinned"])).contains("memory pin"));
    assert_eq!(value(&home, &["pin", "f1"])["pinned"], "user");
    assert!(told(&home, &["get", "f1"]).contains("pinned by      the user"));
    assert_eq!(ids(&pinned(&home)), ["f1"]);
    bergen(&home);
    assert_eq!((ids(&pinned(&home)), fact(&home, "f1").pinned.as_str()), (vec!["f3"], "none"));
    told(&home, &["pin", "f2"]);
    assert_eq!(ids(&pinned(&home)), ["f2", "f3"]);
    let refused = failed(&ran(&home, &["pin", "f1"]), 1);
    assert!(refused.contains("was replaced by f3: pin f3 instead"), "{refused}");
    assert!(failed(&ran(&home, &["pin", "f9"]), 1).contains("memory list"));
    assert!(failed(&ran(&home, &["pin", "kitchen/1/user"]), 1).contains("only facts"));
    told(&home, &["unpin", "f3"]);
    told(&home, &["unpin", "f3"]);
    assert_eq!(ids(&pinned(&home)), ["f2"]);
    assert_eq!(value(&home, &["stats"])["pinned"], 1);
    assert!(!ran(&home, &["list", "--pinned", "--latest"]).status.success());
}
