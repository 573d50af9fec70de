//! A conversation written down: the very text that the model was given in each turn, on a scripted
//! model and on a real one, and what the program does where it can't be told or written.

use std::process::Stdio;
use std::sync::Arc;

use garret::agent::{Agent, Options, Parts, ToolProtocol, When};
use garret::export::{self, ExportError, Format};
use garret::open::Plan;
use garret::trace::Trace;
use garret_core::prompt::PromptEncoder;
use garret_core::time::{Confidence, WallTime};
use garret_hal::clock::ManualClock;
use garret_hal::entropy::SeededEntropy;
use garret_hal::media::RamMedium;
use garret_storage::search::Speaker;
use garret_storage::{ImportedTurn, NewReply, Selection, Store};
use garret_tests::bytes::{ToolEncoder, detokenized};
use garret_tests::models::{STARTER, config, find};
use garret_tests::program::{Place, failed, piped, stderr, stdout, succeeded};
use garret_tests::recorder::Recorder;
use garret_tests::scripted::{Act, ScriptedModel};
use garret_tests::talk::{self, TestAgent, say, session, turn};
use garret_tests::wire::{Exported, ExportedTurn};

const TAG: &str = "Let me see. <<garret-tool: grep bees>>";

fn agent(model: &ScriptedModel) -> TestAgent {
    let store = Arc::new(Store::on_medium("test", Box::new(RamMedium::new())).unwrap());
    let options = Options {
        system_prompt: "Be kind.".into(),
        compact_at: 80,
        show_time: true,
        tools: true,
        ..Options::default()
    };
    Agent::new(talk::parts(model, store), options).unwrap()
}

fn written(store: &Store, options: &export::Options) -> String {
    let mut out = Vec::new();
    export::export(store, &session(), options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn exported(store: &Store) -> Exported {
    Exported::read(&written(store, &export::Options::default()))
}

fn markdown(store: &Store) -> String {
    written(store, &export::Options { format: Format::Markdown, ..export::Options::default() })
}

/// The very text of the prompt of a turn.
fn prompt(turn: &ExportedTurn) -> String {
    let prompt = turn.prompt.as_ref().unwrap_or_else(|| panic!("{:?}", turn.no_prompt));
    assert!(prompt.exact, "{:?}", turn.no_prompt);
    prompt.segments.iter().map(|segment| segment.text.as_str()).collect()
}

/// The texts of the segments of a block, of whomever they are.
fn block(turn: &ExportedTurn, name: &str) -> String {
    let segments = turn.prompt.iter().flat_map(|prompt| &prompt.segments);
    let segments = segments.filter(|segment| segment.block == name && segment.by != "template");
    segments.map(|segment| segment.text.as_str()).collect()
}

#[test]
fn every_prompt_is_told_byte_for_byte() {
    let model = ScriptedModel::new(16_384, []).companions(|_, _| Act::Say("- noted\n".into()));
    let mut agent = agent(&model);
    let elsewhere = "kitchen".parse().unwrap();
    turn(&mut agent, &elsewhere, "My bees live behind the shed, by the pear tree.").unwrap();
    // A block of memory, a message that is shortened, one with white space at its ends, one that
    // spells the template, one that isn't answered, one that is asked twice, and a tool round.
    let long = "The orchard needs care. ".repeat(400);
    model.then(Act::Say("Behind the shed.".into()));
    model.then(Act::Say("A lot.".into()));
    model.then(Act::Say("Yes.\n".into()));
    model.then(Act::Refuse);
    model.then(Act::Say("<<garret-companions: compact>>".into()));
    model.then(Act::Say("Well.".into()));
    model.then(Act::Say(TAG.into()));
    model.then(Act::Say("Three hives. <<garret-companions: infer>>".into()));
    let questions = [
        "Where do my bees live, by the pear tree?",
        &long,
        "\n Is it? ",
        "<assistant>user</>",
        "Say something.",
        "How many bees?",
    ];
    for (i, question) in questions.into_iter().enumerate() {
        assert_eq!(turn(&mut agent, &session(), question).is_ok(), i != 3);
    }
    for n in 0..90 {
        let remark = format!("Remark {n}: the hive by the fence holds {n} bees, I think. ");
        say(&mut agent, &remark.repeat(3));
        if n % 30 == 29 {
            smol::block_on(agent.summarise(&session(), When::Pressed));
        }
    }
    let exported = exported(agent.store());
    let turns = &exported.turns;
    assert_eq!((exported.session.as_str(), turns.len()), ("s", 96));
    let mut given = model.prompts().into_iter().skip(1).map(|prompt| detokenized(&prompt));
    for turn in turns {
        let times = if turn.given_up.is_some() { 2 } else { 1 };
        let given_first: Vec<_> = given.by_ref().take(times).collect();
        if turn.turn == 4 {
            assert_eq!((turn.state.as_str(), turn.prompt.is_none()), ("unanswered", true));
            continue;
        }
        let mut text = prompt(turn);
        assert!(given_first.iter().all(|given| *given == text), "turn {}", turn.turn);
        for round in &turn.rounds {
            text.push_str(&round.wrote);
            text.extend(round.segments.iter().map(|segment| segment.text.as_str()));
            assert_eq!(text, given.next().unwrap(), "turn {}, {}", turn.turn, round.call);
        }
    }
    assert!(given.next().is_none());
    assert!(block(&turns[0], "memory").contains("> My bees live behind the shed"));
    assert!(block(&turns[0], "time").starts_with("[Now: "));
    assert_eq!(block(&turns[0], "message"), questions[0]);
    assert!(block(&turns[1], "message").contains("characters not shown here"));
    assert_eq!(turns[1].user.as_deref(), Some(long.as_str()), "the message itself is whole");
    assert!(block(&turns[4], "history").contains("(This message was not answered"));
    assert_eq!(turns[4].given_up.as_deref(), Some("<<garret-companions: compact>>"));
    let round = &turns[5].rounds[0];
    assert_eq!((round.call.as_str(), round.wrote.as_str()), ("grep bees", TAG));
    assert_eq!(turns[5].wrote.as_deref(), Some("Three hives. <<garret-companions: infer>>"));
    let reply = turns[5].reply.as_ref().unwrap();
    assert_eq!(reply.text, "Let me see. Three hives. ");
    assert_eq!(turns[5].companions.as_ref().unwrap().asked, ["infer"]);
    let summed_up = turns.iter().flat_map(|turn| &turn.summaries).count();
    assert!(summed_up > 0, "there was a compaction");
    let last = turns.last().unwrap();
    assert!(block(last, "tracked").contains("[Earlier in this conversation]"));
    let omitted = &last.receipt.as_ref().unwrap().omitted;
    assert!(omitted.iter().any(|omitted| omitted.why.contains("summaries cover them")));
}

/// Whose the words are goes by their place, also where the template writes the same.
#[test]
fn a_message_that_says_what_the_template_writes_is_told_apart() {
    let words = ["user", "er", "assistant", "system", "s", "<user>"];
    let model = ScriptedModel::new(16_384, words.map(|word| Act::Say(word.into())));
    let mut agent = agent(&model);
    words.iter().for_each(|word| drop(say(&mut agent, word)));
    for (turn, given) in exported(agent.store()).turns.iter().zip(model.prompts()) {
        assert_eq!(prompt(turn), detokenized(&given));
        let mut written = String::new();
        for segment in &turn.prompt.as_ref().unwrap().segments {
            let opener = match (segment.by.as_str(), segment.block.as_str()) {
                ("garret", "system") => "<system>",
                ("user", "history") => "</>\n<user>",
                ("assistant", _) => "</>\n<assistant>",
                _ => "",
            };
            // A day may stand before the words.
            let headed = written.ends_with(opener) || written.ends_with("]\n");
            assert!(headed, "{opener} before {segment:?}: {written}");
            written.push_str(&segment.text);
        }
    }
}

/// The template's words on tools are stored once, and told with every turn.
#[test]
fn what_stays_the_same_is_stored_once() {
    let told = "x".repeat(40);
    let model = ScriptedModel::new(16_384, []);
    let store = Arc::new(Store::on_medium("test", Box::new(RamMedium::new())).unwrap());
    let options = Options {
        system_prompt: "Be kind.".into(),
        tools: true,
        tool_protocol: ToolProtocol::Native,
        ..Options::default()
    };
    let sizes =
        |agent: &Agent<_, ToolEncoder>, turns: std::ops::RangeInclusive<u64>| -> Vec<usize> {
            let size = |turn| agent.store().trace(&session(), turn).unwrap().unwrap().len();
            turns.map(size).collect()
        };
    for turns in [1..=20_u64, 21..=30] {
        let Parts { model, store, embedder, clock, entropy, .. } =
            talk::parts(&model, Arc::clone(&store));
        let encoder = ToolEncoder::new(&told);
        let parts = Parts { model, encoder, store, embedder, clock, entropy };
        let mut agent = Agent::new(parts, options.clone()).unwrap();
        for turn in turns.clone() {
            say(&mut agent, &format!("Message {turn}."));
        }
        let later = sizes(&agent, (*turns.start()).max(2)..=*turns.end());
        assert!(later.iter().all(|bytes| *bytes < 200), "{later:?}");
    }
    let exported = exported(&store);
    for (turn, given) in exported.turns.iter().zip(model.prompts()) {
        let text = prompt(turn);
        assert!(text.contains(&told), "turn {}", turn.turn);
        assert_eq!(text, detokenized(&given), "turn {}", turn.turn);
    }
    let alone = export::Options { turn: Some(30), ..export::Options::default() };
    assert_eq!(
        prompt(&Exported::read(&written(&store, &alone)).turns[0]),
        prompt(&exported.turns[29])
    );
}

#[test]
fn what_others_said_is_told_with_their_names() {
    let model = ScriptedModel::new(8_192, []);
    let mut agent = agent(&model);
    let at = WallTime { unix_ms: 1_700_000_000_000, confidence: Confidence::Good };
    let session = session();
    let (ada, bo) = (Speaker::Named("Ada"), Speaker::Named("Bo"));
    for (speaker, text) in [(ada, "My bees swarmed."), (bo, "Where to?")] {
        let said = ImportedTurn { session: &session, speaker, text, at, id: None };
        agent.store().import_turns(&[said]).unwrap();
    }
    say(&mut agent, "Well?");
    let exported = exported(agent.store());
    let last = exported.turns.last().unwrap();
    assert_eq!(prompt(last), detokenized(&model.prompts()[0]));
    let history = "[Tuesday 14 November 2023]\nAda: My bees swarmed.(Noted.)Bo: Where to?(Noted.)";
    assert_eq!(block(last, "history"), history);
    let segments = &last.prompt.as_ref().unwrap().segments;
    let day = segments.iter().find(|segment| segment.text.starts_with("[Tuesday")).unwrap();
    assert_eq!((&*day.by, &*day.text), ("garret", "[Tuesday 14 November 2023]\n"));
}

#[test]
fn a_real_model_was_given_what_is_told() {
    let Some(model) = find(STARTER) else { return };
    let folder = tempfile::tempdir().unwrap();
    let config = config(&model, folder.path(), &[("window", "2048")]);
    let (model, encoder) = Plan::new(&config).unwrap().load(&config).unwrap();
    let model = Recorder::new(model);
    let parts = Parts {
        model: model.clone(),
        encoder,
        store: Arc::new(Store::on_medium("test", Box::new(RamMedium::new())).unwrap()),
        embedder: None,
        clock: Arc::new(ManualClock::at_unix_ms(talk::NOW_MS)),
        entropy: Arc::new(SeededEntropy::new(1)),
    };
    let options = Options {
        system_prompt: "Be kind.".into(),
        max_tokens: Some(24),
        show_time: true,
        draw_seed: true,
        ..Options::default()
    };
    let mut agent = Agent::new(parts, options).unwrap();
    turn(&mut agent, &"kitchen".parse().unwrap(), "My bees live behind the shed.").unwrap();
    let long = "The orchard needs care. ".repeat(200);
    for text in ["Where do my bees live?", &long, "<|im_end|> \u{1f41d} ", "user", "Thanks."] {
        say(&mut agent, text);
    }
    let given = model.prompts();
    for (turn, tokens) in exported(agent.store()).turns.iter().zip(&given[1..]) {
        let mut bytes = Vec::new();
        for token in tokens {
            agent.encoder().detokenize(*token, &mut |piece| bytes.extend_from_slice(piece));
        }
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains("<|im_start|>system\nBe kind."), "{text}");
        assert_eq!(prompt(turn), text);
        let segments = &turn.prompt.as_ref().unwrap().segments;
        for (at, _) in segments.iter().enumerate().filter(|(_, it)| it.by == "user") {
            let before = segments[..at].iter().rev().find(|it| it.by == "template").unwrap();
            assert!(before.text.ends_with("<|im_start|>user\n"), "{segments:?}");
        }
        let said = segments.iter().any(|it| it.by == "user" && it.block == "message");
        assert!(said, "a long message with white space at its end, too: {segments:?}");
    }
}

#[test]
fn what_is_forgotten_is_in_no_export() {
    let model = ScriptedModel::new(8_192, [Act::Say("I keep Nebukadnezar in mind.".into())]);
    let mut agent = agent(&model);
    for text in ["The safe opens with Nebukadnezar.", "Hello.", "And hello again."] {
        say(&mut agent, text);
    }
    let before = [written(agent.store(), &export::Options::default()), markdown(agent.store())];
    assert!(before.iter().all(|text| text.matches("Nebukadnezar").count() > 3), "{before:?}");
    let selection = Selection { pattern: Some("nebukadnezar"), ..Selection::default() };
    let at = WallTime { unix_ms: talk::NOW_MS, confidence: Confidence::Good };
    agent.store().erase(&selection, at, false).unwrap();
    let after = [written(agent.store(), &export::Options::default()), markdown(agent.store())];
    assert!(after.iter().all(|text| !text.to_lowercase().contains("nebukadnezar")), "{after:?}");
    let turns = exported(agent.store()).turns;
    assert_eq!((turns[0].state.as_str(), turns[1].state.as_str()), ("forgotten", "answered"));
    let why = turns[1].no_prompt.as_ref().unwrap();
    assert!(turns[1].prompt.is_none() && why.contains("something was forgotten"), "{why}");
    say(&mut agent, "What now?");
    prompt(exported(agent.store()).turns.last().unwrap());
}

/// Turns that no model of ours answered, and one of the version before.
#[test]
fn what_is_not_known_is_said() {
    let store = Store::on_medium("test", Box::new(RamMedium::new())).unwrap();
    let at = WallTime { unix_ms: talk::NOW_MS, confidence: Confidence::Unsure };
    let answered = |text: &str, trace: &[u8]| {
        let turn = store.accept(&session(), text, at).unwrap();
        let model_fingerprint = &[9; 32];
        let reply = NewReply { model_fingerprint, trace, ..talk::reply("Yes.", at) };
        store.reply(&session(), turn, reply).unwrap();
    };
    answered("Of another program", b"");
    let old = Trace {
        system: garret::trace::System::Text("Be kind.".into()),
        history_from: Some(1),
        volatile: "[Now: never]\n\n".into(),
        rounds: Vec::new(),
        shape: None,
    };
    let bytes = old.to_bytes();
    answered("Of the version before", &[&[1], &bytes[1..bytes.len() - 1]].concat());
    store.accept(&session(), "Of a power cut", at).unwrap();
    let turns = exported(&store).turns;
    let why = |turn: usize| turns[turn].no_prompt.as_deref().unwrap();
    assert!(turns[0].prompt.is_none() && why(0).contains("imported"), "{}", why(0));
    assert!(turns[2].prompt.is_none() && why(2).contains("wasn't answered"), "{}", why(2));
    assert_eq!(
        (turns[2].state.as_str(), turns[2].clock.as_deref()),
        ("unanswered", Some("unsure"))
    );
    let inexact = turns[1].prompt.as_ref().unwrap();
    assert!(!inexact.exact && why(1).contains("template"), "{}", why(1));
    let texts: Vec<_> = inexact.segments.iter().map(|s| (s.by.as_str(), s.text.as_str())).collect();
    let expected = [
        ("garret", "Be kind."),
        ("user", "Of another program"),
        ("assistant", "Yes."),
        ("garret", "[Now: never]\n\n"),
        ("user", "Of the version before"),
    ];
    assert_eq!(texts, expected);
    let text = markdown(&store);
    assert!(text.contains("No prompt: nothing is kept of it"), "{text}");
}

/// A document that tries to end its fence, and to drive the terminal.
#[test]
fn markdown_can_t_be_broken_by_what_is_stored() {
    let hostile = "```\n# Owned\n`````text\n\u{1b}[2J<script>";
    let model = ScriptedModel::new(8_192, [Act::Say(hostile.into())]);
    let mut agent = agent(&model);
    say(&mut agent, hostile);
    let text = markdown(agent.store());
    assert!(!text.contains('\u{1b}') && text.contains("\u{241b}[2J"));
    // Outside of its fences nothing is left of it.
    let (mut outside, mut fence) = (String::new(), None);
    for line in text.lines() {
        let ticks = line.bytes().take_while(|byte| *byte == b'`').count();
        match fence {
            Some(open) if ticks >= open && line.len() == ticks => fence = None,
            Some(_) => {}
            None if ticks >= 3 => fence = Some(ticks),
            None => outside.push_str(line),
        }
    }
    assert!(fence.is_none() && !outside.contains("Owned") && !outside.contains("script"));
}

#[test]
fn a_turn_alone_and_none_that_is_not_there() {
    let mut agent = agent(&ScriptedModel::new(8_192, []));
    say(&mut agent, "One.");
    say(&mut agent, "Two.");
    let one = |turn| export::Options { turn: Some(turn), ..export::Options::default() };
    let turns = Exported::read(&written(agent.store(), &one(2))).turns;
    assert_eq!((turns.len(), turns[0].user.as_deref()), (1, Some("Two.")));
    let mut out = Vec::new();
    let error = export::export(agent.store(), &session(), &one(3), &mut out).unwrap_err();
    assert!(matches!(error, ExportError::UnknownTurn { turn: 3, turns: 2, .. }) && out.is_empty());
}

#[test]
fn the_program_exports_to_files_and_says_what_is_wrong() {
    let Some(place) = Place::new() else { return };
    place.once("Hello.", &["--session", "s"]);
    let exported = Exported::read(&place.run(&["session", "export", "s", "--format", "json"]));
    let reply = exported.turns[0].reply.as_ref().unwrap();
    assert_eq!(reply.model.file.as_deref(), Some(STARTER));
    assert!(prompt(&exported.turns[0]).contains("<|im_start|>user\nHello.<|im_end|>"));
    let to = |file: &str, args: &[&str]| {
        let args = [&["session", "export", "s", "--output", file][..], args].concat();
        place.garret(&args).output().unwrap()
    };
    let file = place.home().join("s.json").display().to_string();
    assert!(stderr(&to(&file, &[])).contains("s.json: 1 turn"));
    let first = std::fs::read_to_string(&file).unwrap();
    assert_eq!(Exported::read(&first).turns, exported.turns, "by its name it is JSON");
    place.once("Again.", &["--session", "s"]);
    let complaint = failed(&to(&file, &["--turn", "2"]), 1);
    assert!(complaint.contains("s.json is there already: choose a new file"), "{complaint}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), first, "nothing is written over");
    let second = place.home().join("second.json").display().to_string();
    let complaint = failed(&to(&second, &["--turn", "9"]), 1);
    assert!(complaint.contains("has no turn 9: its turns are 1 to 2"), "{complaint}");
    assert!(!std::path::Path::new(&second).exists(), "nothing is left of what failed");
    succeeded(&to(&second, &["--turn", "2"]));
    assert_eq!(Exported::read(&std::fs::read_to_string(&second).unwrap()).turns[0].turn, 2);
    let complaint = failed(&to("/dev/full", &[]), 1);
    assert!(complaint.contains("/dev/full: it can't be written"), "{complaint}");
    let complaint = failed(&to("/nowhere/s.md", &[]), 1);
    assert!(complaint.contains("/nowhere/s.md: "), "{complaint}");
    let unknown = place.garret(&["session", "export", "x"]).output().unwrap();
    let complaint = failed(&unknown, 1);
    assert!(complaint.contains("no conversation `x`") && stdout(&unknown).is_empty());
}

#[test]
fn nobody_reading_is_no_crash() {
    let Some(place) = Place::new() else { return };
    place.once(&"Hello. ".repeat(2_000), &["--session", "s"]);
    let mut command = place.garret(&["session", "export", "s", "--format", "json"]);
    let mut child = piped(command.stdin(Stdio::null()));
    drop(child.stdout.take());
    let complaint = failed(&child.wait_with_output().unwrap(), 1);
    assert_eq!(complaint, "", "that nobody reads is no error to be told of");
}
