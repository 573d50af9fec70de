//! mem0#4573: of ten thousand memories 97.8 % were junk: what was recalled into a prompt was read as
//! if it had been said again, stored again, recalled again.
//!
//! Only what users say of themselves in their own words becomes a fact, and saying it again, or having
//! it recalled by the model, adds none.

use garret::agent::Options;
use garret_core::gate::Mode;
use garret_storage::FactFilter;
use garret_tests::scripted::{Act, ScriptedModel};
use garret_tests::talk::{say, session, tell};

use crate::{AT, agent_on, store, text};

#[test]
fn what_is_recalled_is_not_stored_again() {
    let store = store();
    let echo = "You told me: I live in Oslo. I work at Acme. My name is Ada.";
    let model = ScriptedModel::new(8_192, vec![Act::Say(echo.into()); 60]);
    tell(&store, &"before".parse().unwrap(), "I live in Oslo by the harbour.", echo, AT);
    let options = Options { companions: Mode::Turbo, ..Options::default() };
    let mut agent = agent_on(&store, &model, options);
    let mut recalled = 0;
    for turn in 0..30 {
        say(&mut agent, &format!("Where do I live by the harbour, once more ({turn})?"));
        recalled += usize::from(text(model.prompts().last().unwrap()).contains("live in Oslo"));
        smol::block_on(agent.idle(&session()));
    }
    assert!(recalled > 20, "it was in the prompt of {recalled} turns");
    let filter = FactFilter { limit: 1_000, ..FactFilter::default() };
    let facts = store.facts(&filter).unwrap().facts;
    assert_eq!(facts, [], "nobody said anything of themselves in this conversation");
    say(&mut agent, "I live in Oslo.");
    smol::block_on(agent.idle(&session()));
    let once = store.facts(&filter).unwrap().facts.len();
    assert!(once > 0);
    for _ in 0..10 {
        say(&mut agent, "I live in Oslo.");
        smol::block_on(agent.idle(&session()));
    }
    assert_eq!(store.facts(&filter).unwrap().facts.len(), once);
}
