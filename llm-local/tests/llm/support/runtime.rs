//! What the tests on real models share.
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use garret_core::model::{ChatModel, Event, Finish, ModelRole, Reply, Request, Sampling};
use garret_core::token::Token;
use garret_llm::{Backend, ChatError, ChatOptions, LlamaChat, LlamaReply, Model, ModelOptions};

pub(crate) const STARTER: &str = "SmolLM2-135M-Instruct-Q4_1.gguf";
pub(crate) const EMBEDDER: &str = "all-MiniLM-L6-v2-f16.gguf";
pub(crate) const SLIDING: &str = "gemma-3-270m-Q4_K_M.gguf";

/// Where the test model `name` is, or a loud note that this test is skipped.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let Some(dir) = std::env::var_os("GARRET_TEST_MODELS") else {
        eprintln!("SKIPPED: GARRET_TEST_MODELS doesn't name a directory with {name}");
        return None;
    };
    let path = PathBuf::from(dir).join(name);
    if !path.is_file() {
        eprintln!("SKIPPED: {} isn't there", path.display());
        return None;
    }
    Some(path)
}

/// The starter model, loaded once per test binary.
pub(crate) fn starter() -> Option<Arc<Model>> {
    static STARTED: OnceLock<Arc<Model>> = OnceLock::new();
    let path = find(STARTER)?;
    let load =
        || Model::load(Backend::start().unwrap(), &path, ModelOptions::default()).expect("starter");
    Some(Arc::clone(STARTED.get_or_init(load)))
}

pub(crate) fn options(n_ctx: u32, n_batch: u32) -> ChatOptions {
    ChatOptions {
        n_ctx,
        n_batch,
        n_ubatch: n_batch,
        // Test machines are busy, and threads that wait for each other spin.
        threads: 1,
        batch_threads: 1,
        ..ChatOptions::default()
    }
}

/// A chat on the starter model.
pub(crate) fn chat(n_ctx: u32, n_batch: u32) -> Option<LlamaChat> {
    Some(LlamaChat::spawn(starter()?, options(n_ctx, n_batch)).expect("context"))
}

/// Tokens of `text`, where special tokens are taken as such.
pub(crate) fn tokens(model: &Model, text: &str) -> Vec<Token> {
    let tokens = model.llama().vocab().tokenize(text.as_bytes(), false, true);
    tokens.into_iter().map(|token| Token(token.0)).collect()
}

/// A user's turn up to where the assistant begins.
pub(crate) fn ask(model: &Model, question: &str) -> Vec<Token> {
    tokens(model, &format!("<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"))
}

/// A prompt the starter model goes on from for long: it counts.
pub(crate) fn counting(model: &Model) -> Vec<Token> {
    tokens(model, "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20")
}

/// Exactly `length` tokens of prose that begins with `opening`.
pub(crate) fn prose(model: &Model, opening: &str, length: usize) -> Vec<Token> {
    let words = " the garret holds a lamp, a chair, three letters and one old map of the river;";
    let mut text = tokens(model, opening);
    let filler = tokens(model, words);
    text.extend(filler.iter().cycle().take(length.saturating_sub(text.len())));
    assert_eq!(text.len(), length);
    text
}

pub(crate) fn greedy() -> Sampling {
    Sampling { temperature: 0.0, repeat_penalty: 1.0, ..Sampling::default() }
}

pub(crate) fn request<'a>(role: ModelRole, prompt: &'a [Token], max_tokens: u32) -> Request<'a> {
    Request { role, prompt, max_tokens, sampling: greedy(), grammar: None }
}

/// A finished reply.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) reused: u32,
    pub(crate) prefilled: u32,
    pub(crate) tokens: Vec<Token>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) finish: Finish,
}

impl Outcome {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

pub(crate) fn next_event(reply: &mut LlamaReply) -> Option<Result<Event<Vec<u8>>, ChatError>> {
    smol::block_on(std::future::poll_fn(|cx| reply.poll_event(cx)))
}

/// The next event if it is there already; nothing after the end.
pub(crate) fn ready_event(reply: &mut LlamaReply) -> Option<Event<Vec<u8>>> {
    match reply.poll_event(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(event) => event.map(|event| event.expect("no error")),
        Poll::Pending => None,
    }
}

/// Reads `reply` to its end and checks the order of its events.
pub(crate) fn drain(reply: &mut LlamaReply) -> Result<Outcome, ChatError> {
    drain_after(reply, Vec::new())
}

/// As [`drain`], after `seen` was read.
pub(crate) fn drain_after(
    reply: &mut LlamaReply,
    seen: Vec<Event<Vec<u8>>>,
) -> Result<Outcome, ChatError> {
    let mut seen = seen.into_iter();
    let mut counts = None;
    let (mut tokens, mut bytes) = (Vec::new(), Vec::new());
    loop {
        let event = seen.next().map(Ok).or_else(|| next_event(reply));
        match event.expect("a reply ends with `Finished` or an error")? {
            Event::Prefilled { reused, prefilled } => {
                assert!(counts.is_none() && tokens.is_empty(), "`Prefilled` comes once and first");
                counts = Some((reused, prefilled));
            }
            Event::Piece { token, bytes: piece } => {
                assert!(counts.is_some(), "`Prefilled` comes before pieces");
                tokens.push(token);
                bytes.extend(piece);
            }
            Event::Finished(finish) => {
                assert!(next_event(reply).is_none(), "nothing comes after the end");
                let (reused, prefilled) = counts.unwrap_or_default();
                return Ok(Outcome { reused, prefilled, tokens, bytes, finish });
            }
        }
    }
}

pub(crate) fn run(chat: &LlamaChat, request: Request<'_>) -> Result<Outcome, ChatError> {
    drain(&mut chat.start(request)?)
}

/// Index of the largest logit.
pub(crate) fn likeliest(logits: &[f32]) -> usize {
    (0..logits.len()).max_by(|a, b| logits[*a].total_cmp(&logits[*b])).expect("logits")
}
