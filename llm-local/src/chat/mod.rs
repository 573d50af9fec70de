//! A chat model of llama.cpp behind one owner thread.
//!
//! [`LlamaChat`] is a handle. The context lives on a thread of its own ([`worker`]), which takes
//! requests ([`job`]) from all handles, keeps a record of what its KV cache holds ([`cache`]), and
//! hands out events through a bounded channel a reply. A reader that is slow makes the model wait;
//! one that stalls or goes away holds up nobody else. [`state`] has a sequence as bytes, to be kept
//! while the model isn't loaded.
//!
//! The room knows tokens and roles, and neither texts nor templates: prompts come encoded.
//!
//! Limits: one context, of four sequences; [`MAX_REQUESTS`] requests at once, [`MAX_EVENTS`] events
//! ahead of a reader.

mod cache;
mod job;
mod sampler;
mod state;
mod worker;

use std::pin::Pin;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::thread::JoinHandle;

use garret_core::model::{
    ChatModel, Event, KvType, ModelFacts, ModelRole, Reply, Request, Resumable,
};
use garret_core::token::Token;
use llama_cpp_2::token::LlamaToken;
use smol::channel::{Receiver, Sender, TrySendError, bounded};
use smol::stream::Stream;

pub(crate) use self::cache::SEQUENCES;
use self::cache::Seq;
use self::job::{Control, Job, Output, RESUME_AT, ReplyEvent, Signals};
use self::sampler::Sampler;
use crate::error::{ChatError, LoadError};
use crate::model::Model;

/// Options of a chat model's context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatOptions {
    /// Tokens the window holds: prompt and reply together.
    pub n_ctx: u32,
    /// Most prompt tokens of one decode; companions yield between two of them.
    pub n_batch: u32,
    /// Tokens computed together, at most `n_batch`. What an interrupted decode loses is less than
    /// this; small ones (64 to 128) cost little speed.
    pub n_ubatch: u32,
    /// Threads that generate.
    pub threads: u32,
    /// Threads that read a prompt.
    pub batch_threads: u32,
    /// Type of the cache.
    pub kv: KvType,
    /// Flash attention on or off; `None` leaves the choice to llama.cpp.
    pub flash_attention: Option<bool>,
    /// SHA-256 of the model file, passed on in [`ModelFacts`].
    pub fingerprint: [u8; 32],
}

impl Default for ChatOptions {
    /// A window of 4,096 tokens for a small machine with four cores.
    fn default() -> Self {
        Self {
            n_ctx: 4_096,
            n_batch: 128,
            n_ubatch: 128,
            threads: 4,
            batch_threads: 4,
            kv: KvType::F16,
            flash_attention: None,
            fingerprint: [0; 32],
        }
    }
}

/// Most requests that are running or waiting at once.
pub const MAX_REQUESTS: usize = 64;

/// Events a reply keeps for a reader that is slow.
pub const MAX_EVENTS: usize = 64;

/// A chat model. Cloning makes another handle to the same one; when the last handle and reply are
/// gone the model's thread ends.
#[derive(Clone, Debug)]
pub struct LlamaChat {
    inner: Arc<Inner>,
}

impl LlamaChat {
    /// Starts the owner thread and makes the context on it.
    ///
    /// # Errors
    /// When the window is larger than the model was trained for, an option can't work, or llama.cpp
    /// can't make the context (too little memory, say).
    pub fn spawn(model: Arc<Model>, options: ChatOptions) -> Result<Self, LoadError> {
        check(&model, &options)?;
        let ChatOptions { n_ctx, fingerprint, .. } = options;
        let facts = ModelFacts { n_ctx, fingerprint, parameters: Some(model.parameters()) };
        let signals = Arc::new(Signals::default());
        let (commands, jobs) = bounded(MAX_REQUESTS);
        let (wake, woken) = bounded(1);
        let ports = worker::Ports { jobs, woken, signals: Arc::clone(&signals) };
        let state = state::fingerprint(&options);
        let thread = worker::spawn(Arc::clone(&model), options, ports)?;
        let thread = Mutex::new(Some(thread));
        Ok(Self { inner: Arc::new(Inner { model, facts, state, commands, wake, signals, thread }) })
    }

    /// Returns the model behind the chat.
    pub fn model(&self) -> &Arc<Model> {
        &self.inner.model
    }

    /// Returns the logits, one for each id, of the token after `prompt`, by the same rules of reuse
    /// as a reply. Blocks until they are there, after requests that go before.
    ///
    /// # Errors
    /// As [`ChatModel::start`], and when decoding fails.
    pub fn next_logits(&self, role: ModelRole, prompt: &[Token]) -> Result<Vec<f32>, ChatError> {
        let tokens = self.inner.check_prompt(prompt)?;
        let (sender, receiver) = bounded(1);
        self.inner.submit(role, tokens, 1, Output::Logits(sender))?;
        receiver.recv_blocking().unwrap_or(Err(ChatError::Stopped))
    }
}

impl ChatModel for LlamaChat {
    type Reply = LlamaReply;
    type Error = ChatError;

    fn facts(&self) -> ModelFacts {
        self.inner.facts
    }

    fn start(&self, request: Request<'_>) -> Result<LlamaReply, ChatError> {
        let tokens = self.inner.check_prompt(request.prompt)?;
        let model = &self.inner.model;
        let sampler = Sampler::new(model, &request.sampling, request.grammar, &tokens)?;
        // Two places more than are filled with pieces: the end always has room.
        let (sender, events) = bounded(MAX_EVENTS + 2);
        let output = Output::Reply { events: sender, sampler: Box::new(sampler) };
        let control =
            self.inner.submit(request.role, tokens, request.max_tokens as usize, output)?;
        let inner = Arc::clone(&self.inner);
        Ok(LlamaReply { events: Box::pin(events), control, inner, done: false })
    }
}

impl Resumable for LlamaChat {
    type State = Vec<u8>;

    fn state_fingerprint(&self) -> [u8; 32] {
        self.inner.state
    }

    fn save(&self, prompt: &[Token], most: u64) -> Result<Option<Vec<u8>>, ChatError> {
        let tokens = self.inner.check_prompt(prompt)?;
        let (sender, receiver) = bounded(1);
        self.inner.submit(ModelRole::Main, tokens, 0, Output::Save { most, sender })?;
        receiver.recv_blocking().unwrap_or(Err(ChatError::Stopped))
    }

    fn restore(&self, state: &[u8]) -> Result<u32, ChatError> {
        let (tokens, state) = state::parse(state).ok_or(ChatError::State)?;
        let held = self.inner.check_prompt(&tokens)?;
        let (sender, receiver) = bounded(1);
        let output = Output::Restore { state: state.to_vec(), sender };
        self.inner.submit(ModelRole::Main, held, 0, output)?;
        receiver.recv_blocking().unwrap_or(Err(ChatError::Stopped))
    }
}

/// A reply in progress. Dropping it cancels it.
#[derive(Debug)]
pub struct LlamaReply {
    events: Pin<Box<Receiver<ReplyEvent>>>,
    control: Arc<Control>,
    inner: Arc<Inner>,
    done: bool,
}

impl Reply for LlamaReply {
    type Bytes = Vec<u8>;
    type Error = ChatError;

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<ReplyEvent>> {
        if self.done {
            return Poll::Ready(None);
        }
        let event = ready!(self.events.as_mut().poll_next(cx));
        let event = event.unwrap_or(Err(ChatError::Stopped));
        self.done = !matches!(event, Ok(Event::Prefilled { .. } | Event::Piece { .. }));
        // Pairs with the fence in `Control::waits_for`: either the owner saw the room this made, or
        // its mark is seen here.
        fence(Ordering::SeqCst);
        if self.control.stalled.load(Ordering::Relaxed) && self.events.len() <= RESUME_AT {
            // What began while this one waited for its reader.
            if self.control.main {
                self.inner.signals.interrupt_if(|running| running.companion);
            }
            self.inner.nudge();
        }
        Poll::Ready(Some(event))
    }

    fn cancel(&self) {
        self.control.cancelled.store(true, Ordering::Relaxed);
        self.inner.signals.interrupt_if(|running| running.id == self.control.id);
        self.inner.nudge();
    }
}

impl Drop for LlamaReply {
    fn drop(&mut self) {
        if !self.done {
            self.cancel();
        }
    }
}

#[derive(Debug)]
struct Inner {
    model: Arc<Model>,
    facts: ModelFacts,
    /// Fingerprint of its states.
    state: [u8; 32],
    commands: Sender<Job>,
    wake: Sender<()>,
    signals: Arc<Signals>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Inner {
    fn check_prompt(&self, prompt: &[Token]) -> Result<Vec<LlamaToken>, ChatError> {
        let limit = (self.facts.n_ctx as usize).saturating_sub(1);
        if prompt.is_empty() {
            return Err(ChatError::EmptyPrompt);
        }
        if prompt.len() > limit {
            return Err(ChatError::PromptTooLong { tokens: prompt.len(), limit });
        }
        if let Some(index) = prompt.iter().position(|token| !self.model.has_token(*token)) {
            let id = prompt[index].0;
            let last = self.model.n_vocab() - 1;
            return Err(ChatError::UnknownToken { index, id, last });
        }
        Ok(prompt.iter().map(|token| LlamaToken(token.0)).collect())
    }

    fn submit(
        &self,
        role: ModelRole,
        tokens: Vec<LlamaToken>,
        max_tokens: usize,
        output: Output,
    ) -> Result<Arc<Control>, ChatError> {
        let permit = self.signals.permit().ok_or(ChatError::Busy { limit: MAX_REQUESTS })?;
        let id = self.signals.ids.fetch_add(1, Ordering::Relaxed) + 1;
        let main = role == ModelRole::Main;
        let control = Arc::new(Control { id, main, ..Control::default() });
        let limit = tokens.len().saturating_add(max_tokens).min(self.facts.n_ctx as usize);
        let job = Job {
            seq: Seq::of(role),
            tokens,
            limit,
            output,
            control: Arc::clone(&control),
            reused: None,
            held: 0,
            announced: false,
            _permit: permit,
        };
        self.commands.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => ChatError::Busy { limit: MAX_REQUESTS },
            TrySendError::Closed(_) => ChatError::Stopped,
        })?;
        if main {
            self.signals.interrupt_if(|running| running.companion);
        }
        self.nudge();
        Ok(control)
    }

    /// Makes the owner thread look around.
    fn nudge(&self) {
        // Full means that it will look anyway, closed that it is gone.
        let _ = self.wake.try_send(());
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.signals.shutdown.store(true, Ordering::Relaxed);
        self.signals.interrupt_if(|_| true);
        self.wake.close();
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // A waker that the owner thread drops could own the last reply; it can't wait for itself.
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
            && thread.join().is_err()
        {
            tracing::error!("the model's thread panicked");
        }
    }
}

fn check(model: &Model, options: &ChatOptions) -> Result<(), LoadError> {
    let trained = model.n_ctx_train();
    if options.n_ctx > trained {
        return Err(LoadError::WindowTooLarge { wanted: options.n_ctx, trained });
    }
    let least = [
        ("n_ctx", options.n_ctx, 2),
        ("n_batch", options.n_batch, 1),
        ("n_ubatch", options.n_ubatch, 1),
        ("threads", options.threads, 1),
        ("batch_threads", options.batch_threads, 1),
    ];
    for (option, value, least) in least {
        if value < least {
            let expected = format!("at least {least}");
            return Err(LoadError::BadOption { option, value: value.to_string(), expected });
        }
    }
    if options.n_ubatch > options.n_batch {
        let expected = format!("at most n_batch, {}", options.n_batch);
        let option = "n_ubatch";
        let value = options.n_ubatch.to_string();
        return Err(LoadError::BadOption { option, value, expected });
    }
    if options.kv == KvType::Q8_0 && options.flash_attention == Some(false) {
        let expected = "on or automatic for a quantised cache".to_owned();
        let option = "flash_attention";
        let value = "off".to_owned();
        return Err(LoadError::BadOption { option, value, expected });
    }
    Ok(())
}
