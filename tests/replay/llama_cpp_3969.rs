//! llama.cpp#3969: a model that never ends its reply made the server shift its context for ever: it
//! wrote until somebody ended it, and nobody else was served.
//!
//! A reply ends where its room ends, says so, and the next message is answered.

use garret::agent::Options;
use garret_core::model::Finish;
use garret_llm::ChatOptions;
use garret_tests::models::STARTER;
use garret_tests::scripted::{Act, ScriptedModel};
use garret_tests::talk::say;

use crate::{agent, answer, chat, tokens};

#[test]
fn an_endless_reply_ends_with_its_room() {
    let endless = Act::Say("and ".repeat(100_000));
    let model = ScriptedModel::new(2_048, [endless.clone(), endless]);
    let mut agent = agent(&model, Options::default());
    for _ in 0..2 {
        let outcome = say(&mut agent, "How does it go on?");
        assert_eq!(outcome.finish, Finish::Length);
        assert_eq!(outcome.receipt.reply_tokens, outcome.receipt.reply_reserve);
    }
    assert_eq!(say(&mut agent, "Thank you.").finish, Finish::Stop);
}

/// On llama.cpp, under a grammar that has no end.
#[test]
fn a_real_model_that_cannot_stop_ends_with_the_window() {
    let options = ChatOptions { n_ctx: 128, ..ChatOptions::default() };
    let Some(chat) = chat(STARTER, options) else { return };
    let prompt = &tokens(&chat, &"and so on ".repeat(60))[..96];
    for _ in 0..2 {
        let answer = answer(&chat, prompt, 100_000, Some("root ::= \"a\" root"));
        assert_eq!(answer.finish, Finish::Length);
        assert!((1..=128 - prompt.len() + 1).contains(&answer.tokens), "{}", answer.tokens);
    }
}
