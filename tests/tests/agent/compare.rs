//! The same messages with and without Garret: what the baseline is shown, that nothing of it gets into
//! the conversation, and what the program prints, writes and stops.

use std::sync::Arc;

use garret::Cancel;
use garret::agent::{Agent, Options, Outcome};
use garret_cli::ab::Baseline;
use garret_core::gate::Mode;
use garret_core::id::SessionId;
use garret_core::receipt::{BlockName, OmissionKind};
use garret_hal::clock::ManualClock;
use garret_hal::entropy::SeededEntropy;
use garret_hal::media::RamMedium;
use garret_storage::{NewFact, Pin, Store};
use garret_tests::bytes::ByteEncoder;
use garret_tests::program::{Place, failed, feed, stderr, succeeded};
use garret_tests::scripted::{Act, ScriptedModel};
use garret_tests::talk::{NOW_MS, TestAgent, parts, say, session, texts, turn};
use garret_tests::terminal::{CTRL_C, CTRL_D, Terminal};
use garret_tests::wire::{Answer, ComparedAll};

fn options() -> Options {
    let system_prompt = "Be kind.".into();
    Options { system_prompt, show_time: true, compact_at: 80, ..Options::default() }
}

/// An agent, what it is compared with, and the models of both.
struct Pair {
    garret: TestAgent,
    baseline: Baseline<ScriptedModel, ByteEncoder>,
    model: ScriptedModel,
    other: ScriptedModel,
}

impl Pair {
    fn new(window: u32, options: &Options) -> Self {
        let model = ScriptedModel::new(window, []).companions(|_, _| Act::Say("- noted\n".into()));
        let other = ScriptedModel::new(window, []).companions(|_, _| Act::Say("- noted\n".into()));
        let store = Arc::new(Store::on_medium("test", Box::new(RamMedium::new())).unwrap());
        let garret = Agent::new(parts(&model, store), options.clone()).unwrap();
        let baseline = Baseline::new(
            other.clone(),
            ByteEncoder,
            Arc::new(ManualClock::at_unix_ms(NOW_MS)),
            Arc::new(SeededEntropy::new(1)),
            options,
        );
        Self { garret, baseline: baseline.unwrap(), model, other }
    }

    /// Both answer a message; the baseline's answer.
    fn ask(&mut self, text: &str) -> Outcome {
        self.baseline.follow(self.garret.store(), &session()).unwrap();
        say(&mut self.garret, text);
        self.plain(text)
    }

    fn plain(&mut self, text: &str) -> Outcome {
        let stop = Cancel::new();
        smol::block_on(self.baseline.turn(&session(), text, &stop, &mut |_| {})).unwrap()
    }
}

/// The texts of the newest prompt.
fn last(model: &ScriptedModel) -> Vec<String> {
    texts(model.prompts().last().unwrap())
}

#[test]
fn the_baseline_sees_the_date_its_own_replies_and_the_same_words() {
    let mut pair = Pair::new(8_192, &options());
    let store = pair.garret.store();
    let pinned = NewFact { text: "I am allergic to bee stings.", ..NewFact::default() };
    let at = garret_core::time::WallTime {
        unix_ms: NOW_MS,
        confidence: garret_core::time::Confidence::Good,
    };
    let id = store.add_fact(&pinned, at).unwrap().id;
    store.pin(id, Pin::User).unwrap();
    turn(&mut pair.garret, &"kitchen".parse().unwrap(), "My bees live behind the shed.").unwrap();
    pair.model.then(Act::Say("Behind the shed.".into()));
    pair.other.then(Act::Say("I don't know.".into()));
    pair.ask("Where do my bees live?");
    let first = last(&pair.other);
    assert_eq!(first, ["Be kind.\n\nToday is Friday, 15 January 2027.", "Where do my bees live?"]);
    let shown = last(&pair.model).concat();
    assert!(shown.contains("> My bees live behind the shed") && shown.contains("bee stings"));
    let outcome = pair.ask("And the hens?");
    assert_eq!(
        last(&pair.other)[1..],
        ["Where do my bees live?", "I don't know.", "And the hens?"]
    );
    assert_eq!(last(&pair.other)[0], first[0], "the prefix stays");
    assert_eq!(outcome.receipt.companion_reserve, 0, "nothing runs beside it");
    assert_eq!(outcome.receipt.block(BlockName::Memory).unwrap().ceiling, 0);
    let (other, prompt) = (outcome.receipt.reused_tokens, outcome.receipt.prompt_tokens);
    assert!(other > prompt / 2, "its own cache is whole: {other} of {prompt}");
}

#[test]
fn both_sides_see_who_said_what_in_an_imported_conversation() {
    let mut pair = Pair::new(8_192, &options());
    let at = garret_core::time::WallTime {
        unix_ms: NOW_MS,
        confidence: garret_core::time::Confidence::Good,
    };
    let session = session();
    for name in ["Ada", "Bo"] {
        let speaker = garret_storage::search::Speaker::Named(name);
        let said = garret_storage::ImportedTurn {
            session: &session,
            speaker,
            text: "Bees.",
            at,
            id: None,
        };
        pair.garret.store().import_turns(&[said]).unwrap();
    }
    pair.ask("Well?");
    let expected = ["Ada: Bees.", "(Noted.)", "Bo: Bees.", "(Noted.)", "Well?"];
    assert_eq!(last(&pair.other)[1..], expected);
    // Garret's side is told of the days, too.
    assert_eq!(last(&pair.model)[1], "[Friday 15 January 2027]\nAda: Bees.");
    assert_eq!(last(&pair.model)[2..5], expected[1..4]);
}

/// The baseline has a message by a name under which Garret could keep none. A conversation that Garret
/// gives this name is the same on both sides.
#[test]
fn both_sides_go_on_from_the_same_words_after_a_rename_that_fails() {
    let mut pair = Pair::new(8_192, &options());
    let other: SessionId = "other".parse().unwrap();
    let stop = Cancel::new();
    let said = "Not kept by Garret.";
    smol::block_on(pair.baseline.turn(&other, said, &stop, &mut |_| {})).unwrap();
    pair.ask("Kept.");
    pair.garret.store().rename(&session(), &other).unwrap();
    assert!(pair.baseline.rename(&session(), &other).is_err());
    pair.baseline.follow(pair.garret.store(), &other).unwrap();
    smol::block_on(pair.baseline.turn(&other, "Well?", &stop, &mut |_| {})).unwrap();
    assert_eq!(last(&pair.other)[1..], ["Kept.", "ok", "Well?"]);
    // Nor does anything stay by the old name.
    pair.ask("Anew.");
    assert_eq!(last(&pair.other)[1..], ["Anew."]);
}

#[test]
fn nothing_of_the_baseline_gets_into_the_conversation() {
    let mut pair = Pair::new(8_192, &options());
    pair.other.then(Act::Say("Xylophone.".into()));
    pair.ask("Say a word.");
    smol::block_on(pair.garret.idle(&session()));
    pair.ask("Which word was it?");
    let said = pair.garret.store().with_turns(&session(), 1, |turns| {
        turns.iter().map(|turn| turn.reply.unwrap().text.to_owned()).collect::<Vec<_>>()
    });
    assert_eq!(said.unwrap(), ["ok", "ok"]);
    let shown: String = pair.model.prompts().iter().flat_map(|prompt| texts(prompt)).collect();
    assert!(!shown.contains("Xylophone"), "{shown}");
    assert!(last(&pair.other).concat().contains("Xylophone"));
    assert!(pair.garret.store().verify_erased(b"Xylophone").unwrap().is_empty());
}

/// A conversation much longer than the window: no summaries, no companions, the newest turns.
#[test]
fn the_baseline_shows_the_newest_turns_that_fit() {
    let mut pair = Pair::new(2_048, &Options { companions: Mode::Turbo, ..options() });
    let mut outcome = pair.ask("Remark 0: the hives are well.");
    for n in 1..60 {
        outcome = pair.ask(&format!("Remark {n}: the hives by the fence are well, and so am I."));
        smol::block_on(pair.garret.idle(&session()));
        let receipt = &outcome.receipt;
        assert!(receipt.prompt_tokens + receipt.reply_reserve <= 2_048, "{receipt:?}");
    }
    assert!(!pair.model.asked().is_empty(), "Garret's companions ran");
    assert!(pair.other.asked().is_empty() && pair.other.ahead().is_empty());
    let receipt = &outcome.receipt;
    let from = receipt.history_from.unwrap();
    assert_eq!(receipt.left_out(OmissionKind::OldTurns), from - 1, "none is summed up");
    let shown = last(&pair.other);
    assert_eq!(shown.len() as u64, 2 + 2 * (60 - from));
    assert!(shown[1].starts_with(&format!("Remark {}:", from - 1)));
}

#[test]
fn the_baseline_has_the_same_tools_for_its_own_conversation() {
    let mut pair = Pair::new(16_384, &Options { tools: true, ..options() });
    turn(&mut pair.garret, &"kitchen".parse().unwrap(), "Bees in the kitchen!").unwrap();
    pair.ask("I keep bees in three hives.");
    pair.other.then(Act::Say("<<garret-tool: grep bees in=all>>".into()));
    pair.other.then(Act::Say("Three.".into()));
    let outcome = pair.ask("How many?");
    assert_eq!((outcome.reply.as_str(), outcome.rounds.len()), ("Three.", 1));
    let result = last(&pair.other).pop().unwrap();
    assert!(result.contains("> I keep bees in three hives."), "{result}");
    assert!(!result.contains("kitchen"), "{result}");
}

#[test]
fn the_baseline_goes_on_from_a_conversation_and_follows_its_name() {
    let mut pair = Pair::new(8_192, &options());
    pair.model.then(Act::Say("Hello, Ada.".into()));
    say(&mut pair.garret, "I am Ada.");
    pair.other.then(Act::Say("Ada.".into()));
    pair.ask("Who am I?");
    assert_eq!(last(&pair.other)[1..], ["I am Ada.", "Hello, Ada.", "Who am I?"]);
    // What it said itself isn't replaced by what Garret said.
    let renamed = "renamed".parse().unwrap();
    pair.garret.store().rename(&session(), &renamed).unwrap();
    pair.baseline.rename(&session(), &renamed).unwrap();
    pair.baseline.follow(pair.garret.store(), &renamed).unwrap();
    let stop = Cancel::new();
    smol::block_on(pair.baseline.turn(&renamed, "Sure?", &stop, &mut |_| {})).unwrap();
    assert_eq!(last(&pair.other)[3..], ["Who am I?", "Ada.", "Sure?"]);
    pair.baseline.forget(&renamed).unwrap();
    smol::block_on(pair.baseline.turn(&renamed, "Hello?", &stop, &mut |_| {})).unwrap();
    assert_eq!(last(&pair.other)[1..], ["Hello?"]);
    // One that isn't there is nothing to rename or forget.
    pair.baseline.rename(&session(), &"x".parse().unwrap()).unwrap();
    pair.baseline.forget(&session()).unwrap();
}

const LINES: &str = "My name is Ada and I keep bees.\nHow many hives have I got?\nThanks.\n";

/// The conversation costs and says exactly what it does alone: the baseline has its own cache.
#[test]
fn a_comparison_leaves_the_conversation_as_it_is() {
    let Some(place) = Place::new() else { return };
    let args = ["chat", "--stdin", "--json", "--session", "s", "--companions", "off"];
    let alone = place.garret(&[&args[..], &["--namespace", "alone"]].concat()).output_of(LINES);
    let alone = Answer::read_all(&alone);
    let file = place.home().join("ab.jsonl");
    let with = [&args[..], &["--ab", "--ab-export", file.to_str().unwrap()]].concat();
    let printed = place.garret(&with).output_of(LINES);
    let (compared, all) = ComparedAll::read(&printed);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), printed);
    assert_eq!((compared.len(), all.prompts), (3, 3));
    for (prompt, alone) in compared.iter().zip(&alone) {
        let garret = &prompt.garret;
        assert_eq!((&garret.reply, &garret.receipt), (&alone.reply, &alone.receipt));
        assert_eq!(prompt.turn, Some(alone.turn));
        let baseline = &prompt.baseline;
        assert!(baseline.reply_tokens > 0 && baseline.first_token_ms.unwrap() > 0.0);
        assert!(baseline.total_ms >= baseline.first_token_ms.unwrap());
    }
    let first: Vec<_> = compared.iter().map(|prompt| prompt.first.as_str()).collect();
    assert_eq!(first, ["garret", "baseline", "garret"]);
    let prefilled: u64 = compared.iter().map(|prompt| prompt.baseline.prefilled_tokens).sum();
    assert_eq!((all.baseline.prefilled_tokens, all.baseline.answered), (prefilled, 3));
    let last = &compared[2].baseline;
    assert!(last.reused_tokens > last.prefilled_tokens, "it goes on from its own cache: {last:?}");
    assert_eq!(place.turns("s", &[]).len(), 3);
    let complaint = failed(&place.garret(&with).output().unwrap(), 1);
    assert!(complaint.contains("ab.jsonl is there already: choose a new file"), "{complaint}");
}

#[test]
fn lines_are_labelled_and_the_export_is_markdown_by_its_name() {
    let Some(place) = Place::new() else { return };
    let file = place.home().join("ab.md");
    let args = ["chat", "--ab", "--once", "Hello.", "--ab-export", file.to_str().unwrap()];
    let output = place.garret(&args).output().unwrap();
    let text = succeeded(&output);
    let labels: Vec<_> = text.lines().filter(|line| line.starts_with("--- ")).collect();
    assert_eq!(labels, ["--- With Garret", "--- Without Garret"], "{text}");
    assert!(!text.contains('\x1b') && text.contains("1 message compared"), "{text}");
    assert!(text.contains("    [prompt ") && text.contains("first token"), "{text}");
    assert_eq!(stderr(&output), "");
    let markdown = std::fs::read_to_string(&file).unwrap();
    for words in ["# With and without Garret", "### Without Garret", "```text\nHello.\n```", "| "] {
        assert!(markdown.contains(words), "`{words}` is missing: {markdown}");
    }
    let complaint = failed(&place.garret(&["chat", "--ab-export", "x"]).output().unwrap(), 2);
    assert!(complaint.contains("--ab"), "{complaint}");
}

const STORY: &str = "Tell me a very long story about a beekeeper called Ada.";

/// A pair of replies that go on until they are stopped, at a terminal of so many columns.
fn talkative(place: &Place, columns: u16) -> Terminal {
    let args = ["chat", "--ab", "--session", "s", "--max-tokens", "800", "--repeat-penalty", "1"];
    Terminal::start_wide(&place.garret(&args), columns)
}

#[test]
fn replies_stand_side_by_side_and_each_is_stopped_by_itself() {
    let Some(place) = Place::new() else { return };
    let mut terminal = talkative(&place, 140);
    assert!(terminal.prompt().contains("answered twice"));
    terminal.enter(STORY);
    for label in ["(With Garret) ", "(Without Garret) "] {
        // Once before the reply, and again with each piece of it.
        terminal.expect(label);
        terminal.expect(label);
        terminal.press(CTRL_C);
    }
    let block = terminal.prompt();
    let rows: Vec<_> = block.lines().filter(|line| line.contains(" | ")).collect();
    assert!(rows[0].contains("With Garret (answered first)"), "{block}");
    assert!(rows[0].ends_with("| Without Garret"), "{block}");
    let ended = rows.iter().filter(|row| row.contains("ended: cancelled")).count();
    assert!(ended > 0, "{block}");
    // Before the first row stands what was wiped out for it.
    assert!(rows[1..].iter().all(|row| row.find(" | ") == rows[1].find(" | ")), "{block}");
    let why = terminal.ask("/why");
    assert!(why.contains("Turn 1, window 2048") && why.contains("memory"), "{why}");
    terminal.press(CTRL_D);
    let end = terminal.expect("status=");
    assert!(end.contains("1 message compared") && end.contains("prefilled while waiting"), "{end}");
    let said = place.turns("s", &[]);
    assert_eq!((said.len(), said[0].finish.as_deref()), (1, Some("cancelled")));
}

#[test]
fn a_narrow_terminal_has_one_answer_after_the_other() {
    let Some(place) = Place::new() else { return };
    let mut terminal = talkative(&place, 80);
    terminal.prompt();
    terminal.enter(STORY);
    terminal.expect("--- With Garret\n");
    terminal.expect(" ");
    terminal.press(CTRL_C);
    terminal.expect("--- Without Garret\n");
    terminal.expect(" ");
    terminal.press(CTRL_C);
    assert!(terminal.prompt().contains("ended: cancelled]"));
    terminal.enter("/delete s");
    terminal.prompt();
    terminal.press(CTRL_D);
    assert_eq!(terminal.status(), 0);
}

trait OutputOf {
    fn output_of(self, input: &str) -> String;
}

impl OutputOf for std::process::Command {
    /// Standard output for an input; nothing may be on standard error.
    fn output_of(mut self, input: &str) -> String {
        let output = feed(&mut self, input.as_bytes());
        assert_eq!(stderr(&output), "");
        succeeded(&output)
    }
}

#[test]
fn a_record_that_can_t_be_begun_asks_nothing() {
    let Some(place) = Place::new() else { return };
    let args = ["chat", "--ab", "--once", "Hello.", "--ab-export", "/nowhere/ab.md"];
    let complaint = failed(&place.garret(&args).output().unwrap(), 1);
    assert!(complaint.contains("/nowhere/ab.md: "), "{complaint}");
    assert!(place.run(&["session", "list", "--json"]).is_empty());
}
