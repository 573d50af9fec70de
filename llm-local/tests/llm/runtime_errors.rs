//! What must be refused, and that a refusal changes nothing.
use std::fs;
use std::path::Path;

use crate::support::runtime::*;
use garret_core::model::{ChatModel, Finish, KvType, ModelRole};
use garret_core::token::Token;
use garret_llm::{
    Backend, ChatError, ChatOptions, LlamaChat, LoadError, MAX_REQUESTS, Model, ModelOptions,
};

fn load(path: &Path) -> Result<(), LoadError> {
    Model::load(Backend::start().unwrap(), path, ModelOptions::default()).map(drop)
}

#[test]
fn files_that_are_no_models_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let missing = load(&dir.path().join("missing.gguf")).unwrap_err();
    assert!(matches!(missing, LoadError::Missing { .. }), "{missing}");
    let directory = load(dir.path()).unwrap_err();
    assert!(matches!(directory, LoadError::NotAFile { .. }), "{directory}");
    let noise: Vec<u8> =
        (0..100_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for path in [
        file("empty.gguf", b""),
        file("noise.gguf", &noise),
        file("magic.gguf", b"GGUF"),
        file(
            "header.gguf",
            b"GGUF\x03\0\0\0\xff\xff\xff\xff\xff\xff\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x7f",
        ),
    ] {
        let error = load(&path).unwrap_err();
        assert!(matches!(error, LoadError::Unreadable { .. }), "{}: {error}", path.display());
    }
}

#[test]
fn a_truncated_model_is_refused_with_llama_cpps_reason() {
    let Some(path) = find(STARTER) else { return };
    let dir = tempfile::tempdir().unwrap();
    let bytes = fs::read(path).unwrap();
    let cut = dir.path().join("cut.gguf");
    for length in [bytes.len() / 2, bytes.len() - 1_000, 3_000_000, 5_000] {
        fs::write(&cut, &bytes[..length]).unwrap();
        match load(&cut).unwrap_err() {
            LoadError::Unreadable { reason, .. } => {
                assert!(reason.contains(' ') && !reason.contains("no reason"), "{reason}");
            }
            other => panic!("{other}"),
        }
    }
}

/// Flipped bytes in the weights load without complaint and give NaNs: an error, not a crash, not an
/// endless loop, and the same again for the next request.
#[test]
fn weights_that_are_no_numbers_are_an_error() {
    let Some(path) = find(STARTER) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 100_000].fill(0xff);
    let spoilt = dir.path().join("spoilt.gguf");
    fs::write(&spoilt, &bytes).unwrap();
    let model = Model::load(Backend::start().unwrap(), &spoilt, ModelOptions::default()).unwrap();
    let chat = LlamaChat::spawn(model, options(256, 64)).unwrap();
    let prompt = ask(chat.model(), "Hello!");
    for role in [ModelRole::Main, ModelRole::Compactor, ModelRole::Main] {
        let failed = run(&chat, request(role, &prompt, 5)).unwrap_err();
        assert_eq!(failed, ChatError::NotFinite);
    }
    assert_eq!(chat.next_logits(ModelRole::Main, &prompt), Err(ChatError::NotFinite));
}

#[test]
fn prompts_that_cannot_work_are_refused_and_change_nothing() {
    let Some(chat) = chat(256, 64) else { return };
    let model = chat.model();
    let good = prose(model, "All is well", 100);
    run(&chat, request(ModelRole::Main, &good, 1)).unwrap();
    let mut foreign = good.clone();
    foreign[40] = Token(model.n_vocab());
    let mut negative = good.clone();
    negative[99] = Token(-1);
    let long = prose(model, "Too much", 256);
    let refuse = |prompt: &[Token], max_tokens| {
        chat.start(request(ModelRole::Main, prompt, max_tokens)).map(drop).unwrap_err()
    };
    assert_eq!(refuse(&[], 1), ChatError::EmptyPrompt);
    assert_eq!(refuse(&long, 1), ChatError::PromptTooLong { tokens: 256, limit: 255 });
    let last = model.n_vocab() - 1;
    assert_eq!(refuse(&foreign, 1), ChatError::UnknownToken { index: 40, id: last + 1, last });
    assert_eq!(refuse(&negative, 1), ChatError::UnknownToken { index: 99, id: -1, last });
    assert_eq!(chat.next_logits(ModelRole::Main, &[]), Err(ChatError::EmptyPrompt));
    let again = run(&chat, request(ModelRole::Main, &good, 1)).unwrap();
    assert_eq!((again.reused, again.prefilled), (99, 1));
}

#[test]
fn a_reply_ends_where_the_window_does() {
    let Some(chat) = chat(256, 64) else { return };
    for length in [250, 255] {
        let prompt = prose(chat.model(), "one two three four five six seven", length);
        let reply = run(&chat, request(ModelRole::Main, &prompt, 1_000)).unwrap();
        assert_eq!(reply.finish, Finish::Length);
        assert_eq!(reply.tokens.len(), 256 - length);
    }
}

#[test]
fn options_that_cannot_work_are_refused() {
    let Some(model) = starter() else { return };
    let trained = model.n_ctx_train();
    let spawn = |options| LlamaChat::spawn(model.clone(), options).map(drop).unwrap_err();
    let base = options(256, 64);
    let error = spawn(ChatOptions { n_ctx: trained + 1, ..base.clone() });
    let LoadError::WindowTooLarge { wanted, trained: limit } = error else { panic!("{error}") };
    assert_eq!((wanted, limit), (trained + 1, trained));
    assert!(error.to_string().contains(&trained.to_string()));
    let quantised = ChatOptions { kv: KvType::Q8_0, flash_attention: Some(false), ..base.clone() };
    for bad in [
        ChatOptions { n_ctx: 0, ..base.clone() },
        ChatOptions { n_batch: 0, ..base.clone() },
        ChatOptions { n_ubatch: 0, ..base.clone() },
        ChatOptions { n_ubatch: 65, ..base.clone() },
        ChatOptions { threads: 0, ..base.clone() },
        ChatOptions { batch_threads: 0, ..base.clone() },
        quantised,
    ] {
        let error = spawn(bad.clone());
        assert!(matches!(error, LoadError::BadOption { .. }), "{bad:?}: {error}");
    }
}

#[test]
fn a_quantised_cache_gives_the_same_first_token() {
    let Some(plain) = chat(256, 64) else { return };
    let quantised = ChatOptions { kv: KvType::Q8_0, ..options(256, 64) };
    let quantised = LlamaChat::spawn(starter().unwrap(), quantised).unwrap();
    let prompt = ask(plain.model(), "What is the capital of France?");
    let first = |chat: &LlamaChat| likeliest(&chat.next_logits(ModelRole::Main, &prompt).unwrap());
    assert_eq!(first(&plain), first(&quantised));
}

#[test]
fn too_many_requests_are_refused_and_places_come_back() {
    let Some(chat) = chat(256, 64) else { return };
    let prompt = counting(chat.model());
    let start = || chat.start(request(ModelRole::Inferrer, &prompt, 200));
    let replies: Vec<_> = (0..MAX_REQUESTS).map(|_| start().unwrap()).collect();
    let full = start().map(drop).unwrap_err();
    assert_eq!(full, ChatError::Busy { limit: MAX_REQUESTS });
    drop(replies);
    // Places come back as the owner thread gets to the dropped ones.
    let reply = std::iter::repeat_with(|| run(&chat, request(ModelRole::Main, &prompt, 2)))
        .find(|reply| !matches!(reply, Err(ChatError::Busy { .. })));
    assert_eq!(reply.unwrap().unwrap().tokens.len(), 2);
}

/// A reply keeps the model alive, and the thread ends with the last of them.
#[test]
fn a_reply_outlives_its_handle() {
    let Some(chat) = chat(256, 64) else { return };
    let model = chat.model().clone();
    let prompt = counting(&model);
    let mut reply = chat.start(request(ModelRole::Main, &prompt, 6)).unwrap();
    drop(chat);
    assert_eq!(drain(&mut reply).unwrap().tokens.len(), 6);
    let before = std::sync::Arc::strong_count(&model);
    drop(reply);
    // The handle's and the thread's.
    assert_eq!(std::sync::Arc::strong_count(&model), before - 2);
}

#[test]
fn tokens_out_of_range_have_no_piece() {
    let Some(model) = starter() else { return };
    for id in [-1, i32::MIN, model.n_vocab(), i32::MAX] {
        assert_eq!(model.piece(Token(id)), b"");
        assert!(!model.is_end(Token(id)));
        assert!(!model.has_token(Token(id)));
    }
    let all = (0..model.n_vocab()).map(Token);
    assert!(all.clone().any(|token| model.is_end(token)));
    assert!(all.filter(|token| !model.piece(*token).is_empty()).count() > 40_000);
    assert!(model.description().contains("M parameters"), "{}", model.description());
}
