//! llama.cpp#3969: a model that never ends its reply made the server shift its context for ever: it
//! wrote until somebody ended it, and nobody else was served.
//!
//! A reply ends where its room ends, says so, and the next message is answered.

use garret::agent::Options;
use garret_core::model::{ChatModel as _, Event, Finish, ModelRole, Reply as _, Request, Sampling};
use garret_core::token::Token;
use garret_llm::{Backend, ChatOptions, LlamaChat, Model, ModelOptions};
use garret_tests::models::{STARTER, find};
use garret_tests::scripted::{Act, ScriptedModel};
use garret_tests::talk::say;

use crate::agent;

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
    let Some(path) = find(STARTER) else { return };
    let model = Model::load(Backend::start().unwrap(), &path, ModelOptions::default()).unwrap();
    let options = ChatOptions {
        n_ctx: 256,
        n_batch: 64,
        n_ubatch: 64,
        threads: 1,
        batch_threads: 1,
        ..ChatOptions::default()
    };
    let prompt: Vec<_> = model.llama().vocab().tokenize(&b"and so on ".repeat(60), false, false);
    let prompt: Vec<_> = prompt.into_iter().map(|token| Token(token.0)).take(200).collect();
    let chat = LlamaChat::spawn(model, options).unwrap();
    let request = Request {
        role: ModelRole::Main,
        prompt: &prompt,
        max_tokens: 100_000,
        sampling: Sampling { temperature: 0.0, ..Sampling::default() },
        grammar: Some("root ::= \"a\" root"),
    };
    for _ in 0..2 {
        let mut reply = chat.start(request.clone()).unwrap();
        let mut pieces = 0;
        let finish = loop {
            let next = std::future::poll_fn(|cx| reply.poll_event(cx));
            match smol::block_on(next).unwrap().unwrap() {
                Event::Finished(finish) => break finish,
                Event::Piece { .. } => pieces += 1,
                _ => {}
            }
        };
        assert_eq!(finish, Finish::Length);
        assert!((1..=256 - prompt.len() + 1).contains(&pieces), "{pieces}");
    }
}
