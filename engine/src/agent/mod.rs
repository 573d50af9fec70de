//! The agent: a message is made durable, put into an exact prompt, answered, and the answer made
//! durable; and whatever is done for later turns while nobody waits.
//!
//! [`Agent`] is generic over the two ports of a model, so that the same loop runs on llama.cpp and
//! on a scripted model. It knows no terminal and no signal: text leaves through a callback, and a
//! [`Cancel`](crate::Cancel) ends a reply.
//!
//! A prompt shows, beside the conversation, what was said elsewhere and answers the message best. It
//! stands in the newest message alone, so after such a turn the model's cache holds words that no
//! later prompt has; [`Agent::idle`] sees to that while nobody waits.
//!
//! This room has all of `impl Agent` and decides in which order things happen; what is said, asked or
//! kept is decided in the rooms below, none of which knows this one.
//!
//! Limits: one turn at a time; the session and its turns are read from the store at every turn, so
//! that nothing is cached that can't be made anew.

mod anticipate;
mod conversation;
mod error;
mod fork;
mod idle;
mod promise;
mod prompt;
mod protocol;
mod remember;
mod reply;
mod snapshot;
mod summarise;
mod tool_loop;
mod turn;

use std::sync::Arc;

use garret_core::assemble;
use garret_core::budget::{Budget, BudgetError};
use garret_core::gate::Mode;
use garret_core::id::{SessionId, TurnSeq};
use garret_core::model::{ChatModel, ModelFacts, ModelRole, Sampling};
use garret_core::prompt::{Message, PromptEncoder, Role};
use garret_core::scan::Companion;
use garret_core::shorten::ShownText;
use garret_core::time::{Clock, Entropy};
use garret_core::token::Token;
use garret_storage::{ReadError, Store};

use crate::companion::backoff::Backoff;
use crate::companion::form::Size;
use crate::companion::own_model::{OwnModels, role_of};
use crate::companion::schedule::Schedule;
use crate::embed::Embed;
use crate::prompt::prefix::{Instructions, PrefixMaker};
use crate::rerank::Rerank;
use conversation::Conversation;

pub use crate::companion::own_model::OwnModel;
pub use crate::prompt::error::{EncoderError, PromptError};
pub use crate::prompt::prefix::SessionPrefix;
pub use crate::receipt::LastReceipt;
pub use crate::remember::persona::PERSONA;
pub use error::{AgentError, ToolProtocolError, TurnError};
pub use idle::{CaughtUp, Chore, Failure, Idled};
pub use protocol::ToolProtocol;
pub use snapshot::PendingSnapshot;
pub use summarise::{SummaryRun, When};
pub use tool_loop::WORDS;
pub use turn::{Outcome, Timing};

/// Everything that an agent is built from.
pub struct Parts<M, E> {
    /// The chat model.
    pub model: M,
    /// The template and the tokenizer of the model.
    pub encoder: E,
    /// The namespace it remembers in.
    pub store: Arc<Store>,
    /// Makes vectors of what was said, so that search goes by meaning too; the store knows it.
    pub embedder: Option<Arc<dyn Embed>>,
    /// The source of time.
    pub clock: Arc<dyn Clock + Send + Sync>,
    /// The source of randomness.
    pub entropy: Arc<dyn Entropy + Send + Sync>,
}

/// The behaviour of an agent.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The system prompt; empty for none.
    pub system_prompt: Arc<str>,
    /// Most tokens of a reply; `None` for the budget's reserve.
    pub max_tokens: Option<u32>,
    /// Most tokens of what is remembered from elsewhere, 0 for none; `None` for the budget's share.
    pub memory_tokens: Option<u32>,
    /// Fill of the prompt, in percent of what it can hold, from which older turns are summed up; 0 for
    /// never.
    pub compact_at: u32,
    /// The choice of tokens; its seed is used when `draw_seed` is off.
    pub sampling: Sampling,
    /// Draw a new seed for each turn.
    pub draw_seed: bool,
    /// Tell the model the time with every message.
    pub show_time: bool,
    /// Readiness of companions to run.
    pub companions: Mode,
    /// The amount that companions are asked for; `None` for what suits the model.
    pub companion_size: Option<Size>,
    /// Let the model look things up in the middle of a reply.
    pub tools: bool,
    /// The form in which it is told of tools and calls them.
    pub tool_protocol: ToolProtocol,
}

impl Options {
    /// Returns whether anything may ever run beside the conversation.
    fn has_companions(&self) -> bool {
        self.companions != Mode::Off || self.compact_at > 0
    }
}

/// A model that remembers.
pub struct Agent<M, E> {
    parts: Parts<M, E>,
    options: Options,
    /// Tokens that the model's own form takes to tell of tools; `None` where that isn't used.
    tool_tokens: Option<u32>,
    budget: Budget,
    instructions: Instructions,
    /// A prompt, or a companion's, which may be as long as the window.
    tokens: Vec<Token>,
    conversation: Conversation,
    own_models: OwnModels<M, E>,
    reranker: Option<Arc<dyn Rerank>>,
    backoffs: Backoffs,
    /// The snapshot of what every conversation begins with can't be used.
    bad_prefix: bool,
}

/// Work that is left alone for a while because it failed. A program that is started anew tries again.
#[derive(Clone, Copy, Debug, Default)]
struct Backoffs {
    /// Asking the inferrer.
    inferrer: Backoff,
    /// Reading for facts, whose storing may fail.
    facts: Backoff,
    /// Making vectors.
    vectors: Backoff,
}

impl<M: ChatModel, E: PromptEncoder> Agent<M, E> {
    /// Creates an agent whose system prompt is known to fit and whose template is known to render.
    ///
    /// # Errors
    /// [`AgentError`] says what to change.
    pub fn new(mut parts: Parts<M, E>, options: Options) -> Result<Self, AgentError> {
        let n_ctx = parts.model.facts().n_ctx;
        let mut budget = budget(n_ctx, options.max_tokens, options.memory_tokens)?;
        if !options.has_companions() {
            budget = budget.without_companions();
        }
        let (options, tool_tokens) = protocol::choose(options, &mut parts.encoder, &budget)?;
        let text = Arc::clone(&options.system_prompt);
        let fingerprint = parts.model.facts().fingerprint;
        let told = tool_tokens.unwrap_or(0);
        let instructions = Instructions::new(&mut parts.encoder, &budget, &fingerprint, text, told)
            .map_err(assemble::AssembleError::from)?;
        let mut agent = Self {
            parts,
            options,
            tool_tokens,
            budget,
            instructions,
            tokens: vec![Token(0); budget.n_ctx as usize],
            conversation: Conversation::default(),
            own_models: OwnModels::default(),
            reranker: None,
            backoffs: Backoffs::default(),
            bad_prefix: false,
        };
        agent.rehearse()?;
        Ok(agent)
    }

    /// Has `reranker` rank the first hits of what is remembered again.
    #[must_use]
    pub fn with_reranker(self, reranker: Arc<dyn Rerank>) -> Self {
        Self { reranker: Some(reranker), ..self }
    }

    /// Has `companion` use a model of its own. It is told what was said as a text from then on.
    #[must_use]
    pub fn with_own_model(mut self, companion: Companion, own: OwnModel<M, E>) -> Self {
        self.own_models.set(companion, own);
        self
    }

    /// Returns the own model of a companion; `None` where it goes on from the conversation.
    pub fn own_model(&self, companion: Companion) -> Option<ModelFacts> {
        self.own_models.of(role_of(companion)).map(|own| own.model.facts())
    }

    /// Returns the division of the window.
    pub const fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Returns the model's template and tokenizer.
    pub const fn encoder(&self) -> &E {
        &self.parts.encoder
    }

    /// Returns the namespace that it remembers in.
    pub fn store(&self) -> &Store {
        &self.parts.store
    }

    /// Returns the form in which the model is told of tools: [`ToolProtocol::Tags`] or
    /// [`ToolProtocol::Native`], and `None` where it isn't told.
    pub fn tool_protocol(&self) -> Option<ToolProtocol> {
        let protocol = match self.tool_tokens {
            Some(_) => ToolProtocol::Native,
            None => ToolProtocol::Tags,
        };
        self.options.tools.then_some(protocol)
    }

    /// Returns the embedder, if there is any.
    pub fn embedder(&self) -> Option<&dyn Embed> {
        self.parts.embedder.as_deref()
    }

    /// Returns the reranker, if there is any.
    pub fn reranker(&self) -> Option<&dyn Rerank> {
        self.reranker.as_deref()
    }

    /// Reads the receipt of the newest answered turn of a session.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn last_receipt(&self, session: &SessionId) -> Result<Option<LastReceipt>, ReadError> {
        LastReceipt::read(&self.parts.store, session)
    }

    /// Reads the fixed prefix of a session's prompts; `None` until its first turn, and when the one
    /// there is was made for another model, window or system prompt.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn session_prefix(&self, session: &SessionId) -> Result<Option<SessionPrefix>, ReadError> {
        SessionPrefix::read(&self.parts.store, session, &self.instructions)
    }

    /// Returns the whole system message with which every prompt of a session begins; empty for none.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn system(&self, session: &SessionId) -> Result<Arc<str>, ReadError> {
        Ok(self.instructions.system(self.session_prefix(session)?.as_ref()))
    }

    /// Assembles the shortest prompt there is, to find out now what would fail at every turn.
    fn rehearse(&mut self) -> Result<(), AgentError> {
        let message = ShownText::whole("Hello");
        let system = self.instructions.counted();
        let input = assemble::Input { system, ..assemble::Input::new(&message) };
        let mut messages = [Message::new(Role::User, ""); 2];
        let scratch = assemble::Scratch {
            messages: &mut messages,
            ends: &mut [0; 2],
            tokens: &mut self.tokens,
        };
        assemble::assemble(&self.budget, &mut self.parts.encoder, &input, scratch)?;
        Ok(())
    }

    /// Returns the model that answers in a role.
    fn model_of(&self, role: ModelRole) -> &M {
        self.own_models.of(role).map_or(&self.parts.model, |own| &own.model)
    }

    /// Returns the schedule of a session's companions, opened at turn `turn` if it isn't open.
    fn schedule(&mut self, session: &SessionId, turn: TurnSeq) -> Result<&mut Schedule, ReadError> {
        self.conversation.schedule(&self.parts.store, session, turn)
    }

    /// Returns the maker of session prefixes, as of now.
    fn prefix_maker(&mut self) -> PrefixMaker<'_, E> {
        PrefixMaker {
            store: &self.parts.store,
            encoder: &mut self.parts.encoder,
            budget: &self.budget,
            instructions: &self.instructions,
            now: self.parts.clock.wall(),
        }
    }

    /// Reads the monotonic clock, in milliseconds, by which backoffs go.
    fn now_ms(&self) -> i64 {
        i64::try_from(self.parts.clock.monotonic_us() / 1_000).unwrap_or(i64::MAX)
    }
}

/// Divides a window of `n_ctx` tokens as `max_tokens` and `memory_tokens` of [`Options`] ask.
pub(crate) fn budget(
    n_ctx: u32,
    max_tokens: Option<u32>,
    memory_tokens: Option<u32>,
) -> Result<Budget, BudgetError> {
    let mut budget = Budget::for_window(n_ctx)?;
    if let Some(tokens) = max_tokens {
        budget = budget.with_reply_reserve(tokens)?;
    }
    if let Some(tokens) = memory_tokens {
        budget = budget.with_memory(tokens)?;
    }
    Ok(budget)
}

/// Microseconds after which a companion's answer isn't waited for any longer.
const CALL_US: u64 = 180_000_000;
