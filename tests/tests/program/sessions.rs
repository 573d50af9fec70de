//! Commands that don't talk: conversations, settings, models and the doctor.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use garret_tests::models::{EMBEDDER, GEMMA, STARTER, find};
use garret_tests::program::{Place, failed, garret, only, stderr, stdout, succeeded};
use garret_tests::wire::{Listed, objects};

/// The complaint of the program when it is run with these arguments.
fn refusal(place: &Place, args: &[&str], code: i32) -> String {
    let output = place.garret(args).output().unwrap();
    assert_eq!(stdout(&output), "", "nothing on stdout when it fails");
    failed(&output, code)
}

fn listed(place: &Place) -> Vec<Listed> {
    objects(&place.run(&["session", "list", "--json"]))
}

#[test]
fn conversations_are_listed_shown_renamed_and_deleted() {
    let Some(place) = Place::new() else { return };
    let bees = place.once("Bees\tor \u{1f41d}?", &["--session", "bees"]);
    place.once("And wasps?", &["--session", "wasps"]);
    place.once("Go on.", &["--session", "bees"]);

    let all: Vec<_> = listed(&place).into_iter().map(|one| (one.session, one.turns)).collect();
    assert_eq!(all, [("bees".to_owned(), 2), ("wasps".to_owned(), 1)], "the last used first");
    let text = place.run(&["session", "list"]);
    let lines: Vec<_> = text.lines().collect();
    assert!(lines.len() == 2 && lines[0].contains("bees  2 turns") && lines[1].contains("1 turn,"));

    let said = place.turns("bees", &[]);
    assert_eq!(said.iter().map(|said| said.turn).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(said[0].user, "Bees\tor \u{1f41d}?");
    assert_eq!(
        (said[0].reply.as_ref(), said[0].finish.as_ref()),
        (Some(&bees.reply), Some(&bees.finish))
    );
    let text = place.run(&["session", "show", "bees"]);
    assert!(text.contains("User: Bees\tor \u{1f41d}?\nAssistant: "), "{text}");
    assert!(text.contains("turn 2") && text.contains("User: Go on."), "{text}");

    assert_eq!(place.run(&["session", "rename", "bees", "apis mellifera"]), "");
    assert_eq!(place.turns("apis mellifera", &[]), said);
    assert_eq!(place.run(&["session", "delete", "wasps"]), "");
    assert_eq!(only(listed(&place)).session, "apis mellifera");
    let next = place.once("Still there?", &["--session", "apis mellifera"]);
    assert_eq!(next.turn, 3);
    assert!(next.block("history") > 0, "a renamed conversation is remembered");
    assert_eq!(place.once("New?", &["--session", "wasps"]).turn, 1, "a deleted one isn't");
}

#[test]
fn what_can_not_be_done_with_a_conversation_is_refused() {
    let Some(place) = Place::new() else { return };
    let none = refusal(&place, &["session", "list"], 1);
    assert!(none.contains("nothing is stored") && none.contains("--data"), "{none}");
    assert!(!place.data().exists(), "looking leaves nothing behind");
    place.once("one", &["--session", "a"]);
    place.once("two", &["--session", "b"]);
    for args in
        [&["show", "c"][..], &["show", "c", "--json"], &["rename", "c", "d"], &["delete", "c"]]
    {
        let complaint = refusal(&place, &[&["session"], args].concat(), 1);
        assert!(complaint.contains("`c`") && complaint.contains("list"), "{args:?}: {complaint}");
    }
    let taken = refusal(&place, &["session", "rename", "a", "b"], 1);
    assert!(taken.contains("`b` exists already"), "{taken}");
    let unusable = refusal(&place, &["session", "rename", "a", "two\nlines"], 1);
    assert!(unusable.contains("control characters"), "{unusable}");
    let long = refusal(&place, &["session", "rename", "a", &"x".repeat(65)], 1);
    assert!(long.contains("64 bytes"), "{long}");
    assert_eq!(listed(&place).len(), 2);
    assert_eq!(only(place.turns("a", &[])).user, "one");
    assert_eq!(only(place.turns("b", &[])).user, "two");
    let elsewhere = refusal(&place, &["session", "list", "--namespace", "other"], 1);
    assert!(elsewhere.contains("`other`"), "{elsewhere}");
    refusal(&place, &["session"], 2);
    refusal(&place, &["session", "show"], 2);
}

#[test]
fn namespaces_share_nothing() {
    let Some(place) = Place::new() else { return };
    let names = ["a/b", "a_b", "A_B", "\u{436}\u{443}", "\u{43f}\u{447}", "../up", ""];
    for name in names {
        let said = format!("I am in `{name}`.");
        let answer =
            place.once(&said, &["--session", "s", "--namespace", name, "--max-tokens", "1"]);
        assert_eq!((answer.turn, answer.block("history")), (1, 0), "{name}");
    }
    for name in names {
        let said = only(place.turns("s", &["--namespace", name]));
        assert_eq!(said.user, format!("I am in `{name}`."));
    }
    place.run(&["session", "delete", "s", "--namespace", "a/b"]);
    assert_eq!(place.turns("s", &["--namespace", "a_b"]).len(), 1);
    let outside = fs::read_dir(place.home()).unwrap().map(|entry| entry.unwrap().path());
    assert_eq!(outside.collect::<Vec<_>>(), [place.data()], "no name leads out of the data folder");
    let long = refusal(&place, &["session", "list", "--namespace", &"n".repeat(257)], 1);
    assert!(long.contains("256"), "{long}");
}

#[test]
fn nobody_else_can_read_what_was_said() {
    let Some(place) = Place::new() else { return };
    place.once("a secret", &["--namespace", "mine"]);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(format!("{:o}", mode(&place.data())), "700");
    let files = fs::read_dir(place.data()).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = files.collect();
    assert!(files.len() >= 2, "{files:?}");
    for file in files {
        assert_eq!(format!("{:o}", mode(&file)), "600", "{}", file.display());
    }
}

#[test]
fn names_from_outside_can_not_drive_the_terminal() {
    let Some(place) = Place::new() else { return };
    let complaint = refusal(&place, &["session", "list", "--namespace", "n\x1b[2J"], 1);
    assert!(complaint.contains("`n\u{241b}[2J`"), "{complaint}");

    let mut model = fs::read(place.model()).unwrap();
    let name = b"Smollm2 135M";
    let at = model.windows(name.len()).position(|bytes| bytes == name).unwrap();
    model[at..at + 4].copy_from_slice(b"\x1b[2J");
    let path = place.home().join("m.gguf");
    fs::write(&path, model).unwrap();
    let text = place.run(&["models", "check", path.to_str().unwrap()]);
    assert!(text.contains("`\u{241b}[2Jlm2 135M") && !text.contains('\x1b'), "{text}");
}

/// Every key with its value and origin, as JSON tells them.
fn settings(command: &mut std::process::Command) -> BTreeMap<String, (String, String)> {
    let text = succeeded(&command.arg("--json").output().unwrap());
    assert_eq!(text.lines().count(), 1, "one object on one line");
    let all: BTreeMap<String, BTreeMap<String, String>> = serde_json::from_str(&text).unwrap();
    all.into_iter()
        .map(|(key, mut entry)| {
            let pair = (entry.remove("value").unwrap(), entry.remove("origin").unwrap());
            assert!(entry.is_empty(), "{entry:?}");
            (key, pair)
        })
        .collect()
}

#[test]
fn every_setting_tells_its_value_and_origin() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join(".config/garret/config.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "window = 4096\ntop_k = 5\nseed = 3\ntemperature = 0.5\n").unwrap();
    let show = || {
        let mut command = garret(home.path());
        command.args(["config", "show", "--seed", "9"]);
        command.env("GARRET_TOP_K", "6").env("GARRET_SEED", "8");
        command
    };
    let all = settings(&mut show());
    let is = |key: &str, value: &str, origin: &str| {
        assert_eq!(all[key], (value.to_owned(), origin.to_owned()), "{key}");
    };
    let in_file = format!("file {}", file.display());
    is("seed", "9", "flag");
    is("top_k", "6", "environment GARRET_TOP_K");
    is("window", "4096", &in_file);
    is("temperature", "0.5", &in_file);
    is("min_p", "0.05", "default");
    is("namespace", "default", "default");
    is("data", home.path().join(".local/share/garret").to_str().unwrap(), "default");
    assert!(
        all["threads"].1.starts_with("device ") && all["threads"].0.parse::<u32>().unwrap() > 0
    );

    let text = succeeded(&show().output().unwrap());
    assert_eq!(text.lines().count(), all.len());
    for line in text.lines() {
        let (key, rest) = line.split_once(" = ").unwrap();
        let (value, origin) = rest.rsplit_once("  # ").unwrap();
        assert_eq!((value.trim_end(), origin), (all[key].0.as_str(), all[key].1.as_str()));
    }

    let other = home.path().join("other.toml");
    fs::write(&other, "top_p = 1\n").unwrap();
    let all = settings(show().arg("--config").arg(&other));
    assert_eq!(all["top_p"], ("1".to_owned(), format!("file {}", other.display())));
    assert_eq!(all["temperature"].1, "default", "a file that is named replaces the usual one");
}

#[test]
fn wrong_settings_are_refused_with_a_hint() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("c.toml");
    let with_file = |text: &str| {
        fs::write(&file, text).unwrap();
        failed(
            &garret(home.path()).args(["config", "show", "--config"]).arg(&file).output().unwrap(),
            2,
        )
    };
    let named = with_file("temprature = 1\n");
    assert!(named.contains("c.toml") && named.contains("did you mean `temperature`?"), "{named}");
    let strange = with_file("zzz = 1\n");
    assert!(strange.contains("`zzz`") && strange.contains("garret config show"), "{strange}");
    assert!(with_file("window = \n").contains("not valid TOML"));
    assert!(with_file("window = [1]\n").contains("must be a text, a number"));
    let kind = with_file("kv_type = \"q3\"\n");
    assert!(kind.contains("f16") && kind.contains("q8_0"), "{kind}");
    assert!(with_file("top_p = nan\n").contains("from 0 to 1"));

    let with_variable = |name: &str, value: &str| {
        let mut command = garret(home.path());
        failed(&command.args(["config", "show"]).env(name, value).output().unwrap(), 2)
    };
    let named = with_variable("GARRET_WINDOWS", "4096");
    assert!(named.contains("did you mean `GARRET_WINDOW`?"), "{named}");
    let value = with_variable("GARRET_THREADS", "many");
    assert!(value.contains("GARRET_THREADS") && value.contains("1 to 512"), "{value}");

    let with_flags = |args: &[&str]| {
        failed(&garret(home.path()).args(["config", "show"]).args(args).output().unwrap(), 2)
    };
    assert!(with_flags(&["--windo", "4096"]).contains("--window"));
    let value = with_flags(&["--temperature", "-1"]);
    assert!(value.contains("`temperature`") && value.contains("from 0 to 5"), "{value}");
    assert!(with_flags(&["--window", "1e4"]).contains("at least 2048"));
    assert!(with_flags(&["--max-tokens", "0"]).contains("at least 1"));
    assert!(with_flags(&["--log", "garret=loud=very"]).contains("`log`"));
    assert!(with_flags(&["--config", "/nowhere/c.toml"]).contains("/nowhere/c.toml"));
}

#[test]
fn models_are_listed_by_what_they_are() {
    let (Some(starter), Some(embedder)) = (find(STARTER), find(EMBEDDER)) else { return };
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("models");
    let list = |args: &[&str]| {
        let mut command = garret(home.path());
        command.args(["models", "list", "--models-dir"]).arg(&folder).args(args).output().unwrap()
    };
    let nowhere = failed(&list(&[]), 1);
    assert!(nowhere.contains("quickstart") && nowhere.contains("models"), "{nowhere}");
    fs::create_dir(&folder).unwrap();
    assert_eq!(succeeded(&list(&[])), "");

    symlink(&starter, folder.join(STARTER)).unwrap();
    symlink(&embedder, folder.join(EMBEDDER)).unwrap();
    fs::write(folder.join("text.gguf"), "no model").unwrap();
    fs::write(folder.join("README.txt"), "not looked at").unwrap();
    let output = list(&[]);
    let text = succeeded(&output);
    let line = |name| only(text.lines().filter(|line| line.ends_with(name)).collect());
    assert!(line(STARTER).starts_with("chat") && line(STARTER).contains("8192 tokens"), "{text}");
    assert!(line(EMBEDDER).starts_with("embedder"), "{text}");
    assert_eq!(text.lines().count(), 2);
    assert!(stderr(&output).contains("text.gguf") && !stderr(&output).contains("README"));

    let found: Vec<serde_json::Value> = objects(&succeeded(&list(&["--json"])));
    let roles: BTreeMap<_, _> = found
        .iter()
        .map(|found| (found["file"].as_str().unwrap(), found["role"].as_str().unwrap()))
        .collect();
    assert_eq!(roles[folder.join(STARTER).to_str().unwrap()], "chat");
    assert_eq!(roles[folder.join(EMBEDDER).to_str().unwrap()], "embedder");
}

#[test]
fn a_model_is_checked_without_loading_it() {
    let Some(place) = Place::new() else { return };
    let starter = place.model().to_str().unwrap();
    let text = place.run(&["models", "check", starter]);
    for word in [starter, "chat model", "llama", "8192", "2048 tokens needs about", "MiB"] {
        assert!(text.contains(word), "`{word}` is missing in: {text}");
    }
    let json = place.run(&["models", "check", starter, "--json", "--window", "8192"]);
    let json: serde_json::Value = only(objects(&json));
    assert_eq!((&json["role"], &json["window"]), (&"chat".into(), &8_192.into()));
    assert_eq!((&json["context_length"], &json["fits"]), (&8_192.into(), &true.into()));
    assert_eq!(json["bytes"], fs::metadata(place.model()).unwrap().len());
    if let Some(embedder) = find(EMBEDDER) {
        let text = place.run(&["models", "check", embedder.to_str().unwrap()]);
        assert!(text.contains("embedder model") && text.contains("vectors of 384"), "{text}");
    }
    if let Some(gemma) = find(GEMMA) {
        let base = refusal(&place, &["models", "check", gemma.to_str().unwrap()], 1);
        assert!(base.contains("chat template"), "{base}");
    }
    let file = place.home().join("notes.txt");
    fs::write(&file, "These are notes and no model at all.").unwrap();
    let text = refusal(&place, &["models", "check", file.to_str().unwrap()], 1);
    assert!(text.contains("notes.txt") && text.contains("GGUF"), "{text}");
    let missing = refusal(&place, &["models", "check", "/nowhere/m.gguf"], 1);
    assert!(missing.contains("/nowhere/m.gguf"), "{missing}");
    assert!(!place.data().exists(), "checking leaves no data folder");
}

#[test]
fn the_doctor_tells_whether_it_works() {
    let Some(place) = Place::new() else { return };
    let healthy = place.run(&["doctor"]);
    for what in ["build", "device", "memory", "clock", "disk", "data", "model", "room", "answer"] {
        let is_told = healthy.lines().any(|line| line.split_whitespace().nth(1) == Some(what));
        assert!(is_told, "`{what}` is missing in: {healthy}");
    }
    assert!(
        healthy.contains("nothing stored yet") && healthy.contains("said a token"),
        "{healthy}"
    );
    assert!(!healthy.contains("FAIL"), "{healthy}");
    assert!(healthy.contains("note  embedder   none in"), "{healthy}");
    let off = place.run(&["doctor", "--embedder", "off"]);
    assert!(off.contains("ok    embedder   off"), "{off}");
    if let Some(embedder) = find(EMBEDDER) {
        let file = embedder.to_str().unwrap();
        let told = place.run(&["doctor", "--embedder", file]);
        assert!(told.contains("384 numbers") && !told.contains("FAIL"), "{told}");
        let chat = place.model().to_str().unwrap();
        let output = place.garret(&["doctor", "--embedder", chat]).output().unwrap();
        failed(&output, 1);
        assert!(stdout(&output).contains("FAIL  embedder"), "{output:?}");
    }
    assert!(!place.data().exists(), "an examination leaves nothing behind");
    place.once("hello", &[]);
    assert!(place.run(&["doctor"]).contains("conversations kept: 1"));
    assert_eq!(listed(&place).len(), 1, "nor does it talk");

    for model in ["/nowhere/m.gguf", "/dev/null"] {
        let output = place.garret(&["doctor", "--model", model]).output().unwrap();
        failed(&output, 1);
        let told = stdout(&output);
        let failures = told.lines().filter(|line| line.starts_with("FAIL")).collect();
        assert!(only(failures).contains(model), "{told}");
    }
    let output = place.garret(&["doctor", "--data", "/dev/null/x"]).output().unwrap();
    failed(&output, 1);
    assert!(stdout(&output).contains("FAIL  data"), "a folder that can't be is told");
    let output = place.garret(&["doctor", "--window", "9000"]).output().unwrap();
    failed(&output, 1);
    assert!(stdout(&output).contains("9000"), "a window that can't be fails, too");
}
