//! mem0#4536: of two facts that contradict each other both were deleted, the old one by the new and
//! the new one as a duplicate of what was gone.
//!
//! The newer one is true from now on, the older one stays with its end, and each is what was true at
//! its time.

use garret::agent::Options;
use garret_core::gate::Mode;
use garret_storage::FactFilter;
use garret_tests::scripted::ScriptedModel;
use garret_tests::talk::{say, session};

use crate::{agent_on, store};

#[test]
fn a_contradiction_ends_the_older_fact_and_keeps_both() {
    let store = store();
    let model = ScriptedModel::new(8_192, []);
    let options = Options { companions: Mode::ColdStart, ..Options::default() };
    let mut agent = agent_on(&store, &model, options);
    for message in ["I live in Oslo.", "I live in Bergen.", "I live in Oslo."] {
        say(&mut agent, message);
        smol::block_on(agent.idle(&session()));
    }
    let homes = |latest| {
        let predicate = Some("lives_in");
        let filter = FactFilter { predicate, latest, ..FactFilter::default() };
        let facts = store.facts(&filter).unwrap().facts;
        let mut homes: Vec<_> = facts.into_iter().map(|fact| fact.object.unwrap()).collect();
        homes.sort();
        homes
    };
    assert_eq!(homes(true), ["Oslo"]);
    assert_eq!(homes(false), ["Bergen", "Oslo", "Oslo"]);
}
