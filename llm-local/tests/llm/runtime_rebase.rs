//! A new prefix is built beside the conversation and takes its place in one request.
use crate::support::runtime::*;
use garret_core::model::{ChatModel, Finish, ModelRole};
use garret_core::token::Token;
use garret_llm::{ChatError, LlamaChat, Model};

/// A prompt that begins with `prefix`.
fn turn(model: &Model, prefix: &[Token], question: &str) -> Vec<Token> {
    [prefix, &ask(model, question)].concat()
}

fn cost(chat: &LlamaChat, role: ModelRole, prompt: &[Token], max_tokens: u32) -> (u32, u32) {
    let reply = run(chat, request(role, prompt, max_tokens)).unwrap();
    (reply.reused, reply.prefilled)
}

/// While the new prefix is there beside it, the old one loses nothing; the first prompt that begins
/// with the new one finds it whole, and says what it would have said without all this.
#[test]
fn a_rebased_prefix_is_taken_over_whole() {
    let Some(chat) = chat(2_048, 64) else { return };
    let model = chat.model();
    let old = prose(model, "<|im_start|>system\nAll of it:", 500);
    let new = prose(model, "<|im_start|>system\nIn short:", 300);
    cost(&chat, ModelRole::Main, &old, 0);
    let shared = cost(&chat, ModelRole::Rebase, &new, 0);
    assert!(shared.0 > 0 && shared.0 < 10, "both begin with the header: {shared:?}");
    assert_eq!(shared.0 + shared.1, 300);
    let question = turn(model, &old, "What is in the garret?");
    let before = cost(&chat, ModelRole::Main, &question, 1);
    assert_eq!(before.0, 500, "the old prefix is whole");
    let question = turn(model, &new, "What is in the garret?");
    let after = run(&chat, request(ModelRole::Main, &question, 8)).unwrap();
    assert_eq!(after.reused, 300, "the new prefix is taken over");
    let alone = self::chat(2_048, 64).unwrap();
    cost(&alone, ModelRole::Main, &new, 0);
    assert_eq!(after.text(), run(&alone, request(ModelRole::Main, &question, 8)).unwrap().text());
}

/// What is there of a prefix whose request was dropped isn't decoded again.
#[test]
fn a_dropped_rebase_goes_on_where_it_was() {
    let Some(chat) = chat(2_048, 64) else { return };
    let new = prose(chat.model(), "<|im_start|>system\nIn short:", 900);
    let mut reply = chat.start(request(ModelRole::Rebase, &new, 0)).unwrap();
    // A main request preempts it after some chunk; cancelled, it says how far it came.
    cost(&chat, ModelRole::Main, &counting(chat.model()), 1);
    garret_core::model::Reply::cancel(&reply);
    let dropped = drain(&mut reply).unwrap();
    let again = cost(&chat, ModelRole::Rebase, &new, 0);
    if dropped.finish == Finish::Cancelled {
        assert!(again.0 >= dropped.prefilled.saturating_sub(1), "{again:?} {dropped:?}");
    } else {
        assert_eq!(again, (899, 1));
    }
    assert_eq!(again.0 + again.1, 900);
}

/// A companion forks the new prefix where that holds more of its prompt.
#[test]
fn companions_fork_whichever_holds_more() {
    let Some(chat) = chat(2_048, 64) else { return };
    let model = chat.model();
    let old = prose(model, "<|im_start|>system\nAll of it:", 400);
    let new = prose(model, "<|im_start|>system\nIn short:", 300);
    cost(&chat, ModelRole::Main, &old, 0);
    cost(&chat, ModelRole::Rebase, &new, 0);
    for prefix in [old, new] {
        let prompt = turn(model, &prefix, "Sum this up.");
        assert_eq!(cost(&chat, ModelRole::Compactor, &prompt, 4).0 as usize, prefix.len());
    }
}

/// A prefix for which there is no room is an error that costs nobody anything; a main request that
/// needs the room of one that is there takes it.
#[test]
fn a_spare_prefix_yields_to_the_conversation() {
    let Some(chat) = chat(512, 64) else { return };
    let old = prose(chat.model(), "The main role was here first:", 400);
    let new = prose(chat.model(), "In short:", 300);
    cost(&chat, ModelRole::Main, &old, 1);
    let error = run(&chat, request(ModelRole::Rebase, &new, 0)).unwrap_err();
    assert_eq!(error, ChatError::NoRoom);
    assert_eq!(cost(&chat, ModelRole::Main, &old, 1), (399, 1));
    cost(&chat, ModelRole::Main, &counting(chat.model()), 1);
    cost(&chat, ModelRole::Rebase, &new, 0);
    assert_eq!(cost(&chat, ModelRole::Main, &old, 1), (0, 400));
}
