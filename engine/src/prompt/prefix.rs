//! What stays the same of a session's prompts from one compaction to the next: the system message and
//! the turn with which history begins.
//!
//! It is a record in the store, so that a restart, and whatever is said, pinned or learned in between,
//! leave the prefix of the prompt as it is, byte for byte. A record that was made for another model,
//! window or system prompt is replaced; so is one that a forget removed.

use std::sync::Arc;

use garret_core::assemble::{AssembleError, Counted};
use garret_core::id::{SessionId, TurnSeq};
use garret_core::model::ChatModel;
use garret_core::prompt::PromptEncoder;
use garret_core::time::Confidence;
use garret_storage::{Fact, FactFilter, FactId, ReadError, StateKind};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::{PromptError, erased};
use super::tracked::{self, Root, Sources};
use super::{Agent, AgentError, states};

/// The record; see the module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// SHA-256 of what it was made for.
    made_for: [u8; 32],
    /// The turn it was made for.
    pub made_at: TurnSeq,
    /// The turn with which history begins; summaries cover those before.
    pub from: TurnSeq,
    /// What follows the instructions in the system message.
    pub text: String,
    /// Its tokens.
    pub tokens: u32,
    /// Numbers of the facts in it.
    pub facts: Vec<u64>,
    /// Numbers of the facts that were pinned then, in it or not.
    pub pinned: Vec<u64>,
    /// Numbers of the summaries in it.
    pub summaries: Vec<u64>,
    /// Pinned facts that it doesn't show whole.
    pub pins_left_out: u64,
    /// Summaries that it doesn't show whole.
    pub summaries_left_out: u64,
    /// Tokens of the last prompt before it.
    pub before: u32,
}

impl Context {
    /// The record.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        // Serialising numbers, strings and lists of them into memory can't fail.
        postcard::to_extend(self, vec![VERSION]).unwrap_or_default()
    }

    /// Reads a record; `None` when it is of another version or damaged: it is made anew then.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (version, body) = bytes.split_first()?;
        (*version == VERSION).then(|| postcard::from_bytes(body).ok()).flatten()
    }

    /// What stands in the system message after the instructions.
    pub(super) fn counted(&self) -> Counted<'_> {
        Counted { text: &self.text, tokens: self.tokens }
    }
}

/// The beginning of every system message.
#[derive(Clone, Debug, Default)]
pub(super) struct Instructions {
    pub(super) text: Arc<str>,
    tokens: u32,
    /// SHA-256 of all that a [`Context`] is made for.
    made_for: [u8; 32],
}

impl Instructions {
    pub(super) fn counted(&self) -> Counted<'_> {
        Counted { text: &self.text, tokens: self.tokens }
    }
}

/// What changed since a [`Context`] was made.
#[derive(Clone, Debug, Default)]
pub(super) struct News {
    /// Facts that were pinned, those that go first first.
    pub(super) pinned: Vec<Fact>,
    /// Numbers of facts in the context that don't hold any more.
    pub(super) gone: Vec<u64>,
}

impl News {
    /// Numbers of the pinned facts.
    pub(super) fn ids(&self) -> impl Iterator<Item = u64> + '_ {
        self.pinned.iter().map(|fact| fact.id.0)
    }
}

/// Why no context could be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum ContextError {
    /// The store can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The tokenizer failed.
    #[error("what is tracked can't be counted: {0}")]
    Count(PromptError),
}

impl<M: ChatModel, E: PromptEncoder> Agent<M, E> {
    /// The whole system message with which every prompt of a session begins; empty for none.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn system(&self, session: &SessionId) -> Result<Arc<str>, ReadError> {
        Ok(match self.context(session)? {
            Some(context) => self.system_with(&context),
            None => Arc::clone(&self.system.text),
        })
    }

    /// The system message under `context`.
    pub(super) fn system_with(&self, context: &Context) -> Arc<str> {
        match &*context.text {
            "" => Arc::clone(&self.system.text),
            text => [&*self.system.text, text].concat().into(),
        }
    }

    /// What stays the same of a session's prompts; `None` until its first turn, and when what there
    /// is was made for another model, window or system prompt.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn context(&self, session: &SessionId) -> Result<Option<Context>, ReadError> {
        let bytes = states::read(&self.parts.store, session, StateKind::Context)?;
        let context = bytes.and_then(|bytes| Context::from_bytes(&bytes));
        Ok(context.filter(|context| context.made_for == self.system.made_for))
    }

    /// The same for a turn that is to be answered: made and stored where there is none.
    pub(super) fn context_for(
        &mut self,
        session: &SessionId,
        turn: TurnSeq,
    ) -> Result<Context, ContextError> {
        if let Some(context) = self.context(session)? {
            return Ok(context);
        }
        let ticket = self.parts.store.ticket();
        let roots = self.parts.store.roots(session)?;
        let from = self.parts.store.frontier(session)?.saturating_add(1).min(turn);
        let roots: Vec<_> = roots.iter().filter(|root| root.to < from).map(Root::from).collect();
        let context = self.make_context(session, roots, from, turn)?;
        let store = self.parts.store.since(ticket);
        let kept = store.set_state(session, StateKind::Context, &context.to_bytes());
        if let Err(error) = kept {
            tracing::warn!(%error, "the beginning of the prompt isn't stored: it can change");
        }
        Ok(context)
    }

    /// The record of a session whose summaries will be `roots` and whose history will begin with the
    /// turn `from`.
    pub(super) fn build_context(
        &mut self,
        session: &SessionId,
        roots: Vec<Root<'_>>,
        from: TurnSeq,
    ) -> Result<Context, ContextError> {
        let last = self.parts.store.session(session)?.map_or(0, |info| info.turns);
        self.make_context(session, roots, from, last.saturating_add(1))
    }

    fn make_context(
        &mut self,
        session: &SessionId,
        roots: Vec<Root<'_>>,
        from: TurnSeq,
        made_at: TurnSeq,
    ) -> Result<Context, ContextError> {
        let sources = self.sources(roots)?;
        let pinned = sources.pins.iter().map(|fact| fact.id.0).collect();
        let shown = tracked::show(&mut self.parts.encoder, &self.budget, &sources);
        let shown = shown.map_err(|error| ContextError::Count(erased(error)))?;
        let before =
            self.last_receipt(session)?.map_or(0, |last| last.receipt.report.prompt_tokens);
        Ok(Context {
            made_for: self.system.made_for,
            made_at,
            from,
            text: shown.text,
            tokens: shown.tokens,
            facts: shown.facts,
            pinned,
            summaries: shown.summaries,
            pins_left_out: shown.pins_left_out,
            summaries_left_out: shown.summaries_left_out,
            before,
        })
    }

    fn sources<'r>(&self, roots: Vec<Root<'r>>) -> Result<Sources<'r>, ReadError> {
        let filter = FactFilter { predicate: Some(PERSONA), latest: true, ..FactFilter::default() };
        let persona: Vec<Fact> = self.parts.store.facts(&filter)?.facts;
        let mut pins = self.parts.store.pinned(self.parts.clock.wall())?;
        pins.retain(|fact| fact.predicate != PERSONA);
        Ok(Sources { pins, persona, roots })
    }

    /// What the prompt has to say beside a context because it came later.
    pub(super) fn news(&self, context: &Context) -> Result<News, ReadError> {
        let (now, store) = (self.parts.clock.wall(), &self.parts.store);
        let mut pinned = store.pinned(now)?;
        pinned.retain(|fact| fact.predicate != PERSONA && !context.pinned.contains(&fact.id.0));
        let mut gone = Vec::new();
        for id in &context.facts {
            let holds = store.fact(FactId(*id))?.is_some_and(|fact| match now.confidence {
                _ if fact.predicate == PERSONA => true,
                Confidence::Wrong => fact.latest,
                _ => fact.holds_at(now.unix_ms),
            });
            if !holds {
                gone.push(*id);
            }
        }
        Ok(News { pinned, gone })
    }

    /// Counts the instructions and makes sure that they fit.
    pub(super) fn instruct(&mut self) -> Result<(), AgentError> {
        let text: Arc<str> = Arc::clone(&self.options.system_prompt);
        let counted = Counted::new(&mut self.parts.encoder, &text);
        let native = self.native.unwrap_or(0);
        let tokens = counted.map_err(AssembleError::from)?.tokens.saturating_add(native);
        let mut hash = Sha256::new();
        hash.update(self.parts.model.facts().fingerprint);
        for number in [self.budget.n_ctx, self.budget.tracked, self.budget.reply_reserve] {
            hash.update(number.to_le_bytes());
        }
        hash.update(text.as_bytes());
        if native > 0 {
            hash.update(native.to_le_bytes());
        }
        self.system = Instructions { text, tokens, made_for: hash.finalize().into() };
        Ok(())
    }
}

/// Predicate of the fact that says what the user is like, in a few sentences.
pub const PERSONA: &str = "persona";
/// Version of the record.
const VERSION: u8 = 1;
