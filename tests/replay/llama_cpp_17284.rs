//! llama.cpp#17284: once a conversation was longer than the context, the server answered every
//! request with an error 400 instead of leaving out what is oldest.
//!
//! The oldest turns give way, whole ones, and every message is answered.

use garret::agent::Options;
use garret_core::receipt::OmissionKind;
use garret_tests::scripted::{Act, ScriptedModel};
use garret_tests::talk::{say, texts};

use crate::agent;

#[test]
fn a_conversation_of_any_length_is_answered() {
    let replies = (0..100).map(|n| Act::Say(format!("Reply {n}. ").repeat(9)));
    let model = ScriptedModel::new(2_048, replies);
    let mut agent = agent(&model, Options { memory_tokens: Some(0), ..Options::default() });
    for turn in 0..100_u64 {
        let outcome = say(&mut agent, &format!("Message {turn}. ").repeat(11));
        let shown = texts(&model.prompts().pop().unwrap());
        let user = shown.iter().filter(|text| text.starts_with("Message ")).count() as u64;
        let left_out = outcome.receipt.left_out(OmissionKind::OldTurns);
        assert_eq!(user + left_out, turn + 1, "each turn is shown whole or counted");
        assert_eq!(outcome.receipt.history_from.unwrap_or(turn + 1), left_out + 1);
    }
}
