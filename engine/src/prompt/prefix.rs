//! The session's fixed prefix: what stays the same of its prompts from one summarising to the next,
//! which is the system message and the turn with which history begins.
//!
//! It is a record in the store, so that a restart, and whatever is said, pinned or learned in between,
//! leave the beginning of the prompt as it is, byte for byte. A record that was made for another model,
//! window or system prompt is replaced; so is one that an erasure removed.

use std::sync::Arc;

use garret_core::assemble::CountedText;
use garret_core::budget::Budget;
use garret_core::id::{SessionId, TurnSeq};
use garret_core::prompt::{EncodeError, PromptEncoder};
use garret_core::time::{Confidence, WallTime};
use garret_storage::{Fact, FactFilter, FactId, ReadError, StateKind, Store};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::{PromptError, erased};
use super::tracked::{self, Root, Sources};
use crate::receipt::LastReceipt;
use crate::remember::persona::PERSONA;
use crate::state;

/// The fixed prefix of a session's prompts, as it is kept in the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionPrefix {
    /// SHA-256 of model, window and system prompt that it was made for.
    made_for: [u8; 32],
    /// The turn it was made for.
    pub made_at: TurnSeq,
    /// The turn with which history begins; summaries cover those before.
    pub from: TurnSeq,
    /// The text after the instructions in the system message.
    pub text: String,
    /// Tokens of the text.
    pub tokens: u32,
    /// Numbers of the facts that the text shows.
    pub facts: Vec<u64>,
    /// Numbers of the facts that were pinned then, shown or not.
    pub pinned: Vec<u64>,
    /// Numbers of the summaries that the text shows.
    pub summaries: Vec<u64>,
    /// Pinned facts that the text doesn't show whole.
    pub pins_left_out: u64,
    /// Summaries that the text doesn't show whole.
    pub summaries_left_out: u64,
    /// Tokens of the last prompt before it was made.
    pub before: u32,
}

impl state::Record for SessionPrefix {
    const VERSION: u8 = 1;
}

impl SessionPrefix {
    /// Reads the prefix of `session`; `None` until its first turn, and when the one there is was made
    /// for another model, window or system prompt.
    ///
    /// # Errors
    /// When the store can't be read.
    pub(crate) fn read(
        store: &Store,
        session: &SessionId,
        instructions: &Instructions,
    ) -> Result<Option<Self>, ReadError> {
        let bytes = state::read(store, session, StateKind::Context)?;
        let prefix = bytes.and_then(|bytes| state::decode::<Self>(&bytes));
        Ok(prefix.filter(|prefix| prefix.made_for == instructions.made_for))
    }

    /// Returns the part of the system message behind the instructions.
    pub(crate) fn counted(&self) -> CountedText<'_> {
        CountedText { text: &self.text, tokens: self.tokens }
    }
}

/// The beginning of every system message: the system prompt, and how tools are used.
#[derive(Clone, Debug, Default)]
pub(crate) struct Instructions {
    pub(crate) text: Arc<str>,
    tokens: u32,
    /// SHA-256 of all that a [`SessionPrefix`] is made for.
    made_for: [u8; 32],
}

impl Instructions {
    /// Counts `text`, with `tool_tokens` that the template adds to tell of tools, for the model of
    /// this `fingerprint`.
    ///
    /// # Errors
    /// Those of the encoder.
    pub(crate) fn new<E: PromptEncoder>(
        encoder: &mut E,
        budget: &Budget,
        fingerprint: &[u8; 32],
        text: Arc<str>,
        tool_tokens: u32,
    ) -> Result<Self, EncodeError<E::Error>> {
        let tokens = CountedText::new(encoder, &text)?.tokens.saturating_add(tool_tokens);
        let mut hash = Sha256::new();
        hash.update(fingerprint);
        for number in [budget.n_ctx, budget.tracked, budget.reply_reserve] {
            hash.update(number.to_le_bytes());
        }
        hash.update(text.as_bytes());
        if tool_tokens > 0 {
            hash.update(tool_tokens.to_le_bytes());
        }
        Ok(Self { text, tokens, made_for: hash.finalize().into() })
    }

    pub(crate) fn counted(&self) -> CountedText<'_> {
        CountedText { text: &self.text, tokens: self.tokens }
    }

    /// Returns the whole system message of prompts that begin with `prefix`; empty for none.
    pub(crate) fn system(&self, prefix: Option<&SessionPrefix>) -> Arc<str> {
        match prefix.map(|prefix| &*prefix.text) {
            None | Some("") => Arc::clone(&self.text),
            Some(text) => [&*self.text, text].concat().into(),
        }
    }
}

/// The changes since a [`SessionPrefix`] was made.
#[derive(Clone, Debug, Default)]
pub(crate) struct News {
    /// Facts that were pinned, in the order of their worth.
    pub(crate) pinned: Vec<Fact>,
    /// Numbers of facts in the prefix that don't hold any more.
    pub(crate) gone: Vec<u64>,
}

impl News {
    /// Reads the news since `prefix` was made.
    ///
    /// # Errors
    /// When the store can't be read.
    pub(crate) fn since(
        store: &Store,
        prefix: &SessionPrefix,
        now: WallTime,
    ) -> Result<Self, ReadError> {
        let mut pinned = store.pinned(now)?;
        pinned.retain(|fact| fact.predicate != PERSONA && !prefix.pinned.contains(&fact.id.0));
        let mut gone = Vec::new();
        for id in &prefix.facts {
            let holds = store.fact(FactId(*id))?.is_some_and(|fact| match now.confidence {
                _ if fact.predicate == PERSONA => true,
                Confidence::Wrong => fact.latest,
                _ => fact.holds_at(now.unix_ms),
            });
            if !holds {
                gone.push(*id);
            }
        }
        Ok(Self { pinned, gone })
    }

    /// Returns the numbers of the pinned facts.
    pub(crate) fn ids(&self) -> impl Iterator<Item = u64> + '_ {
        self.pinned.iter().map(|fact| fact.id.0)
    }
}

/// The error of making a prefix.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrefixError {
    /// The store can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The tokenizer failed.
    #[error("what is tracked can't be counted: {0}")]
    Count(PromptError),
}

/// Everything that a prefix is made with.
pub(crate) struct PrefixMaker<'a, E> {
    pub(crate) store: &'a Store,
    pub(crate) encoder: &'a mut E,
    pub(crate) budget: &'a Budget,
    pub(crate) instructions: &'a Instructions,
    pub(crate) now: WallTime,
}

impl<E: PromptEncoder> PrefixMaker<'_, E> {
    /// Returns the prefix for a turn that is to be answered; makes and stores one where there is none.
    pub(crate) fn for_turn(
        &mut self,
        session: &SessionId,
        turn: TurnSeq,
    ) -> Result<SessionPrefix, PrefixError> {
        if let Some(prefix) = SessionPrefix::read(self.store, session, self.instructions)? {
            return Ok(prefix);
        }
        let epoch = self.store.erasure_epoch();
        let roots = self.store.roots(session)?;
        let from = self.store.frontier(session)?.saturating_add(1).min(turn);
        let roots: Vec<_> = roots.iter().filter(|root| root.to < from).map(Root::from).collect();
        let prefix = self.make(session, roots, from, turn)?;
        let store = self.store.since(epoch);
        let kept = store.set_state(session, StateKind::Context, &state::encode(&prefix));
        if let Err(error) = kept {
            tracing::warn!(%error, "the beginning of the prompt isn't stored: it can change");
        }
        Ok(prefix)
    }

    /// Makes the prefix of a session whose summaries are `roots` and whose history begins with the turn
    /// `from`, for its next turn.
    pub(crate) fn for_next_turn(
        &mut self,
        session: &SessionId,
        roots: Vec<Root<'_>>,
        from: TurnSeq,
    ) -> Result<SessionPrefix, PrefixError> {
        let last = self.store.session(session)?.map_or(0, |info| info.turns);
        self.make(session, roots, from, last.saturating_add(1))
    }

    fn make(
        &mut self,
        session: &SessionId,
        roots: Vec<Root<'_>>,
        from: TurnSeq,
        made_at: TurnSeq,
    ) -> Result<SessionPrefix, PrefixError> {
        let sources = self.sources(roots)?;
        let pinned = sources.pins.iter().map(|fact| fact.id.0).collect();
        let shown = tracked::show(self.encoder, self.budget, &sources);
        let shown = shown.map_err(|error| PrefixError::Count(erased(error)))?;
        let last = LastReceipt::read(self.store, session)?;
        Ok(SessionPrefix {
            made_for: self.instructions.made_for,
            made_at,
            from,
            text: shown.text,
            tokens: shown.tokens,
            facts: shown.facts,
            pinned,
            summaries: shown.summaries,
            pins_left_out: shown.pins_left_out,
            summaries_left_out: shown.summaries_left_out,
            before: last.map_or(0, |last| last.receipt.report.prompt_tokens),
        })
    }

    fn sources<'r>(&self, roots: Vec<Root<'r>>) -> Result<Sources<'r>, ReadError> {
        let filter = FactFilter { predicate: Some(PERSONA), latest: true, ..FactFilter::default() };
        let persona: Vec<Fact> = self.store.facts(&filter)?.facts;
        let mut pins = self.store.pinned(self.now)?;
        pins.retain(|fact| fact.predicate != PERSONA);
        Ok(Sources { pins, persona, roots })
    }
}
