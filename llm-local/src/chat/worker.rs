//! The thread that owns a chat model's context and decides what it does next.
//!
//! Work advances in steps: one chunk of a prompt, or one token. Before each step the queue is
//! looked at: a request for the main role goes first, then the oldest companion; a request whose
//! reader is behind waits. Of several main requests, which share one sequence, the oldest begins
//! and stays until it ends or its reader is behind: two slow readers cost a prefill per fill of a
//! channel, not one per few tokens. A step takes nothing for granted: it asks the cache how much of
//! the job's tokens it holds and decodes from there. So a companion that was preempted goes on with
//! the cells it has, or with fewer if they were needed meanwhile; an interrupted prompt goes on
//! after the last finished micro-batch; and nothing has to be saved or restored.
//!
//! A decode is interrupted (between two operations of its graph, on a CPU) when the request is
//! cancelled, when a main request comes (or goes on, its reader having caught up) while a companion
//! runs, and at the end. Only a model with a running state finishes its decode: a half updated
//! state is worth nothing, and all that led to it would be lost.

use std::ffi::c_void;
use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use garret_core::model::{Event, Finish, KvType};
use garret_core::token::Token;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::{KvCacheType, LlamaContextParams};
use llama_cpp_sys_2 as sys;
use smol::channel::{Receiver, bounded};
use tracing::Dispatch;
use tracing::subscriber::NoSubscriber;

use super::ChatOptions;
use super::cache::{Cache, Decoded, SEQUENCES};
use super::job::{Control, Job, Output, Signals, count};
use crate::error::{ChatError, LoadError};
use crate::log;
use crate::model::Model;

/// The owner thread's ends of what it shares with the handles.
pub(super) struct Ports {
    pub(super) jobs: Receiver<Job>,
    /// Gets an item when there is something new to see; closed at the end.
    pub(super) woken: Receiver<()>,
    pub(super) signals: Arc<Signals>,
}

/// Starts the thread and returns once its context is there.
pub(super) fn spawn(
    model: Arc<Model>,
    options: ChatOptions,
    ports: Ports,
) -> Result<JoinHandle<()>, LoadError> {
    let n_ctx = options.n_ctx;
    let (sender, made) = bounded(1);
    let subscriber = tracing::dispatcher::get_default(Dispatch::clone);
    let thread = std::thread::Builder::new().name("garret-model".into());
    let thread = thread.stack_size(STACK).spawn(move || {
        // A thread has the subscriber of the process alone, which may be set later; whoever starts
        // this one under another wants to see it there.
        let scoped = !subscriber.is::<NoSubscriber>();
        let _scope = scoped.then(|| tracing::dispatcher::set_default(&subscriber));
        let signals = Arc::clone(&ports.signals);
        log::hush_while(Arc::clone(&signals.interrupt));
        // The context goes before `model` and `signals`, which it points to.
        let context = match context(&model, &options, &signals.interrupt) {
            Ok(context) => context,
            Err(error) => {
                let _ = sender.send_blocking(Err(error));
                return;
            }
        };
        let _ = sender.send_blocking(Ok(()));
        let cache = Cache::new(&model, context);
        Worker { model: &model, cache, ports, queue: Vec::new(), main: None }.run();
    })?;
    match made.recv_blocking() {
        Ok(Ok(())) => Ok(thread),
        Ok(Err(error)) => Err(error),
        Err(_) => {
            let reason = "the model's thread panicked".to_owned();
            Err(LoadError::Context { n_ctx, reason })
        }
    }
}

/// Target of the event before every decode. Tests hook in here: what a handle asks for during that
/// event interrupts the decode at its first operation.
const DECODE: &str = "garret_llm::decode";

/// Stack of the thread in bytes; building a graph of a deep model takes more than a thread gets by
/// default elsewhere.
const STACK: usize = 8 << 20;

struct Worker<'m> {
    model: &'m Model,
    cache: Cache<'m>,
    ports: Ports,
    /// Jobs that wait or run, by arrival.
    queue: Vec<Job>,
    /// The main request that decoded last.
    main: Option<Arc<Control>>,
}

impl Drop for Worker<'_> {
    /// Tells whoever waits for an answer that none will come, however the thread ends.
    fn drop(&mut self) {
        // Handles keep the channel alive; what they sent would stay in it for ever.
        self.ports.jobs.close();
        while self.ports.jobs.try_recv().is_ok() {}
        self.queue.clear();
    }
}

/// Work that a step left to do.
enum Step {
    More,
    Done,
}

impl Worker<'_> {
    fn run(mut self) {
        while !self.ports.signals.shutdown() {
            self.look_around();
            match self.choose() {
                Some(index) => self.advance(index),
                None if self.ports.woken.recv_blocking().is_err() => break,
                None => {}
            }
        }
    }

    /// Takes in new jobs and puts away those nobody wants any more.
    fn look_around(&mut self) {
        while let Ok(job) = self.ports.jobs.try_recv() {
            self.queue.push(job);
        }
        while let Some(index) = self.queue.iter().position(Job::unwanted) {
            let mut job = self.queue.remove(index);
            if job.reused.is_some() {
                job.announce();
            }
            job.send(Ok(Event::Finished(Finish::Cancelled)));
            self.put_away(&job);
        }
    }

    /// Returns the job whose turn it is.
    fn choose(&self) -> Option<usize> {
        let last = |job: &Job| self.main.as_ref().is_some_and(|main| job.is(main));
        let first = |which: &dyn Fn(&Job) -> bool| {
            self.queue.iter().position(|job| which(job) && !job.waits())
        };
        first(&last).or_else(|| first(&|job| job.seq.is_main())).or_else(|| first(&|_| true))
    }

    fn advance(&mut self, index: usize) {
        self.ports.signals.begin(&self.queue[index]);
        let id = Arc::clone(&self.queue[index].control);
        self.look_around();
        let index = self.choose().filter(|index| self.queue[*index].is(&id));
        let Some(index) = index.filter(|_| !self.ports.signals.shutdown()) else {
            self.ports.signals.end();
            return;
        };
        if self.queue[index].seq.is_main() {
            self.main = Some(id);
        }
        let model = self.model;
        let cache = &mut self.cache;
        let job = &mut self.queue[index];
        let step = catch_unwind(AssertUnwindSafe(|| step(model, cache, job)));
        self.ports.signals.end();
        match step.unwrap_or(Err(ChatError::Panicked)) {
            Ok(Step::More) => {}
            Ok(Step::Done) => {
                let job = self.queue.remove(index);
                self.put_away(&job);
            }
            Err(error) => {
                let job = self.queue.remove(index);
                self.fail(&job, error);
            }
        }
    }

    /// Gives up a companion's sequence. The main one stays for the next turn, the spare one for
    /// what is to replace it.
    fn put_away(&mut self, job: &Job) {
        if job.seq.is_companion() && job.reused.is_some() {
            self.cache.drop_sequence(job.seq);
        }
    }

    fn fail(&mut self, job: &Job, error: ChatError) {
        tracing::warn!("a request failed: {error}");
        match error {
            ChatError::NoRoom | ChatError::Grammar(_) | ChatError::GrammarDeadEnd => {
                // A spare prefix that found no room would only take it from others.
                if !job.seq.is_main() {
                    self.cache.drop_sequence(job.seq);
                }
            }
            // What the cache holds can't be relied on.
            _ => self.cache.clear(),
        }
        job.send(Err(error));
    }
}

/// Decodes the job's next chunk; after the last one, answers with logits or the next token.
fn step(model: &Model, cache: &mut Cache<'_>, job: &mut Job) -> Result<Step, ChatError> {
    match &mut job.output {
        Output::Save { most, sender } => {
            let state = cache.save(&job.tokens, *most)?;
            let _ = sender.try_send(Ok(state));
            return Ok(Step::Done);
        }
        Output::Restore { state, sender } => {
            cache.restore(&job.tokens, state)?;
            let _ = sender.try_send(Ok(count(job.tokens.len())));
            return Ok(Step::Done);
        }
        Output::Reply { .. } | Output::Logits(_) => {}
    }
    let start = cache.adopt(job.seq, &job.tokens);
    job.found(start);
    let end = job.tokens.len().min(start + cache.n_batch());
    let whole = end == job.tokens.len();
    tracing::trace!(target: DECODE, tokens = end - start, "decoding");
    let (done, finished) = match cache.decode(job.seq, &job.tokens[start..end], whole)? {
        Decoded::Whole => (end - start, whole),
        Decoded::Interrupted(done) => (done, false),
        Decoded::NoRoom if cache.evict_others(job.seq) => (0, false),
        Decoded::NoRoom => return Err(ChatError::NoRoom),
    };
    job.held = start + done;
    if finished { answer(model, cache.logits()?, job) } else { Ok(Step::More) }
}

fn answer(model: &Model, logits: &[f32], job: &mut Job) -> Result<Step, ChatError> {
    job.announce();
    if job.tokens.len() >= job.limit {
        // Nothing but the prefill was asked for; logits always are.
        if let Output::Reply { .. } = job.output {
            job.send(Ok(Event::Finished(Finish::Length)));
            return Ok(Step::Done);
        }
    }
    let token = match &mut job.output {
        Output::Logits(sender) => {
            let _ = sender.try_send(Ok(logits.to_vec()));
            return Ok(Step::Done);
        }
        Output::Reply { sampler, .. } => sampler.next(model, logits)?,
        // Answered before anything is decoded.
        Output::Save { .. } | Output::Restore { .. } => return Ok(Step::Done),
    };
    let piece = Token(token.0);
    if model.is_end(piece) {
        job.send(Ok(Event::Finished(Finish::Stop)));
        return Ok(Step::Done);
    }
    job.tokens.push(token);
    job.send(Ok(Event::Piece { token: piece, bytes: model.piece(piece) }));
    if job.tokens.len() < job.limit {
        return Ok(Step::More);
    }
    job.send(Ok(Event::Finished(Finish::Length)));
    Ok(Step::Done)
}

fn context<'m>(
    model: &'m Model,
    options: &ChatOptions,
    interrupt: &AtomicBool,
) -> Result<LlamaContext<'m>, LoadError> {
    let signed = |value: u32| i32::try_from(value).unwrap_or(i32::MAX);
    let kv = match options.kv {
        KvType::F16 => KvCacheType::F16,
        KvType::Q8_0 => KvCacheType::Q8_0,
    };
    let flash = match options.flash_attention {
        None => sys::LLAMA_FLASH_ATTN_TYPE_AUTO,
        Some(false) => sys::LLAMA_FLASH_ATTN_TYPE_DISABLED,
        Some(true) => sys::LLAMA_FLASH_ATTN_TYPE_ENABLED,
    };
    let mut params = LlamaContextParams::default()
        .with_n_ctx(NonZeroU32::new(options.n_ctx))
        .with_n_batch(options.n_batch)
        .with_n_ubatch(options.n_ubatch)
        .with_n_seq_max(SEQUENCES as u32)
        .with_kv_unified(true)
        .with_swa_full(true)
        .with_n_threads(signed(options.threads))
        .with_n_threads_batch(signed(options.batch_threads))
        .with_type_k(kv)
        .with_type_v(kv)
        .with_flash_attention_policy(flash)
        .with_no_perf(true);
    let raw = raw_params(&mut params);
    if !model.recurrent() {
        raw.abort_callback = Some(interrupted);
        raw.abort_callback_data = std::ptr::from_ref(interrupt).cast_mut().cast();
    }
    // Only the last token of a chunk ever has logits; room for all would take a vocabulary's width
    // of memory per token of a micro-batch.
    raw.n_outputs_max = SEQUENCES as u32;
    model.new_context(options.n_ctx, params)
}

/// Returns the C struct inside `params`, which has no setter for every field.
fn raw_params(params: &mut LlamaContextParams) -> &mut sys::llama_context_params {
    // SAFETY: in the pinned version the struct's only field is a `llama_context_params`; being of
    // the same size and alignment (checked below) it has that field at offset 0 and nothing else.
    // The borrow is exclusive and lasts as long as that of `params`.
    unsafe { &mut *std::ptr::from_mut(params).cast::<sys::llama_context_params>() }
}

const _: () = {
    assert!(size_of::<LlamaContextParams>() == size_of::<sys::llama_context_params>());
    assert!(align_of::<LlamaContextParams>() == align_of::<sys::llama_context_params>());
};

/// Tells ggml whether to end the running decode.
unsafe extern "C" fn interrupted(flag: *mut c_void) -> bool {
    // SAFETY: the pointer was made from an `AtomicBool` that the owner thread keeps alive longer
    // than the context that calls this.
    unsafe { &*flag.cast::<AtomicBool>() }.load(Ordering::Relaxed)
}
