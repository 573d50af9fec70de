//! open-webui#24401: the time of day stood in the system prompt, so that every minute made all of the
//! prefix cache useless and each message was read from the first token on.
//!
//! The clock rides in the newest message alone: from turn to turn a prompt begins with what the one
//! before settled, whatever the time.

use std::sync::Arc;

use garret::agent::{Agent, Options, Parts};
use garret_hal::clock::ManualClock;
use garret_tests::scripted::ScriptedModel;
use garret_tests::talk::{NOW_MS, parts, say, texts};

use crate::store;

#[test]
fn the_time_of_day_leaves_the_prefix_as_it_is() {
    let model = ScriptedModel::new(16_384, []);
    let clock = Arc::new(ManualClock::at_unix_ms(NOW_MS));
    let parts = Parts { clock: Arc::clone(&clock) as Arc<_>, ..parts(&model, store()) };
    let options =
        Options { system_prompt: "Be kind.".into(), show_time: true, ..Options::default() };
    let mut agent = Agent::new(parts, options).unwrap();
    let mut settled = Vec::new();
    let mut times = Vec::new();
    for turn in 0..30 {
        clock.advance_us(61_000_000);
        let receipt = say(&mut agent, &format!("What time is it, for the {turn}th time?")).receipt;
        let prompt = model.prompts().pop().unwrap();
        assert!(prompt.starts_with(&settled), "turn {turn}");
        let stable: u32 = receipt.blocks[..3].iter().map(|block| block.tokens).sum();
        assert!(receipt.prefilled_tokens <= receipt.prompt_tokens - settled.len() as u32 + 2);
        settled = prompt[..stable as usize].to_vec();
        let last = texts(&prompt).pop().unwrap();
        times.push(last.lines().next().unwrap().to_owned());
        assert!(texts(&prompt)[..2 * turn].iter().all(|text| !text.contains("[Now")));
    }
    times.dedup();
    assert_eq!(times.len(), 30, "the model was told each minute: {times:?}");
}
