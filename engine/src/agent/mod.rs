//! The turn loop: a message is made durable, put into an exact prompt, answered, and the answer
//! made durable.
//!
//! [`Agent`] is generic over the two ports of a model, so that the same loop runs on llama.cpp and
//! on a scripted model. It knows no terminal and no signal: text leaves through a callback, and a
//! [`Cancel`](crate::Cancel) ends a reply.
//!
//! A prompt shows, beside the conversation, what was said elsewhere and answers the message best. It
//! stands in the newest message alone, so after such a turn the model's cache holds words that no
//! later prompt has; [`Agent::idle`] sees to that while nobody waits.
//!
//! Limits: one turn at a time; the session and its turns are read from the store at every turn, so
//! nothing but counts is kept in memory.

mod apart;
mod catch_up;
mod compact;
mod draft;
mod error;
mod fork;
mod history;
mod idle;
mod infer;
mod mind;
mod promise;
mod prompt;
mod protocol;
pub(crate) mod quote;
mod recall;
pub(crate) mod remembered;
mod resume;
mod rounds;
mod slot;
mod states;
mod tracked;
mod turn;
mod volatile;

use std::sync::Arc;

use garret_core::assemble;
use garret_core::budget::Budget;
use garret_core::gate::Mode;
use garret_core::id::SessionId;
use garret_core::model::{ChatModel, Sampling};
use garret_core::prompt::{Message, PromptEncoder, Role};
use garret_core::shorten::Shown;
use garret_core::time::{Clock, Entropy};
use garret_core::token::Token;
use garret_storage::{ReadError, Store};

use crate::compact::Breaker;
use crate::companion::form::Size;
use crate::embed::Embed;
use crate::receipt::StoredReceipt;
use crate::rerank::Rerank;
use apart::Apart;
use history::Counts;
use mind::Mind;
use slot::Instructions;

pub use apart::OwnModel;
pub use catch_up::{CaughtUp, Chore, Failure};
pub use compact::{Compaction, When};
pub use error::{AgentError, EncoderError, PromptError, ToolProtocolError, TurnError};
pub(crate) use history::{unanswered, words};
pub use idle::Idled;
pub use protocol::ToolProtocol;
pub use resume::PendingSnapshot;
pub use rounds::WORDS;
pub use slot::{Context, PERSONA};
pub use turn::{Outcome, Timing};

/// What an agent is built from.
pub struct Parts<M, E> {
    /// The chat model.
    pub model: M,
    /// Its template and tokenizer.
    pub encoder: E,
    /// The namespace it remembers in.
    pub store: Arc<Store>,
    /// Makes vectors of what was said, so that search goes by meaning too; the store knows it.
    pub embedder: Option<Arc<dyn Embed>>,
    /// Time.
    pub clock: Arc<dyn Clock + Send + Sync>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy + Send + Sync>,
}

/// How an agent behaves.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The system prompt; empty for none.
    pub system_prompt: Arc<str>,
    /// Most tokens of a reply; `None` for the budget's reserve.
    pub max_tokens: Option<u32>,
    /// Most tokens of what is remembered from elsewhere, 0 for none; `None` for the budget's share.
    pub memory_tokens: Option<u32>,
    /// How full the prompt is, in percent of what it can hold, when older turns are summed up; 0 for
    /// never.
    pub compact_at: u32,
    /// How tokens are chosen; its seed is used when `draw_seed` is off.
    pub sampling: Sampling,
    /// Draw a new seed for each turn.
    pub draw_seed: bool,
    /// Tell the model the time with every message.
    pub show_time: bool,
    /// How readily companions run.
    pub companions: Mode,
    /// How much companions are asked; `None` for what suits the model.
    pub companion_size: Option<Size>,
    /// Whether the model can look things up in the middle of a reply.
    pub tools: bool,
    /// How it is told of tools and calls them.
    pub tool_protocol: ToolProtocol,
}

impl Options {
    /// Whether anything may ever run beside the conversation.
    fn has_companions(&self) -> bool {
        self.companions != Mode::Off || self.compact_at > 0
    }
}

/// A model that remembers.
pub struct Agent<M, E> {
    parts: Parts<M, E>,
    options: Options,
    /// What it costs to tell of tools in the model's own form; `None` where that isn't done.
    native: Option<u32>,
    budget: Budget,
    system: Instructions,
    counts: Counts,
    /// A prompt, or a companion's, which may be as long as the window.
    tokens: Vec<Token>,
    /// Whose conversation the cache holds as the next prompt begins.
    settled: Option<SessionId>,
    /// What is decided about companions in the session of the newest turn.
    mind: Option<Mind>,
    kept: Option<resume::Kept>,
    /// Companions with models of their own.
    apart: Apart<M, E>,
    reranker: Option<Arc<dyn Rerank>>,
    breakers: Breakers,
    /// See [`prompt::Base`].
    base: Option<prompt::Base>,
    /// Whether the snapshot of what every conversation begins with can't be used.
    bad_prefix: bool,
}

/// What is left alone for a while because it failed. A program that is started anew tries again.
#[derive(Clone, Copy, Debug, Default)]
struct Breakers {
    /// Asking the inferrer.
    inferrer: Breaker,
    /// Reading for facts, whose storing may fail.
    facts: Breaker,
    /// Making vectors.
    vectors: Breaker,
}

impl<M: ChatModel, E: PromptEncoder> Agent<M, E> {
    /// An agent whose system prompt is known to fit and whose template is known to render.
    ///
    /// # Errors
    /// [`AgentError`] says what to change.
    pub fn new(parts: Parts<M, E>, options: Options) -> Result<Self, AgentError> {
        let budget = Budget::for_window(parts.model.facts().n_ctx)?;
        let budget = match options.max_tokens {
            Some(tokens) => budget.with_reply_reserve(tokens)?,
            None => budget,
        };
        let budget = match options.memory_tokens {
            Some(tokens) => budget.with_memory(tokens)?,
            None => budget,
        };
        let budget = match options.has_companions() {
            true => budget,
            false => budget.without_companions(),
        };
        let tokens = vec![Token(0); budget.n_ctx as usize];
        let mut parts = parts;
        let (options, native) = protocol::choose(options, &mut parts.encoder, &budget)?;
        let (counts, system) = (Counts::default(), Instructions::default());
        let (settled, mind, kept, apart) = (None, None, None, Apart::default());
        let mut agent = Self {
            parts,
            options,
            native,
            budget,
            system,
            counts,
            tokens,
            settled,
            mind,
            kept,
            apart,
            reranker: None,
            breakers: Breakers::default(),
            base: None,
            bad_prefix: false,
        };
        agent.rehearse()?;
        Ok(agent)
    }

    /// With something that ranks the first hits of what is remembered again.
    #[must_use]
    pub fn with_reranker(self, reranker: Arc<dyn Rerank>) -> Self {
        Self { reranker: Some(reranker), ..self }
    }

    /// The division of the window.
    pub const fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The model's template and tokenizer.
    pub const fn encoder(&self) -> &E {
        &self.parts.encoder
    }

    /// What is remembered.
    pub fn store(&self) -> &Store {
        &self.parts.store
    }

    /// How the model is told of tools: [`ToolProtocol::Tags`] or [`ToolProtocol::Native`], and `None`
    /// where it isn't.
    pub fn tool_protocol(&self) -> Option<ToolProtocol> {
        let protocol =
            if self.native.is_some() { ToolProtocol::Native } else { ToolProtocol::Tags };
        self.options.tools.then_some(protocol)
    }

    /// What makes vectors, if there is any.
    pub fn embedder(&self) -> Option<&dyn Embed> {
        self.parts.embedder.as_deref()
    }

    /// What ranks the first hits of a search again, if there is any.
    pub fn reranker(&self) -> Option<&dyn Rerank> {
        self.reranker.as_deref()
    }

    /// The receipt of the newest answered turn of a session.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn last_receipt(&self, session: &SessionId) -> Result<Option<LastReceipt>, ReadError> {
        let Some((turn, bytes)) = self.parts.store.last_receipt(session)? else { return Ok(None) };
        Ok(StoredReceipt::from_bytes(&bytes).map(|receipt| LastReceipt { turn, receipt }))
    }

    /// Assembles the shortest prompt there is, to find out now what would fail at every turn.
    fn rehearse(&mut self) -> Result<(), AgentError> {
        self.instruct()?;
        let (encoder, system) = (&mut self.parts.encoder, self.system.counted());
        let message = Shown::whole("Hello");
        let input = assemble::Input { system, ..assemble::Input::new(&message) };
        let mut messages = [Message::new(Role::User, ""); 2];
        let scratch = assemble::Scratch {
            messages: &mut messages,
            ends: &mut [0; 2],
            tokens: &mut self.tokens,
        };
        assemble::assemble(&self.budget, encoder, &input, scratch)?;
        Ok(())
    }
}

/// The receipt of the newest answered turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastReceipt {
    /// Which turn.
    pub turn: u64,
    /// Its account.
    pub receipt: StoredReceipt,
}
