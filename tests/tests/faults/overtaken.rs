//! A turn, and the idle work after it, that are overtaken by a forget: at every look at the clock
//! and every request of a model, which is between any two steps that take time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use garret::agent::{Agent, Options, Parts};
use garret_core::model::ModelRole;
use garret_core::time::{Clock, Confidence, WallTime};
use garret_hal::clock::ManualClock;
use garret_storage::{FactFilter, Selection, Store};
use garret_tests::disk::Disk;
use garret_tests::scripted::{Act, ScriptedModel};
use garret_tests::talk::{NOW_MS, TestAgent, parts, session, tell, turn};

use crate::talk::{READING, WINDOW, options, text};

const AT: WallTime = WallTime { unix_ms: NOW_MS, confidence: Confidence::Good };
const SECRET: &str = "xylophone";

/// Forgets [`SECRET`] at a moment to come.
#[derive(Default)]
struct Forgetful {
    store: OnceLock<Arc<Store>>,
    /// Moments until then; 0 for never.
    left: AtomicUsize,
}

impl Forgetful {
    fn moment(&self) {
        let less = |left: usize| left.checked_sub(1);
        if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less) == Ok(1) {
            let selection = Selection { pattern: Some(SECRET), ..Selection::default() };
            self.store.get().expect("armed").erase(&selection, AT, false).unwrap();
        }
    }
}

/// A clock whose every reading is a moment.
struct Watched(Arc<Forgetful>, ManualClock);

impl Clock for Watched {
    fn monotonic_us(&self) -> u64 {
        self.0.moment();
        self.1.monotonic_us()
    }

    fn wall(&self) -> WallTime {
        self.0.moment();
        self.1.wall()
    }
}

/// An agent in a conversation that holds the secret in its history, in what is remembered from
/// elsewhere, in a fact and in an inference.
fn agent(forgetful: &Arc<Forgetful>, script: &[&str]) -> (TestAgent, ScriptedModel) {
    let store = Disk::new().open();
    let other = "other".parse().unwrap();
    let words = "The safe opens with the xylophone by the fence.";
    tell(&store, &other, words, "A xylophone, then.", AT);
    forgetful.store.set(Arc::clone(&store)).unwrap();
    let (asks, starts) = (Arc::clone(forgetful), Arc::clone(forgetful));
    // A companion knows only what it is told.
    let model = ScriptedModel::new(16_384, []).on_start(move || starts.moment());
    let model = model.companions(move |role, prompt| {
        asks.moment();
        let word = if text(prompt).contains(SECRET) { SECRET } else { "garden" };
        Act::Say(match role {
            ModelRole::Inferrer if text(prompt).contains("Which of these words") => {
                format!("value: {word}\n")
            }
            ModelRole::Inferrer => READING.replace("garden", word),
            _ => format!("- the {word} by the fence was counted again\n"),
        })
    });
    let clock = Watched(Arc::clone(forgetful), ManualClock::at_unix_ms(NOW_MS));
    let parts = Parts { clock: Arc::new(clock), ..parts(&model, store) };
    let mut agent = Agent::new(parts, Options { tools: true, ..options() }).unwrap();
    for said in [
        "I like the xylophone that I got from my sister and her dogs.",
        "Tuning the xylophone is so much work, I don't know what to do.",
    ] {
        turn(&mut agent, &session(), said).unwrap();
        smol::block_on(agent.idle(&session()));
    }
    script.iter().for_each(|act| model.then(Act::Say((*act).into())));
    (agent, model)
}

#[test]
fn a_forget_at_any_moment_leaves_none_of_the_words() {
    let mut moments = 1;
    loop {
        let forgetful = Arc::new(Forgetful::default());
        let (mut agent, model) =
            agent(&forgetful, &["<<garret-tool: grep safe>>", "By the fence."]);
        forgetful.left.store(moments, Ordering::SeqCst);
        turn(&mut agent, &session(), "How did the safe open, by the fence?").unwrap();
        smol::block_on(agent.idle(&session()));
        if forgetful.left.load(Ordering::SeqCst) > 0 {
            let seen = text(model.prompts().last().unwrap());
            assert!(seen.contains(SECRET), "nothing could have leaked: {seen}");
            break;
        }
        let found = agent.store().verify_erased(SECRET.as_bytes()).unwrap();
        assert!(found.is_empty(), "moment {moments}: {found:?}");
        let report = agent.store().verify().unwrap();
        assert!(report.is_clean(), "moment {moments}: {report:?}");
        moments += 1;
    }
    assert!(moments > 20, "{moments}");
}

/// The words that a model asked a tool for may be the very words.
#[test]
fn a_receipt_does_not_keep_a_call_with_the_words() {
    let call = "Let me see. <<garret-tool: grep xylophone>>";
    let mut told = 0;
    for moments in 1.. {
        let forgetful = Arc::new(Forgetful::default());
        let (mut agent, model) = agent(&forgetful, &[call, "By the fence."]);
        let before = model.prompts().len();
        forgetful.left.store(moments, Ordering::SeqCst);
        let outcome = turn(&mut agent, &session(), "How did the safe open?").unwrap();
        if forgetful.left.load(Ordering::SeqCst) > 0 {
            break;
        }
        // One that knew the words before they were forgotten.
        if text(&model.prompts()[before]).contains(SECRET) {
            told += 1;
            assert_eq!(outcome.reply, "Let me see. By the fence.");
            let found = agent.store().verify_erased(SECRET.as_bytes()).unwrap();
            assert!(found.is_empty(), "moment {moments}: {found:?}");
        }
    }
    assert!(told > 3, "{told}");
}

/// A fact that is forgotten while the rest of its message is read isn't read again.
#[test]
fn a_fact_that_is_forgotten_while_its_message_is_read_does_not_come_back() {
    let store = Disk::new().open();
    let other = Arc::clone(&store);
    let model = ScriptedModel::new(WINDOW, []).companions(move |_, _| {
        let facts = other.facts(&FactFilter::default()).unwrap().facts;
        if let Some(name) = facts.iter().find(|fact| fact.predicate == "name") {
            let selection = Selection { facts: &[name.id], ..Selection::default() };
            other.erase(&selection, AT, false).unwrap();
        }
        Act::Say("value: Acme\n".into())
    });
    let mut agent = Agent::new(parts(&model, Arc::clone(&store)), options()).unwrap();
    let said = "My name is Ada. I work at Acme with my sister and her dogs on big projects.";
    turn(&mut agent, &session(), said).unwrap();
    for _ in 0..3 {
        smol::block_on(agent.idle(&session()));
    }
    let facts = store.facts(&FactFilter::default()).unwrap().facts;
    assert!(facts.iter().all(|fact| fact.predicate != "name"), "{facts:?}");
}
