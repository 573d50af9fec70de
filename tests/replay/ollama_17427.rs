//! ollama#17427: of a prompt longer than the window half was dropped without a word, and the model
//! answered about the rest as if that were all.
//!
//! A message over its ceiling is stored whole; the model is shown both ends and told that there is
//! more, and the receipt counts every character that was left out.

use garret::agent::Options;
use garret_core::receipt::OmissionKind;
use garret_tests::scripted::ScriptedModel;
use garret_tests::talk::{say, session, texts};

use crate::agent;

#[test]
fn what_is_left_out_of_a_long_message_is_told_and_stored() {
    let model = ScriptedModel::new(2_048, []);
    let mut agent = agent(&model, Options::default());
    let message: String = (0..10_000).map(|n| format!("{n:05} ")).collect();
    let receipt = say(&mut agent, &message).receipt;
    let shown = texts(&model.prompts()[0]).pop().unwrap();
    assert!(shown.starts_with("00000 00001 ") && shown.ends_with("09999 "), "{shown}");
    let numbers = |text: &str| {
        text.split_whitespace()
            .filter(|word| word.len() == 5 && word.parse::<u32>().is_ok())
            .count()
    };
    let left_out = usize::try_from(receipt.left_out(OmissionKind::MessageMiddle)).unwrap();
    let missing = 10_000 - numbers(&shown);
    // A number that is cut counts as missing, and its other part is shown.
    assert!(left_out.abs_diff(missing * 6) <= 12, "{left_out} characters, {missing} numbers");
    assert!(shown.contains(&left_out.to_string()), "the model is told how much: {shown}");
    let whole = agent.store().with_turns(&session(), 1, |turns| turns[0].user.to_owned()).unwrap();
    assert_eq!(whole, message);
}
