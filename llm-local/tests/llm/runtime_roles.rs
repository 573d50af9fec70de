//! The main role goes first, a companion loses nothing by it, and a cancelled prefill neither.
//!
//! The moment of an interruption is fixed by an event the owner thread emits before every decode:
//! it is held there while a test does its worst.
use std::cell::Cell;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use crate::support::gguf::Writer;
use crate::support::runtime::*;
use garret_core::model::{ChatModel, Event, Finish, ModelRole, Reply};
use garret_core::token::Token;
use garret_llm::{Backend, ChatOptions, LlamaChat, LlamaReply, MAX_EVENTS, Model, ModelOptions};
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};

/// Holds an owner thread before its decodes, one by one.
struct Gate {
    at: Receiver<()>,
    go: SyncSender<()>,
    /// Whether a decode is waiting.
    held: Cell<bool>,
}

/// The owner thread's side of a closed gate.
type Held = Option<(SyncSender<()>, Receiver<()>)>;

/// A subscriber of the threads that are started under it, which holds them at a closed gate.
#[derive(Clone, Default)]
struct Watch(Arc<Mutex<Held>>);

impl Watch {
    /// A chat on the starter model whose owner thread is watched.
    fn chat(&self, n_ctx: u32, n_batch: u32) -> Option<LlamaChat> {
        Some(self.spawn(starter()?, options(n_ctx, n_batch)))
    }

    fn spawn(&self, model: Arc<Model>, options: ChatOptions) -> LlamaChat {
        tracing::subscriber::with_default(self.clone(), || LlamaChat::spawn(model, options))
            .expect("context")
    }
}

impl Gate {
    /// Closes the gate to the owner threads that `watch` has.
    fn close(watch: &Watch) -> Self {
        let (arrive, at) = sync_channel(0);
        let (go, gone) = sync_channel(0);
        *watch.0.lock().unwrap() = Some((arrive, gone));
        Self { at, go, held: Cell::new(false) }
    }

    /// Lets `count` decodes through and returns when the next one is about to begin.
    fn pass(&self, count: usize) {
        if !self.held.replace(true) {
            self.at.recv().unwrap();
        }
        for _ in 0..count {
            self.go.send(()).unwrap();
            self.at.recv().unwrap();
        }
    }

    /// Lets the decode that is waiting begin, and all that follow.
    fn open(self) {
        self.go.send(()).unwrap();
        // The owner thread holds the lock only while it waits at the gate; it finds it gone.
        drop((self.at, self.go));
    }
}

impl Subscriber for Watch {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "garret_llm::decode"
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &tracing::Event<'_>) {
        let mut gate = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let open = match gate.as_ref() {
            Some((arrive, gone)) => arrive.send(()).is_err() || gone.recv().is_err(),
            None => false,
        };
        if open {
            *gate = None;
        }
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// What `reply` has ready.
fn take_ready(reply: &mut LlamaReply) -> Vec<Event<Vec<u8>>> {
    std::iter::from_fn(|| ready_event(reply)).collect()
}

/// A companion in mid-reply yields to the main role at once and afterwards finishes with the words
/// it would have said alone.
#[test]
fn a_companion_in_mid_reply_yields() {
    let watch = Watch::default();
    let Some(chat) = watch.chat(512, 64) else { return };
    let gate = Gate::close(&watch);
    let prompt = counting(chat.model());
    let mut companion = chat.start(request(ModelRole::Inferrer, &prompt, 24)).unwrap();
    // The prompt and nine of its tokens are decoded, the tenth is about to be.
    gate.pass(10);
    let seen = take_ready(&mut companion);
    assert_eq!(seen.len(), 11);
    let mut main = chat.start(request(ModelRole::Main, &prompt[4..], 1)).unwrap();
    // The companion's decode is interrupted, the main role's is done, then comes the companion's.
    gate.pass(2);
    assert_eq!(take_ready(&mut main).len(), 3, "the main role has finished");
    assert_eq!(take_ready(&mut companion), vec![], "the companion said nothing meanwhile");
    gate.open();
    let finished = drain_after(&mut companion, seen).unwrap();
    assert_eq!((finished.reused, finished.prefilled as usize), (0, prompt.len()));
    let undisturbed = run(&chat, request(ModelRole::Inferrer, &prompt, 24)).unwrap();
    assert_eq!(finished.text(), undisturbed.text());
    assert_eq!(finished.tokens.len(), 24);
}

/// A companion that is still reading its prompt yields as well, and reads nothing twice.
#[test]
fn a_companion_in_prefill_yields() {
    let watch = Watch::default();
    let Some(chat) = watch.chat(1_024, 64) else { return };
    let gate = Gate::close(&watch);
    let long = prose(chat.model(), "A report on everything that was found in the attic:", 400);
    let mut companion = chat.start(request(ModelRole::Compactor, &long, 2)).unwrap();
    gate.pass(3);
    let mut main = chat.start(request(ModelRole::Main, &counting(chat.model()), 1)).unwrap();
    gate.pass(2);
    assert_eq!(take_ready(&mut main).len(), 3, "the main role has finished");
    assert_eq!(take_ready(&mut companion), vec![]);
    gate.open();
    let finished = drain(&mut companion).unwrap();
    assert_eq!((finished.reused, finished.prefilled), (0, 400));
}

/// A companion whose half-read prompt is pushed out reads it again, but reports no token twice.
#[test]
fn a_companion_that_starts_over_counts_each_token_once() {
    let watch = Watch::default();
    let Some(chat) = watch.chat(512, 64) else { return };
    let gate = Gate::close(&watch);
    let long = prose(chat.model(), "A report on everything that was found in the attic:", 300);
    let mut companion = chat.start(request(ModelRole::Compactor, &long, 2)).unwrap();
    gate.pass(3);
    let large = prose(chat.model(), "The main role needs room:", 400);
    let mains = [&large[..], &counting(chat.model())];
    let mut mains = mains.map(|prompt| chat.start(request(ModelRole::Main, prompt, 1)).unwrap());
    gate.open();
    for main in &mut mains {
        drain(main).unwrap();
    }
    let finished = drain(&mut companion).unwrap();
    assert_eq!((finished.reused, finished.prefilled), (0, 300));
}

/// A cancelled prefill keeps what was finished: the same prompt goes on from there.
#[test]
fn a_cancelled_prefill_is_resumed() {
    let watch = Watch::default();
    let Some(chat) = watch.chat(1_024, 64) else { return };
    let gate = Gate::close(&watch);
    let prompt = prose(chat.model(), "He climbed the stairs to the attic", 400);
    let mut reply = chat.start(request(ModelRole::Main, &prompt, 4)).unwrap();
    gate.pass(3);
    reply.cancel();
    gate.open();
    let cancelled = drain(&mut reply).unwrap();
    assert_eq!((cancelled.finish, cancelled.tokens.len()), (Finish::Cancelled, 0));
    assert_eq!((cancelled.reused, cancelled.prefilled), (0, 3 * 64), "what was done is told");
    let again = run(&chat, request(ModelRole::Main, &prompt, 1)).unwrap();
    assert_eq!((again.reused, again.prefilled), (3 * 64, 400 - 3 * 64));
}

/// Wherever in a decode a cancellation falls, whole micro-batches stay, and what is decoded after
/// them gives the logits of an undisturbed prefill, up to rounding.
#[test]
fn an_interrupted_decode_keeps_whole_micro_batches() {
    let watch = Watch::default();
    let Some(model) = starter() else { return };
    let small = ChatOptions { n_ubatch: 16, ..options(512, 400) };
    let chat = watch.spawn(model.clone(), small);
    let prompt = prose(&model, "He climbed the stairs to the attic", 400);
    let clean = chat.next_logits(ModelRole::Main, &prompt).unwrap();
    for wait in [100, 3_000] {
        run(&chat, request(ModelRole::Main, &counting(&model), 1)).unwrap();
        let gate = Gate::close(&watch);
        let mut reply = chat.start(request(ModelRole::Main, &prompt, 1)).unwrap();
        gate.pass(0);
        gate.open();
        for _ in 0..wait {
            std::thread::yield_now();
        }
        reply.cancel();
        let first = drain(&mut reply).unwrap();
        let cancelled = first.finish == Finish::Cancelled;
        let again = run(&chat, request(ModelRole::Main, &prompt, 1)).unwrap();
        assert_eq!(again.reused + again.prefilled, 400);
        assert_eq!(first.reused + first.prefilled, if cancelled { again.reused } else { 400 });
        assert!(!cancelled || again.reused.is_multiple_of(16), "{}", again.reused);
        let after = chat.next_logits(ModelRole::Main, &prompt).unwrap();
        assert_eq!(likeliest(&after), likeliest(&clean));
    }
}

/// A tiny Mamba that says nothing of interest: all of its weights are 0.
fn recurrent() -> Writer {
    let bytes: Vec<String> = (0..=255).map(|byte| format!("<0x{byte:02X}>")).collect();
    let words = ["<unk>", "<s>", "</s>"].into_iter().chain(bytes.iter().map(String::as_str));
    let words: Vec<&str> = words.collect();
    let vocab = words.len() as u64;
    let scores = [crate::support::gguf::array(6, vocab), vec![0; 4 * words.len()]].concat();
    let file = Writer::default()
        .text("general.architecture", "mamba")
        .u32("mamba.context_length", 1_024)
        .u32("mamba.embedding_length", 8)
        .u32("mamba.feed_forward_length", 0)
        .u32("mamba.attention.head_count", 0)
        .u32("mamba.block_count", 1)
        .u32("mamba.ssm.conv_kernel", 4)
        .u32("mamba.ssm.inner_size", 16)
        .u32("mamba.ssm.state_size", 4)
        .u32("mamba.ssm.time_step_rank", 1)
        .pair("mamba.attention.layer_norm_rms_epsilon", 6, &1e-5_f32.to_le_bytes())
        .text("tokenizer.ggml.model", "llama")
        .texts("tokenizer.ggml.tokens", &words)
        .pair("tokenizer.ggml.scores", 9, &scores);
    let tensors: [(&str, &[u64]); 12] = [
        ("token_embd.weight", &[8, vocab]),
        ("output_norm.weight", &[8]),
        ("blk.0.attn_norm.weight", &[8]),
        ("blk.0.ssm_in.weight", &[8, 32]),
        ("blk.0.ssm_conv1d.weight", &[4, 16]),
        ("blk.0.ssm_conv1d.bias", &[16]),
        ("blk.0.ssm_x.weight", &[16, 9]),
        ("blk.0.ssm_dt.weight", &[1, 16]),
        ("blk.0.ssm_dt.bias", &[16]),
        ("blk.0.ssm_a", &[4, 16]),
        ("blk.0.ssm_d", &[16]),
        ("blk.0.ssm_out.weight", &[16, 8]),
    ];
    tensors.into_iter().fold(file, |file, (name, shape)| {
        file.tensor(name, shape, 0, 4 * shape.iter().product::<u64>())
    })
}

/// A running state that is half updated is worth nothing, so such a model ends the decode it is in
/// and keeps all of it.
#[test]
fn a_cancelled_prefill_of_a_recurrent_model_is_resumed() {
    let watch = Watch::default();
    let dir = tempfile::tempdir().unwrap();
    let path = recurrent().write(&dir.path().join("mamba.gguf"));
    let model = Model::load(Backend::start().unwrap(), &path, ModelOptions::default()).unwrap();
    assert!(model.recurrent());
    let chat = watch.spawn(model, options(512, 64));
    let gate = Gate::close(&watch);
    let prompt: Vec<_> = (0..400).map(|n| Token(3 + n % 100)).collect();
    let mut reply = chat.start(request(ModelRole::Main, &prompt, 4)).unwrap();
    gate.pass(3);
    reply.cancel();
    gate.open();
    let cancelled = drain(&mut reply).unwrap();
    assert_eq!((cancelled.finish, cancelled.prefilled), (Finish::Cancelled, 4 * 64));
    let again = run(&chat, request(ModelRole::Main, &prompt, 1)).unwrap();
    assert_eq!((again.reused, again.prefilled), (4 * 64, 400 - 4 * 64));
}

/// Both companions can wait at once; each finishes, and neither holds up the main role.
#[test]
fn companions_and_main_share_the_cache() {
    let Some(chat) = chat(1_024, 64) else { return };
    let model = chat.model();
    let conversation = prose(model, "<|im_start|>user\nListen:", 200);
    run(&chat, request(ModelRole::Main, &conversation, 1)).unwrap();
    let mut prompt = conversation.clone();
    prompt.extend(ask(model, "What next?"));
    let mut replies: Vec<_> = [ModelRole::Compactor, ModelRole::Inferrer, ModelRole::Compactor]
        .into_iter()
        .map(|role| chat.start(request(role, &prompt, 6)).unwrap())
        .collect();
    let main = run(&chat, request(ModelRole::Main, &prompt, 3)).unwrap();
    assert_eq!(main.reused, 200);
    for reply in &mut replies {
        let reply = drain(reply).unwrap();
        assert!(reply.reused >= 200, "{}", reply.reused);
        assert_eq!((reply.reused + reply.prefilled) as usize, prompt.len());
    }
}

/// Decodes it takes a reply to be as far ahead of its reader as it may be: the first brings two
/// events.
const AHEAD: usize = MAX_EVENTS - 1;

/// A main request whose reader was behind doesn't push out the one that took its place meanwhile.
#[test]
fn two_main_requests_do_not_take_turns() {
    let watch = Watch::default();
    let Some(chat) = watch.chat(512, 64) else { return };
    let gate = Gate::close(&watch);
    let prompt = counting(chat.model());
    let mut slow = chat.start(request(ModelRole::Main, &prompt, 100)).unwrap();
    let mut next = chat.start(request(ModelRole::Main, &prompt[4..], 20)).unwrap();
    gate.pass(AHEAD);
    let mut seen: Vec<_> = (0..40).map_while(|_| ready_event(&mut slow)).collect();
    assert_eq!((seen.len(), take_ready(&mut next).len()), (40, 0));
    gate.pass(20);
    let events = take_ready(&mut next);
    assert_eq!(events.last(), Some(&Event::Finished(Finish::Length)), "{}", events.len());
    gate.open();
    seen.extend(take_ready(&mut slow));
    let finished = drain_after(&mut slow, seen).unwrap();
    assert_eq!((finished.tokens.len(), finished.finish), (100, Finish::Length));
}

/// A companion that began while the main role waited for its reader yields when that goes on.
#[test]
fn a_companion_yields_to_a_reader_that_caught_up() {
    let watch = Watch::default();
    let Some(chat) = watch.chat(1_024, 64) else { return };
    let gate = Gate::close(&watch);
    let mut main = chat.start(request(ModelRole::Main, &counting(chat.model()), 100)).unwrap();
    let long = prose(chat.model(), "A report on everything that was found in the attic:", 400);
    let mut companion = chat.start(request(ModelRole::Compactor, &long, 2)).unwrap();
    gate.pass(AHEAD);
    // The companion's first decode is about to begin.
    let events = (0..40).map_while(|_| ready_event(&mut main)).count();
    assert_eq!(events, 40);
    gate.pass(1);
    companion.cancel();
    gate.open();
    let cancelled = drain(&mut companion).unwrap();
    assert_eq!((cancelled.finish, cancelled.prefilled), (Finish::Cancelled, 0), "not a chunk");
    drop(main);
}

/// Requests for the main role are answered in the order they came.
#[test]
fn main_requests_keep_their_order() {
    let Some(chat) = chat(512, 64) else { return };
    let prompt = counting(chat.model());
    let mut first = chat.start(request(ModelRole::Main, &prompt, 20)).unwrap();
    let mut second = chat.start(request(ModelRole::Main, &prompt, 1)).unwrap();
    drain(&mut second).unwrap();
    let events: Vec<_> = (0..22).map_while(|_| ready_event(&mut first)).collect();
    assert_eq!(events.last(), Some(&Event::Finished(Finish::Length)), "{}", events.len());
}
