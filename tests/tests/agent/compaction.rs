//! SummaryRun on a scripted model and a real store: what is covered, what is asked, what happens
//! when the companion, the disk or the power fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use garret::Cancel;
use garret::agent::{Agent, Options, Outcome, Parts, SummaryRun, When};
use garret_core::compact::Cause;
use garret_core::gate::Mode;
use garret_core::model::ModelRole;
use garret_core::time::{Confidence, WallTime};
use garret_hal::clock::ManualClock;
use garret_hal::entropy::SeededEntropy;
use garret_hal::media::{Faults, FaultyMedium};
use garret_storage::{Store, Summary, SummaryMethod};
use garret_tests::bytes::ByteEncoder;
use garret_tests::scripted::{Act, ScriptedModel};
use garret_tests::talk::{TestAgent, say, session, tell, texts};
use smol::future::or;

const AT: WallTime = WallTime { unix_ms: 1_790_000_000_000, confidence: Confidence::Good };

/// A conversation and all that it runs on.
struct Talk {
    agent: TestAgent,
    model: ScriptedModel,
    medium: FaultyMedium,
    clock: Arc<ManualClock>,
}

impl Talk {
    fn new(model: ScriptedModel) -> Self {
        let medium = FaultyMedium::new(Faults::default());
        let clock = Arc::new(ManualClock::at_unix_ms(1_800_000_000_000));
        let agent = agent(&model, &medium, &clock);
        Self { agent, model, medium, clock }
    }

    /// The same after the power went off and came back.
    fn reopened(&self) -> Self {
        let image = self.medium.durable_image();
        let medium = FaultyMedium::with_image(image, Faults::default());
        let agent = agent(&self.model, &medium, &self.clock);
        Self { agent, model: self.model.clone(), medium, clock: Arc::clone(&self.clock) }
    }

    fn say(&mut self, text: &str) -> Outcome {
        say(&mut self.agent, text)
    }

    fn idle(&mut self) -> SummaryRun {
        smol::block_on(self.agent.idle(&session())).summaries
    }

    fn summarise(&mut self, when: When) -> SummaryRun {
        smol::block_on(self.agent.summarise(&session(), when))
    }

    /// Says `count` things of about 120 tokens.
    fn chat(&mut self, count: usize) {
        let said = self.turns();
        for n in 0..count as u64 {
            self.say(&remark(said + n + 1));
        }
    }

    fn turns(&self) -> u64 {
        self.agent.store().session(&session()).unwrap().map_or(0, |session| session.turns)
    }

    fn summaries(&self) -> Vec<Summary> {
        self.agent.store().summaries(&session()).unwrap()
    }

    fn frontier(&self) -> u64 {
        self.agent.store().frontier(&session()).unwrap()
    }

    /// Leaves follow each other from turn 1 to the frontier, and so do the roots.
    fn assert_covered_once(&self) {
        let all = self.summaries();
        let leaves: Vec<_> = all.iter().filter(|summary| summary.depth == 0).collect();
        let roots = self.agent.store().roots(&session()).unwrap();
        for run in [
            leaves.iter().map(|s| (s.from, s.to)).collect::<Vec<_>>(),
            roots.iter().map(|s| (s.from, s.to)).collect(),
        ] {
            let mut next = 1;
            for (from, to) in run {
                assert_eq!(from, next, "{all:?}");
                next = to + 1;
            }
            assert_eq!(next, self.frontier() + 1);
        }
    }
}

fn agent(model: &ScriptedModel, medium: &FaultyMedium, clock: &Arc<ManualClock>) -> TestAgent {
    let clock: Arc<ManualClock> = Arc::clone(clock);
    let parts = Parts {
        model: model.clone(),
        encoder: ByteEncoder,
        store: Arc::new(Store::on_medium("test", Box::new(medium.clone())).unwrap()),
        embedder: None,
        clock,
        entropy: Arc::new(SeededEntropy::new(1)),
    };
    let options = Options {
        system_prompt: "Be kind.".into(),
        compact_at: 80,
        companions: Mode::Off,
        ..Options::default()
    };
    Agent::new(parts, options).unwrap()
}

/// The words of the user in a turn, with a figure that no other turn has.
fn remark(turn: u64) -> String {
    format!(
        "Remark {turn}: the hive by the Fence {turn} holds {} bees today, I think.",
        turn * 1_009
    )
}

/// A companion that says something short.
fn brief(n_ctx: u32) -> ScriptedModel {
    ScriptedModel::new(n_ctx, []).companions(|_, _| Act::Say("- bees were counted\n".into()))
}

fn never_asked(n_ctx: u32) -> (ScriptedModel, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let model = ScriptedModel::new(n_ctx, []).companions(move |role, _| {
        counted.fetch_add(usize::from(role != ModelRole::Rebase), Ordering::SeqCst);
        Act::Say("- bees were counted\n".into())
    });
    (model, calls)
}

#[test]
fn a_summary_is_asked_for_on_a_fork_of_the_conversation() {
    let mut talk = Talk::new(brief(8_192));
    talk.chat(40);
    assert_eq!(talk.summarise(When::Pressed), SummaryRun::default(), "nothing presses yet");
    let done = talk.summarise(When::Asked);
    assert_eq!((done.cause, done.leaves > 0), (Some(Cause::Asked), true));
    let asked: Vec<_> =
        talk.model.asked().into_iter().filter(|asked| asked.role == ModelRole::Compactor).collect();
    let first = talk.agent.store().summaries(&session()).unwrap().remove(0);
    let texts = texts(&asked[0].prompt);
    // The system message, the turns that are summed up, and the instruction.
    assert_eq!(texts.len() as u64, 1 + 2 * first.to + 1);
    assert_eq!(texts[1], remark(1));
    assert_eq!(texts[texts.len() - 3], remark(first.to));
    let instruction = texts.last().unwrap();
    assert!(instruction.contains(&format!("turns 1 to {}", first.to)), "{instruction}");
    assert!(instruction.contains("January 2027"), "{instruction}");
    for asked in &asked {
        let decoded = asked.prompt.len() - asked.reused;
        assert!(decoded <= instruction.len() + 80, "{decoded}");
        assert!(asked.grammar.is_some());
    }
    talk.assert_covered_once();
}

#[test]
fn a_second_compaction_has_nothing_to_do() {
    let (model, calls) = never_asked(8_192);
    let mut talk = Talk::new(model);
    talk.chat(45);
    assert!(talk.summarise(When::Asked).leaves > 0);
    let (before, asked) = (talk.summaries(), calls.load(Ordering::SeqCst));
    for when in [When::Asked, When::Idle, When::Pressed] {
        let done = talk.summarise(when);
        assert_eq!((done.leaves, done.condensed, done.calls, done.rebased), (0, 0, 0, 0));
    }
    assert_eq!(calls.load(Ordering::SeqCst), asked);
    assert_eq!(talk.summaries(), before);
}

/// After a compaction the prompt begins with what was summed up, history with the tail, and the
/// next turn finds both in the cache.
#[test]
fn the_next_turn_finds_the_new_prompt_in_the_cache() {
    let mut talk = Talk::new(brief(8_192));
    talk.chat(45);
    let before = talk.say("Before.").receipt;
    let done = talk.summarise(When::Asked);
    let rebased = talk.model.asked().into_iter().find(|asked| asked.role == ModelRole::Rebase);
    let rebased = rebased.unwrap().prompt;
    let after = talk.say("After.");
    let prompt = talk.model.prompts().pop().unwrap();
    assert!(prompt.starts_with(&rebased));
    assert!(after.receipt.prompt_tokens * 2 < before.prompt_tokens, "{:?}", after.receipt);
    assert_eq!(after.receipt.history_from, Some(talk.frontier() + 1));
    assert!(texts(&prompt)[0].contains("bees were counted"), "{}", texts(&prompt)[0]);
    assert!(done.rebased > 0);
}

/// sherlock-context 1.12.2, W1: an answer that was no summary twice over lost the turns it was
/// about.
#[test]
fn a_companion_that_answers_badly_is_done_without() {
    let thought = "<think>The user talks of bees, and so I should".to_owned();
    let long = format!("- {}\n", "bees and more bees ".repeat(200));
    for bad in [String::new(), "\n- \n".into(), thought, long.clone(), long.repeat(20)] {
        let said = bad.clone();
        let model = ScriptedModel::new(8_192, []).companions(move |_, _| Act::Say(said.clone()));
        let mut talk = Talk::new(model);
        talk.chat(45);
        let done = talk.summarise(When::Asked);
        assert!(done.leaves > 0 && done.extracts == done.leaves, "{done:?}");
        assert_eq!(done.calls, 2 * done.leaves, "once, and once for a shorter one");
        for summary in talk.summaries() {
            assert_eq!(summary.method, SummaryMethod::Extract);
            assert!(!summary.text.trim().is_empty() && summary.tokens < summary.source_tokens);
            assert!(summary.text.contains("Remark"), "{}", summary.text);
        }
        talk.assert_covered_once();
        talk.say("And then?");
    }
}

#[test]
fn a_shorter_summary_is_asked_for_when_the_first_is_none() {
    let turn = AtomicBool::new(false);
    let model = ScriptedModel::new(8_192, []).companions(move |_, _| {
        let first = !turn.fetch_xor(true, Ordering::SeqCst);
        Act::Say(if first { "...".into() } else { "- bees were counted\n".into() })
    });
    let mut talk = Talk::new(model);
    talk.chat(45);
    talk.summarise(When::Asked);
    assert!(talk.summaries().iter().all(|summary| summary.method == SummaryMethod::Shorter));
}

/// An error is no summary: nothing is written, the next turn goes on as before, and the model is
/// left alone for a while, then for longer.
#[test]
fn a_companion_that_fails_changes_nothing() {
    let works = Arc::new(AtomicBool::new(false));
    let (flag, calls) = (Arc::clone(&works), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&calls);
    let model = ScriptedModel::new(8_192, []).companions(move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        match flag.load(Ordering::SeqCst) {
            true => Act::Say("- bees were counted\n".into()),
            false => Act::Fail("- error 401: unauthorised".into()),
        }
    });
    let mut talk = Talk::new(model);
    talk.chat(45);
    let before = talk.model.prompts().pop().unwrap();
    for failures in 1..=5 {
        let done = talk.summarise(When::Asked);
        assert!(done.failed && done.leaves == 0, "{done:?}");
        assert_eq!(calls.load(Ordering::SeqCst), failures);
        assert!(talk.summaries().is_empty());
        assert_eq!(talk.summarise(When::Asked).calls, 0, "it is left alone");
        talk.clock.advance_us(240 * 1_000_000);
    }
    assert_eq!(talk.summarise(When::Asked).calls, 0, "for half an hour");
    talk.say("Go on.");
    assert!(talk.model.prompts().pop().unwrap().starts_with(&before));
    works.store(true, Ordering::SeqCst);
    talk.clock.advance_us(30 * 60 * 1_000_000);
    assert!(talk.summarise(When::Asked).leaves > 0);
    talk.assert_covered_once();
}

/// Only a failure without any progress is a reason to leave the model alone.
#[test]
fn a_companion_that_gets_on_is_asked_again_at_once() {
    let calls = AtomicUsize::new(0);
    let model = ScriptedModel::new(8_192, []).companions(move |role, _| {
        let works =
            role == ModelRole::Rebase || calls.fetch_add(1, Ordering::SeqCst).is_multiple_of(2);
        if works { Act::Say("- bees were counted\n".into()) } else { Act::Refuse }
    });
    let mut talk = Talk::new(model);
    for n in 1..=200 {
        talk.agent.store().accept(&session(), &remark(n), AT).unwrap();
    }
    talk.say("Hello again.");
    for made in 1..=7 {
        let done = talk.summarise(When::Asked);
        assert!(done.failed && (done.calls, done.leaves) == (1, 1), "{made}: {done:?}");
        talk.assert_covered_once();
    }
}

/// A companion that answers, but slowly, works until the time of one compaction is over; what it
/// made is kept, and the next one goes on from there.
#[test]
fn a_compaction_ends_in_time_and_keeps_what_it_made() {
    let slot = Arc::new(std::sync::OnceLock::<Arc<ManualClock>>::new());
    let clock = Arc::clone(&slot);
    let model = ScriptedModel::new(8_192, []).companions(move |role, _| {
        if role != ModelRole::Rebase {
            clock.get().unwrap().advance_us(170 * 1_000_000);
        }
        Act::Say("- bees were counted\n".into())
    });
    let mut talk = Talk::new(model);
    slot.set(Arc::clone(&talk.clock)).unwrap();
    for n in 1..=200 {
        talk.agent.store().accept(&session(), &remark(n), AT).unwrap();
    }
    talk.say("Hello again.");
    let first = talk.summarise(When::Asked);
    assert!(first.failed && (3..=4).contains(&first.leaves), "{first:?}");
    assert_eq!(talk.summaries().len() as u32, first.leaves);
    talk.assert_covered_once();
    let second = talk.summarise(When::Asked);
    assert!(second.leaves > 0, "{second:?}");
    assert_eq!(talk.summaries().len() as u32, first.leaves + second.leaves + second.condensed);
    talk.assert_covered_once();
}

/// Turns that the model refused are no gap: they are in the prompt, or summed up like all others.
#[test]
fn turns_that_were_never_answered_are_summed_up_too() {
    let refused = vec![Act::Refuse; 90];
    let model = ScriptedModel::new(8_192, refused)
        .companions(|_, _| Act::Say("- bees were counted\n".into()));
    let mut talk = Talk::new(model);
    let turn = |talk: &mut Talk, n| {
        let stop = Cancel::new();
        smol::block_on(talk.agent.turn(&session(), &remark(n), &stop, &mut |_| {}))
    };
    for n in 1..=90 {
        assert!(turn(&mut talk, n).is_err());
        talk.idle();
        talk.assert_covered_once();
    }
    assert!(talk.frontier() > 20, "{}", talk.frontier());
    let receipt = talk.say("Are you there?").receipt;
    assert!(receipt.history_from.unwrap() <= talk.frontier() + 1, "{receipt:?}");
}

/// Without spaces and letters of ASCII a summary is one all the same, with a companion and without.
#[test]
fn a_conversation_in_any_script_is_summed_up() {
    for (said, points) in [
        (
            "\u{6628}\u{65e5}\u{3001}\u{873f}\u{871c}\u{3092}\u{4e94}\u{74f6}\u{58f2}\u{3063}\u{305f}\u{3002}",
            "\u{873f}\u{871c}\u{3092}\u{58f2}\u{3063}\u{305f}",
        ),
        (
            "\u{412}\u{447}\u{435}\u{440}\u{430} \u{44f} \u{43f}\u{440}\u{43e}\u{434}\u{430}\u{43b} \u{43c}\u{451}\u{434}.",
            "\u{43f}\u{440}\u{43e}\u{434}\u{430}\u{43b} \u{43c}\u{451}\u{434}",
        ),
        (
            "\u{623}\u{645}\u{633} \u{628}\u{639}\u{62a} \u{627}\u{644}\u{639}\u{633}\u{644}.",
            "\u{628}\u{639}\u{62a} \u{627}\u{644}\u{639}\u{633}\u{644}",
        ),
        ("\u{1f41d}\u{1f36f}\u{1f41d}", "\u{1f36f}"),
    ] {
        for works in [true, false] {
            let answer = if works { format!("- {points}\n") } else { "...".into() };
            let model =
                ScriptedModel::new(8_192, []).companions(move |_, _| Act::Say(answer.clone()));
            let mut talk = Talk::new(model);
            for n in 1..=60 {
                talk.say(&format!("{n} {}", said.repeat(4)));
            }
            let done = talk.summarise(When::Asked);
            assert!(!done.failed && done.leaves > 0, "{said}: {done:?}");
            talk.assert_covered_once();
            for summary in talk.summaries() {
                assert!(summary.tokens < summary.source_tokens, "{summary:?}");
                assert_eq!(summary.tokens as usize, summary.text.len());
                if works && said.chars().any(char::is_alphabetic) {
                    assert_eq!(summary.text, points, "{summary:?}");
                }
            }
        }
    }
}

#[test]
fn a_companion_that_hangs_is_given_up() {
    let slot = Arc::new(std::sync::OnceLock::<Arc<ManualClock>>::new());
    let clock = Arc::clone(&slot);
    let model = ScriptedModel::new(8_192, []).companions(move |_, _| {
        clock.get().unwrap().advance_us(3_600 * 1_000_000);
        Act::SayAndWait("- bees".into())
    });
    let mut talk = Talk::new(model);
    slot.set(Arc::clone(&talk.clock)).unwrap();
    talk.chat(45);
    let done = talk.summarise(When::Asked);
    assert!(done.failed && done.leaves == 0, "{done:?}");
    assert!(talk.summaries().is_empty());
    talk.say("And then?");
}

/// Turns that don't fit while the model is left alone are summed up without it.
#[test]
fn a_full_prompt_is_compacted_even_when_the_model_is_left_alone() {
    let model = ScriptedModel::new(8_192, []).companions(|_, _| Act::Refuse);
    let mut talk = Talk::new(model);
    talk.chat(45);
    assert!(talk.summarise(When::Asked).failed);
    talk.chat(35);
    let done = talk.summarise(When::Pressed);
    assert_eq!((done.cause, done.calls), (Some(Cause::Full), 0));
    assert!(done.leaves > 0 && done.extracts == done.leaves + done.condensed, "{done:?}");
    talk.assert_covered_once();
}

/// sherlock-context 1.12.2, W2: after a restart the first compaction began with the newest turns
/// and counted all before as covered. Turns that were there before it are summed up from the first
/// one on.
#[test]
fn an_old_conversation_is_covered_from_its_beginning() {
    let mut talk = Talk::new(brief(8_192));
    for n in 1..=200 {
        let answer = "Noted, thank you for telling me.";
        tell(talk.agent.store(), &session(), &remark(n), answer, AT);
    }
    talk.say("Hello again.");
    let asked = talk.idle();
    assert_eq!(asked.cause, Some(Cause::Full), "turns are in no prompt: {asked:?}");
    talk.assert_covered_once();
    let asked = talk.model.asked();
    let first = asked.iter().find(|asked| asked.role == ModelRole::Compactor).unwrap();
    let text = texts(&first.prompt).concat();
    assert!(text.contains("| turn 1 | user] Remark 1:"), "{text}");
    assert!(text.contains("| turn 1 | assistant] Noted"), "{text}");
    for _ in 0..10 {
        talk.idle();
    }
    assert!(talk.frontier() > 150, "{}", talk.frontier());
    let next = talk.say("What now?").receipt;
    assert_eq!(next.history_from, Some(talk.frontier() + 1));
}

/// The process dies after a summary was stored and before the prompt begins with it.
#[test]
fn what_was_summed_up_before_a_power_cut_is_not_asked_for_again() {
    let image = Arc::new(std::sync::Mutex::new(None));
    let (seen, medium) = (Arc::clone(&image), Arc::new(std::sync::OnceLock::<FaultyMedium>::new()));
    let probe = Arc::clone(&medium);
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let model = ScriptedModel::new(8_192, []).companions(move |role, _| {
        if role == ModelRole::Rebase {
            seen.lock().unwrap().get_or_insert(probe.get().unwrap().durable_image());
        } else {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        Act::Say("- bees were counted\n".into())
    });
    let mut talk = Talk::new(model);
    medium.set(talk.medium.clone()).unwrap();
    talk.chat(45);
    let before = talk.model.prompts().pop().unwrap();
    let done = talk.summarise(When::Asked);
    let asked = calls.load(Ordering::SeqCst);
    let cut = image.lock().unwrap().take().unwrap();
    talk.medium = FaultyMedium::with_image(cut, Faults::default());
    let mut again = Talk {
        agent: agent(&talk.model, &talk.medium, &talk.clock),
        model: talk.model.clone(),
        medium: talk.medium.clone(),
        clock: Arc::clone(&talk.clock),
    };
    again.assert_covered_once();
    assert_eq!(again.summaries().len() as u32, done.leaves);
    again.say("And then?");
    let prompt = again.model.prompts().pop().unwrap();
    assert!(prompt.starts_with(&before), "the prompt is the one of before the cut");
    assert!(again.idle().rebased > 0);
    assert_eq!(calls.load(Ordering::SeqCst), asked, "nothing is summed up twice");
    let after = again.say("Now?").receipt;
    assert_eq!(after.history_from, Some(again.frontier() + 1));
    assert!(again.reopened().summaries() == again.summaries());
}

#[test]
fn a_full_disk_loses_nothing() {
    let mut talk = Talk::new(brief(8_192));
    talk.chat(45);
    let capacity = Some(talk.medium.image().len() as u64);
    talk.medium.set_faults(Faults { capacity, ..Faults::default() });
    // The journal may have a little room left; then some summaries are stored.
    for _ in 0..200 {
        if talk.summarise(When::Asked).failed {
            break;
        }
        talk.agent.store().accept(&"other".parse().unwrap(), &"x".repeat(4_000), AT).ok();
    }
    talk.assert_covered_once();
    talk.medium.set_faults(Faults::default());
    talk.chat(20);
    assert!(!talk.summarise(When::Asked).failed);
    talk.assert_covered_once();
    let next = talk.say("What now?").receipt;
    assert_eq!(next.history_from, Some(talk.frontier() + 1));
}

/// A message that comes in the middle finds the prompt as it was; what was made is kept.
#[test]
fn a_message_in_the_middle_finds_everything_as_it_was() {
    let (asked, told) = smol::channel::unbounded();
    let calls = AtomicUsize::new(0);
    let model = ScriptedModel::new(8_192, []).companions(move |_, _| {
        asked.try_send(()).unwrap();
        match calls.fetch_add(1, Ordering::SeqCst) {
            1 => Act::SayAndWait("- be".into()),
            _ => Act::Say("- bees were counted\n".into()),
        }
    });
    let mut talk = Talk::new(model);
    talk.chat(48);
    let before = talk.model.prompts().pop().unwrap();
    let session = session();
    let work = async {
        talk.agent.summarise(&session, When::Asked).await;
    };
    let second = async {
        told.recv().await.unwrap();
        told.recv().await.unwrap();
    };
    smol::block_on(or(work, second));
    let made = talk.summaries();
    assert_eq!(made.len(), 1, "the first was stored, the second was on its way");
    talk.say("Wait.");
    assert!(talk.model.prompts().pop().unwrap().starts_with(&before));
    talk.summarise(When::Asked);
    assert_eq!(talk.summaries()[0], made[0]);
    talk.assert_covered_once();
}

/// A thousand turns in a window of 8K: each is in the prompt or under exactly one leaf, the prompt
/// grows no further, and summaries are summed up in turn.
#[test]
fn a_thousand_turns_are_all_there() {
    let model = ScriptedModel::new(8_192, []).companions(|_, _| {
        Act::Say(format!("- {}\n", "bees were counted and hives were named ".repeat(3).trim()))
    });
    let mut talk = Talk::new(model);
    let mut most = 0;
    for n in 1..=1_000 {
        let receipt = talk.say(&remark(n)).receipt;
        let shown = receipt.history_from.unwrap_or(n);
        assert!(shown <= talk.frontier() + 1, "turn {n}: {shown}, {}", talk.frontier());
        assert!(receipt.prompt_tokens <= 8_192 - 1_024 - 512);
        most = if n >= 200 { most.max(receipt.prompt_tokens) } else { most };
        talk.idle();
    }
    talk.assert_covered_once();
    let late = talk.say("The end.").receipt.prompt_tokens;
    assert!(late <= most, "{late} {most}");
    let summaries = talk.summaries();
    let deepest = summaries.iter().map(|summary| summary.depth).max().unwrap();
    assert!(deepest >= 2, "{deepest}");
    let by_id = |id| summaries.iter().find(|summary| summary.id == id).unwrap();
    for node in summaries.iter().filter(|summary| summary.depth > 0) {
        let sources: Vec<_> = node.sources.iter().map(|id| by_id(*id)).collect();
        assert!(sources.iter().all(|source| source.depth + 1 == node.depth));
        assert!(sources.iter().all(|source| source.parent == Some(node.id)));
        assert_eq!((sources[0].from, sources.last().unwrap().to), (node.from, node.to));
        assert!(sources.windows(2).all(|pair| pair[0].to + 1 == pair[1].from));
    }
}
