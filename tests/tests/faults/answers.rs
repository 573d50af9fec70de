//! A companion answers nonsense, nothing, its own prompt, without end, in no text, or not at all.

use std::sync::{Arc, OnceLock};

use garret_core::model::ModelRole;
use garret_hal::clock::ManualClock;
use garret_tests::disk::Disk;
use garret_tests::scripted::{Act, ScriptedModel};

use crate::talk::{Talk, WINDOW, model, options, remark, text};

const SAID: &str = "I work at Acme with my sister and her dogs on big projects.";

/// A conversation with such a companion: nothing that it said is stored or shown, what is summed up
/// is so without it, and the next turn works.
fn goes_on(act: impl Fn(&str) -> Act + Send + Sync + 'static) {
    let model = ScriptedModel::new(WINDOW, []).companions(move |role, prompt| match role {
        ModelRole::Rebase => Act::Say(String::new()),
        _ => act(&text(prompt)),
    });
    let mut talk = Talk::on(Disk::new(), model, options());
    for turn in 0..30 {
        talk.say(&if turn == 3 { SAID.to_owned() } else { remark(turn) });
        assert!(!talk.prompt().contains("[Inferred"), "{}", talk.prompt());
        talk.idle();
        talk.check();
        // A while later a companion that failed is asked again.
        talk.clock.advance_us(3_600_000_000);
    }
    let facts = talk.facts();
    assert!(facts[0].starts_with("persona") || facts[0].starts_with("works_at"), "{facts:?}");
    for summary in talk.store().summaries(&garret_tests::talk::session()).unwrap() {
        assert_eq!(summary.method.as_str(), "extract", "{summary:?}");
    }
}

#[test]
fn nonsense_changes_nothing() {
    goes_on(|_| Act::Say("zxq wvut 77123 ".repeat(9)));
    goes_on(|_| Act::Say(String::new()));
    goes_on(|_| Act::Say(" \n\t\n".into()));
}

#[test]
fn its_own_prompt_changes_nothing() {
    goes_on(|prompt| Act::Say(prompt.to_owned()));
}

#[test]
fn an_endless_line_changes_nothing() {
    goes_on(|_| Act::Say("- bees ".repeat(4_000)));
}

#[test]
fn what_is_no_text_changes_nothing() {
    goes_on(|_| Act::Bytes(vec![0xff, 0xfe, 0xc3, 0x28, 0xed, 0xa0, 0x80, b'\n', 0xf0, 0x9f]));
}

#[test]
fn an_error_in_the_middle_changes_nothing() {
    goes_on(|_| Act::Fail("- the bees by the fence were counted".into()));
    goes_on(|_| Act::Refuse);
}

/// Whichever companion hangs is given up by the clock, and the idle work after it is done.
#[test]
fn a_companion_that_never_answers_is_given_up() {
    for hangs in [ModelRole::Inferrer, ModelRole::Compactor] {
        let slot = Arc::new(OnceLock::<Arc<ManualClock>>::new());
        let clock = Arc::clone(&slot);
        let model = model(WINDOW).companions(move |role, _| {
            if role == hangs {
                clock.get().unwrap().advance_us(3_600_000_000);
                return Act::SayAndWait("plain: 2".into());
            }
            Act::Say("- the bees by the fence were counted again\n".into())
        });
        let mut talk = Talk::on(Disk::new(), model, options());
        slot.set(Arc::clone(&talk.clock)).unwrap();
        for turn in 0..24 {
            talk.say(&if turn == 3 { SAID.to_owned() } else { remark(turn) });
            talk.idle();
        }
        talk.check();
        assert!(talk.facts().iter().any(|fact| fact.starts_with("works_at")));
        assert_eq!(talk.said().len(), 24);
    }
}
