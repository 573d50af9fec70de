//! A conversation's state outlives its model: what was read once isn't read again after a restart.
use std::sync::Arc;

use crate::support::runtime::*;
use garret_core::model::{KvType, ModelRole, Resumable};
use garret_core::token::Token;
use garret_llm::{Backend, ChatError, ChatOptions, LlamaChat, Model, ModelOptions};

const MOST: u64 = 1 << 30;

fn quantised(n_ctx: u32) -> ChatOptions {
    ChatOptions { kv: KvType::Q8_0, flash_attention: Some(true), ..options(n_ctx, 64) }
}

/// After a restart the next turn finds the conversation whole, and the model says what it would have
/// said; with a cache of either type.
#[test]
fn a_restored_conversation_is_not_read_again() {
    let Some(model) = starter() else { return };
    for options in [options(2_048, 64), quantised(2_048)] {
        let chat = LlamaChat::spawn(Arc::clone(&model), options.clone()).unwrap();
        let talk = prose(&model, "<|im_start|>user\nThe code word is heron.", 600);
        let turn = [&talk[..], &ask(&model, "What is the code word?")].concat();
        run(&chat, request(ModelRole::Main, &talk, 0)).unwrap();
        let state = chat.save(&talk, MOST).unwrap().expect("there is something to save");
        let undisturbed = run(&chat, request(ModelRole::Main, &turn, 8)).unwrap();
        drop(chat);
        let chat = LlamaChat::spawn(Arc::clone(&model), options).unwrap();
        assert_eq!(chat.restore(&state), Ok(600));
        let resumed = run(&chat, request(ModelRole::Main, &turn, 8)).unwrap();
        assert_eq!(resumed, undisturbed);
        assert_eq!(resumed.reused, 600);
    }
}

/// What isn't of the prompt isn't saved: words beside the conversation, or another conversation.
#[test]
fn only_what_the_prompt_has_is_saved() {
    let Some(chat) = chat(1_024, 64) else { return };
    let talk = prose(chat.model(), "<|im_start|>user\nListen:", 300);
    assert_eq!(chat.save(&talk, MOST), Ok(None), "nothing is there");
    let turn = [&talk[..], &ask(chat.model(), "Go on.")].concat();
    run(&chat, request(ModelRole::Main, &turn, 5)).unwrap();
    let state = chat.save(&talk, MOST).unwrap().unwrap();
    assert_eq!(chat.save(&talk, state.len() as u64).unwrap().as_ref(), Some(&state));
    assert_eq!(chat.save(&talk, state.len() as u64 - 1), Ok(None), "it would be too large");
    let other: Vec<Token> = ask(chat.model(), "Who?").into_iter().rev().collect();
    assert_eq!(chat.save(&other, MOST), Ok(None));
    assert_eq!(chat.restore(&state), Ok(300));
}

/// Bytes that are no state of this cache are refused, and the model goes on.
#[test]
fn a_foreign_state_is_refused() {
    let Some(model) = starter() else { return };
    let chat = LlamaChat::spawn(Arc::clone(&model), options(1_024, 64)).unwrap();
    let talk = prose(&model, "<|im_start|>user\nListen:", 200);
    run(&chat, request(ModelRole::Main, &talk, 0)).unwrap();
    let state = chat.save(&talk, MOST).unwrap().unwrap();
    for end in [0, 3, 4, 300, 804, 900, state.len() / 2, state.len() - 1] {
        let cut = chat.restore(&state[..end]);
        assert!(matches!(cut, Err(ChatError::State | ChatError::EmptyPrompt)), "{end}: {cut:?}");
    }
    let smaller = LlamaChat::spawn(Arc::clone(&model), options(128, 64)).unwrap();
    assert!(matches!(smaller.restore(&state), Err(ChatError::PromptTooLong { .. })));
    let other = LlamaChat::spawn(Arc::clone(&model), quantised(1_024)).unwrap();
    assert_eq!(other.restore(&state), Err(ChatError::State));
    for chat in [chat, other] {
        let reply = run(&chat, request(ModelRole::Main, &counting(&model), 4)).unwrap();
        assert_eq!(reply.tokens.len(), 4);
    }
    if let Some(path) = find(SLIDING) {
        let sliding = Model::load(Backend::start().unwrap(), &path, ModelOptions::default());
        let sliding = LlamaChat::spawn(sliding.unwrap(), options(1_024, 64)).unwrap();
        assert_eq!(sliding.restore(&state), Err(ChatError::State));
    }
}

/// Whatever a state depends on changes its fingerprint.
#[test]
fn fingerprints_tell_contexts_apart() {
    let Some(model) = starter() else { return };
    let base = options(512, 64);
    let others = [
        ChatOptions { fingerprint: [1; 32], ..base.clone() },
        ChatOptions { n_ctx: 1_024, ..base.clone() },
        ChatOptions { flash_attention: Some(true), ..base.clone() },
        quantised(512),
    ];
    let of = |options: &ChatOptions| {
        LlamaChat::spawn(Arc::clone(&model), options.clone()).unwrap().state_fingerprint()
    };
    let mut all: Vec<_> = others.iter().chain([&base]).map(of).collect();
    assert_eq!(all.last(), Some(&of(&base)), "the same context has the same one");
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 5);
}
