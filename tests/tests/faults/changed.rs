//! Between two runs, or two turns, everything changes: window, model, settings, the clock, the
//! length of what is said.

use garret::agent::Options;
use garret_core::gate::Mode;
use garret_core::receipt::Receipt;
use garret_core::time::{Confidence, WallTime};
use garret_storage::{NewFact, Pin};
use garret_tests::disk::Disk;
use garret_tests::scripted::Act;
use garret_tests::talk::{NOW_MS, session};
use proptest::prelude::*;

use crate::talk::{Talk, WINDOW, model, options, remark};

/// No turn is in no prompt and under no summary.
fn assert_no_gap(talk: &Talk, receipt: &Receipt, turn: u64) {
    let shown = receipt.history_from.unwrap_or(turn);
    let frontier = talk.store().frontier(&session()).unwrap();
    assert!(shown <= frontier + 1, "turn {turn}: history from {shown}, covered up to {frontier}");
}

#[test]
fn another_window_model_or_setting_loses_nothing() {
    let off = || Options { companions: Mode::Off, ..options() };
    let runs: [(u32, u8, Options); 8] = [
        (8_192, 7, options()),
        (4_096, 7, options()),
        (32_768, 7, options()),
        (32_768, 8, options()),
        (2_048, 8, off()),
        (8_192, 7, Options { tools: true, ..options() }),
        (8_192, 7, Options { compact_at: 0, ..options() }),
        (8_192, 9, Options { system_prompt: "Be brief.".into(), ..options() }),
    ];
    let mut images = Disk::new().images();
    for (window, mark, options) in runs {
        let head = options.system_prompt.clone();
        let model = model(window).with_fingerprint([mark; 32]);
        let mut talk = Talk::on(Disk::of(images), model, options);
        talk.agent.resume(&session());
        let before = talk.said();
        talk.check();
        for n in 0..14 {
            let turn = before.len() as u64 + n + 1;
            let receipt = talk.say(&remark(turn)).receipt;
            assert!(receipt.prompt_tokens + receipt.reply_reserve <= window);
            assert!(talk.prompt().contains(&*head));
            talk.idle();
            talk.check();
        }
        assert!(talk.said().starts_with(&before));
        images = talk.disk.images();
    }
}

/// A reply that makes the conversation longer than any prompt may be is no reason to do nothing.
#[test]
fn one_long_turn_is_summed_up_in_time() {
    let mut talk = Talk::on(Disk::new(), model(8_192), options());
    for turn in 1..=60 {
        let long = turn % 6 == 0;
        let words = if long { "and so on, ".repeat(120) } else { String::new() };
        talk.model.then(Act::Say(if long { "Well, well. ".repeat(80) } else { "ok".into() }));
        let receipt = talk.say(&format!("{} {words}", remark(turn))).receipt;
        assert_no_gap(&talk, &receipt, turn);
        talk.idle();
        talk.check();
    }
}

#[test]
fn the_shortest_messages_are_summed_up_too() {
    for (said, reply) in [("k", ""), ("k", "k"), ("\u{871c}", " ")] {
        let mut talk = Talk::on(Disk::new(), model(2_048), options());
        for turn in 1..=200 {
            talk.model.then(Act::Say(reply.into()));
            let receipt = talk.say(said).receipt;
            assert_no_gap(&talk, &receipt, turn);
            let done = talk.idle().summaries;
            assert!(!done.failed, "turn {turn}: {done:?}");
        }
        talk.check();
    }
}

#[test]
fn a_message_far_larger_than_the_window_is_summed_up() {
    let mut talk = Talk::new();
    for turn in 1..=9 {
        let text = "A very long story of bees in row after row. ".repeat(1_000);
        let receipt = talk.say(&text).receipt;
        assert_no_gap(&talk, &receipt, turn);
        let done = talk.idle().summaries;
        assert!(!done.failed, "turn {turn}: {done:?}");
    }
    talk.check();
    assert!(talk.store().frontier(&session()).unwrap() > 3);
}

/// A clock that isn't set shows 1970; one that is set back shows what is past.
#[test]
fn no_clock_keeps_a_conversation_from_going_on_or_dates_it_wrongly() {
    let mut talk = Talk::on(Disk::new(), model(WINDOW), Options { show_time: true, ..options() });
    for n in 0..60 {
        let (unix_ms, confidence) = match n {
            0..30 => (n * 60_000, Confidence::Wrong),
            30..40 => (NOW_MS, Confidence::Good),
            40..50 => (NOW_MS - 400 * 86_400_000, Confidence::Good),
            _ => (-1, Confidence::Wrong),
        };
        talk.clock.set_wall(WallTime { unix_ms, confidence });
        talk.say(&remark(n as u64 + 1));
        assert!(!talk.prompt().contains("1970"), "{}", talk.prompt());
        talk.idle();
        talk.check();
        for asked in talk.model.asked() {
            assert!(!crate::talk::text(&asked.prompt).contains("1970"));
        }
    }
    assert!(talk.store().frontier(&session()).unwrap() > 40);
}

/// The part of the prompts that stays the same is a record of bounded size, however many bytes a
/// token has.
#[test]
fn many_long_pins_keep_no_compaction_from_the_prompt() {
    let mut talk = Talk::on(Disk::new(), model(200_000), options());
    for n in 0..40 {
        let text = format!("Pin {n} {}", "and more of the same ".repeat(400));
        let at = WallTime { unix_ms: NOW_MS, confidence: Confidence::Good };
        let fact = talk.store().add_fact(&NewFact { text: &text, ..NewFact::default() }, at);
        talk.store().pin(fact.unwrap().id, Pin::User).unwrap();
    }
    talk.say("Hello.");
    assert!(talk.agent.session_prefix(&session()).unwrap().is_some());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3))]

    /// For any lengths of messages and replies, with idle time after each turn all turns are in the
    /// prompt or under a summary, and the records agree. Only a message that is longer than what
    /// compaction keeps free can push turns out, until the idle time after it.
    #[test]
    fn any_lengths_leave_no_gap(
        lengths in prop::collection::vec((1_usize..3_000, 0_usize..1_200), 5..18),
    ) {
        let mut talk = Talk::on(Disk::new(), model(8_192), options());
        for (turn, (message, reply)) in (1..).zip(lengths) {
            let words = |length: usize| "the bees were counted. ".repeat(length / 23 + 1);
            talk.model.then(Act::Say(words(reply)[..reply].to_owned()));
            let text = format!("{turn} {}", &words(message)[..message]);
            let receipt = talk.say(&text).receipt;
            let free = (receipt.n_ctx - receipt.reply_reserve - receipt.companion_reserve) / 5;
            if message as u32 + 100 < free {
                assert_no_gap(&talk, &receipt, turn);
            }
            talk.idle();
            assert_no_gap(&talk, &receipt, turn);
        }
        talk.check();
    }
}
