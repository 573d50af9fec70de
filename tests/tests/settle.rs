//! What idle time would have done is done on demand where scripts leave no idle time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use garret::agent::{Agent, Options};
use garret_core::gate::Mode;
use garret_hal::media::RamMedium;
use garret_storage::{FactFilter, Store};
use garret_tests::program::{Place, failed};
use garret_tests::scripted::ScriptedModel;
use garret_tests::talk::{TestAgent, parts, say, session};

fn agent(model: &ScriptedModel, store: &Arc<Store>) -> TestAgent {
    let options = Options { companions: Mode::ColdStart, compact_at: 80, ..Options::default() };
    Agent::new(parts(model, Arc::clone(store)), options).unwrap()
}

/// However many messages nobody was idle after: all of them are read, older ones are summed up, and
/// the model's cache is left alone.
#[test]
fn everything_that_is_due_is_done_at_once() {
    let store = Arc::new(Store::on_medium("test", Box::new(RamMedium::new())).unwrap());
    let model = ScriptedModel::new(8_192, []);
    let mut agent = self::agent(&model, &store);
    say(&mut agent, "My name is Ada.");
    for day in 0..100 {
        say(&mut agent, &format!("On day {day} the weather was what it was. ").repeat(3));
    }
    say(&mut agent, "I live in Oslo.");
    let mut later = self::agent(&model, &store);
    let done = smol::block_on(later.catch_up(&session()));
    assert_eq!(done.extracted, 2, "also what was said behind 64 unread messages");
    assert!(done.compaction.leaves > 0 && store.frontier(&session()).unwrap() > 0, "{done:?}");
    assert!(model.ahead().is_empty(), "no prompt was brought into the cache");
    let again = smol::block_on(later.catch_up(&session()));
    assert_eq!((again.extracted, again.compaction.leaves), (0, 0));
    let facts = store.facts(&FactFilter { latest: true, ..FactFilter::default() }).unwrap().facts;
    let has = |value: &str| facts.iter().any(|fact| fact.object.as_deref() == Some(value));
    assert!(has("Ada") && has("Oslo"), "{facts:?}");
}

/// As a script would use it.
#[test]
fn a_script_settles_what_it_said() {
    let Some(place) = Place::new() else { return };
    place.once("My name is Ada and I live in Oslo.", &["--session", "home"]);
    place.once("Hello.", &["--session", "other"]);
    assert!(!place.run(&["memory", "list"]).contains("Oslo"), "nobody was idle");
    let settled = place.run(&["session", "settle"]);
    assert!(settled.contains("home: 2 new facts\n"), "{settled}");
    assert!(settled.contains("other: nothing was due\n"), "{settled}");
    assert!(place.run(&["memory", "list"]).contains("Oslo"));
    assert_eq!(place.run(&["session", "settle", "home"]), "home: nothing was due\n");
    let unknown = failed(&place.garret(&["session", "settle", "nobody"]).output().unwrap(), 1);
    assert!(unknown.contains("there is no conversation `nobody`"), "{unknown}");
}
