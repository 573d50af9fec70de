//! lossless-claw#755: a guard against floods took the second "ok" of a user for the first one, and
//! dropped it.
//!
//! Whoever says the same twenty times has said it twenty times; only what has a number of its own is
//! known again by that.

use garret_storage::ImportedTurn;
use garret_storage::search::Speaker;
use garret_tests::scripted::{Act, ScriptedModel};
use garret_tests::talk::{say, session, texts};

use crate::{AT, agent, attentive, stored};

#[test]
fn the_same_words_again_are_another_turn() {
    let model = ScriptedModel::new(8_192, vec![Act::Say("ok".into()); 20]);
    let mut agent = agent(&model, attentive());
    for n in 1..=20 {
        assert_eq!(say(&mut agent, "ok").turn, n);
    }
    let kept = stored(&agent);
    assert!(kept.len() == 20 && kept.iter().all(|(user, reply)| user == "ok" && reply.is_some()));
    say(&mut agent, "ok");
    assert_eq!(texts(&model.prompts().pop().unwrap()).len(), 1 + 2 * 20 + 1);
    let shared = session();
    let import = |id: Option<&'static str>| ImportedTurn {
        session: &shared,
        speaker: Speaker::User,
        text: "ok",
        at: AT,
        id,
    };
    let store = agent.store();
    assert_eq!(store.import_turns(&[import(None); 20]).unwrap().added, 20);
    assert_eq!(store.import_turns(&[import(None); 2]).unwrap().added, 2);
    // What has a number of its own is known again by that, within its conversation.
    let numbered = ["1", "2", "1", "01", ""].map(|id| import(Some(id)));
    assert_eq!(store.import_turns(&numbered).unwrap().added, 4);
    assert_eq!(store.import_turns(&numbered).unwrap().added, 0);
    let other = "other".parse().unwrap();
    let elsewhere = numbered.map(|turn| ImportedTurn { session: &other, ..turn });
    assert_eq!(store.import_turns(&elsewhere).unwrap().added, 4);
    assert_eq!(stored(&agent).len(), 21 + 20 + 2 + 4);
}
