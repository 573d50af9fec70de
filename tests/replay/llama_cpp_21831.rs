//! llama.cpp#21831 and its kin: with sliding-window attention or recurrent state every request read
//! the whole prompt again, because a part of such a cache can't be taken back.
//!
//! A prompt that goes on from the one before reads only what is new. That logits are right after a
//! deep rollback is tested in `llm-local/tests/runtime_swa.rs`.

use std::sync::Arc;

use garret_core::model::{ChatModel as _, Event, ModelRole, Reply as _, Request, Sampling};
use garret_core::token::Token;
use garret_llm::{Backend, ChatOptions, LlamaChat, Model, ModelOptions};
use garret_tests::models::{GEMMA, find};

/// Tokens that were in the cache already and tokens that were read.
fn read(chat: &LlamaChat, prompt: &[Token]) -> (u32, u32) {
    let sampling = Sampling { temperature: 0.0, ..Sampling::default() };
    let request = Request { role: ModelRole::Main, prompt, max_tokens: 1, sampling, grammar: None };
    let mut reply = chat.start(request).unwrap();
    let mut figures = None;
    while let Some(event) = smol::block_on(std::future::poll_fn(|cx| reply.poll_event(cx))) {
        if let Event::Prefilled { reused, prefilled } = event.unwrap() {
            figures = Some((reused, prefilled));
        }
    }
    figures.unwrap()
}

#[test]
fn a_sliding_window_reads_only_what_is_new() {
    let Some(path) = find(GEMMA) else { return };
    let model = Model::load(Backend::start().unwrap(), &path, ModelOptions::default()).unwrap();
    let window = model.swa().expect("the file names its window").tokens as usize;
    let options = ChatOptions {
        n_ctx: 2_048,
        n_batch: 64,
        n_ubatch: 64,
        threads: 1,
        batch_threads: 1,
        ..ChatOptions::default()
    };
    let words = b"the garret holds a lamp, a chair, three letters and one old map of the river; ";
    let tokens = model.llama().vocab().tokenize(&words.repeat(100), false, false);
    let tokens: Vec<_> = tokens.into_iter().map(|token| Token(token.0)).collect();
    let chat = LlamaChat::spawn(Arc::clone(&model), options).unwrap();
    let (first, longer) = (window + 100, window + 180);
    assert_eq!(read(&chat, &tokens[..first]), (0, first as u32));
    let (reused, prefilled) = read(&chat, &tokens[..longer]);
    assert_eq!(reused + prefilled, longer as u32);
    assert!(prefilled <= 81, "{prefilled} tokens were read where 80 are new");
}
