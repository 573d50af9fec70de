//! home-assistant#147150: the list of devices stood in the first prompt, and after several commands
//! the model knew no device any more and switched things that didn't exist.
//!
//! What the system prompt lists stands in every prompt, whole and in one place, and a command of long
//! ago comes back when it is asked for.

use std::fmt::Write as _;

use garret::agent::Options;
use garret_tests::scripted::{Act, ScriptedModel};
use garret_tests::talk::{say, texts};

use crate::agent;

#[test]
fn devices_are_known_after_any_number_of_commands() {
    let mut devices = String::from("You switch these devices and no others:\n");
    for n in 0..12 {
        writeln!(devices, "- light.room_{n}: off").unwrap();
    }
    let done =
        (0..100).map(|n| Act::Say(format!("I have switched light.room_{} for you.", n % 12)));
    let model = ScriptedModel::new(4_096, done);
    let options = Options { system_prompt: devices.as_str().into(), ..Options::default() };
    let mut agent = agent(&model, options);
    say(&mut agent, "Remember that the heron lamp is light.room_3.");
    for n in 0..80 {
        say(&mut agent, &format!("Switch on the light in room {}, please, it's dark.", n % 12));
    }
    let outcome = say(&mut agent, "Which one is the heron lamp?");
    assert!(outcome.receipt.history_from > Some(10), "{:?}", outcome.receipt);
    let prompts = model.prompts();
    for prompt in &prompts {
        assert!(texts(prompt)[0].starts_with(devices.trim_end()), "{:?}", texts(prompt)[0]);
    }
    let last = texts(prompts.last().unwrap()).pop().unwrap();
    assert!(last.contains("the heron lamp is light.room_3"), "{last}");
}
