//! ollama#8531: a conversation outgrew the window, and the first thing to be cut was the system
//! prompt: the model forgot who it was and went on as somebody else.
//!
//! Whatever is said, every prompt begins with the whole system prompt.

use garret::agent::Options;
use garret_core::receipt::OmissionKind;
use garret_tests::scripted::ScriptedModel;
use garret_tests::talk::{say, texts};

use crate::agent;

const SYSTEM: &str = "You are Marvin, a gardener. Answer in verse and never speak of the weather.";

#[test]
fn the_system_prompt_is_whole_in_every_prompt() {
    let model = ScriptedModel::new(2_048, []);
    let mut agent = agent(&model, Options { system_prompt: SYSTEM.into(), ..Options::default() });
    let mut left_out = 0;
    for turn in 0..60 {
        let message = format!("Message {turn}: {}", "the roses need water. ".repeat(turn % 40));
        left_out = say(&mut agent, &message).receipt.left_out(OmissionKind::OldTurns);
    }
    assert!(left_out > 30, "the conversation outgrew the window: {left_out}");
    for prompt in model.prompts() {
        assert!(texts(&prompt)[0].starts_with(SYSTEM), "{:?}", texts(&prompt)[0]);
    }
}
