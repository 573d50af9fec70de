//! Idle work: one list of chores for the time in which nobody waits.
//!
//! - Vectors: whatever was said and has none yet gets one.
//! - Facts: what the user said of themselves becomes facts.
//! - Summaries: older turns are summed up and leave the prompt, when that is due; the prompt without
//!   them is brought into the cache. That comes after all else that asks about the conversation, which
//!   goes on from the prompt as it is.
//! - Journal: what waits in the store's journal becomes part of its records, if that is due before
//!   long.
//! - Index: the file of the text index gets what it lacks, when that is much.
//!
//! [`Agent::catch_up`] runs the list whole and says what failed. [`Agent::idle`] runs it until it is
//! dropped: whatever was done is kept, and the rest is done later; what fails is left alone for a while,
//! which gets longer with every failure in a row. It also prepares the next turn: the conversation as
//! the next prompt will show it is brought into the model's cache first (a turn that was answered with a
//! block of memory left its words there; after a restart the cache is empty), and what the user is after
//! is worked out if there is reason to.

use std::fmt;
use std::sync::Arc;

use garret_core::id::{SessionId, TurnSeq};
use garret_core::model::{ChatModel, ModelRole};
use garret_core::prompt::PromptEncoder;
use garret_storage::{ReadError, Store};
use smol::unblock;

use super::{Agent, SummaryRun, When};
use crate::companion::ask;
use crate::embed;
use crate::remember::extract::KeepError;

/// The work that was done while nobody waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Idled {
    /// Tokens that were brought into the model's cache.
    pub prefilled: u32,
    /// Messages and facts that were given vectors.
    pub embedded: usize,
    /// Facts that were new in what the user said.
    pub extracted: usize,
    /// Something was inferred for the next turn.
    pub inferred: bool,
    /// The summaries of older turns.
    pub summaries: SummaryRun,
}

/// The work of [`Agent::catch_up`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct CaughtUp {
    /// Messages and facts that were given vectors.
    pub embedded: usize,
    /// Facts that were new in what the user said.
    pub extracted: usize,
    /// The summaries of older turns: the sum of all runs, and the cause of the last.
    pub summaries: SummaryRun,
    /// Chores that weren't done to their end. They can be tried again; nothing is lost.
    pub failed: Vec<Failure>,
}

impl CaughtUp {
    fn failed(&mut self, chore: Chore, why: impl fmt::Display) {
        self.failed.push(Failure { chore, why: why.to_string() });
    }
}

/// A chore that wasn't done to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The chore.
    pub chore: Chore,
    /// The reason, in words.
    pub why: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: {}", self.chore.as_str(), self.why)
    }
}

/// Something that idle time does, in the order of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Chore {
    /// Vectors of what was said.
    Vectors,
    /// Facts from what was said.
    Facts,
    /// Summaries of older turns.
    Summaries,
    /// The checkpoint of the journal.
    Journal,
    /// The file of the text index.
    Index,
}

impl Chore {
    /// Returns the chore in words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Vectors => "making vectors",
            Self::Facts => "reading for facts",
            Self::Summaries => "summing up",
            Self::Journal => "folding the journal",
            Self::Index => "writing the text index",
        }
    }
}

impl<M: ChatModel, E: PromptEncoder> Agent<M, E> {
    /// Does for later turns of `session` what can be done while nobody waits. Dropping the future at
    /// any moment ends the work within one decode batch, or one call of the embedder; nothing that
    /// was finished is lost, and the next call goes on from there.
    pub async fn idle(&mut self, session: &SessionId) -> Idled {
        let mut idled = Idled { prefilled: self.prefill(session).await, ..Idled::default() };
        idled.embedded = self.embed().await;
        // Before its first message there is no such session.
        if matches!(self.parts.store.session(session), Ok(Some(_))) {
            idled.extracted = self.extract(session).await;
            idled.inferred = self.infer(session).await;
            idled.summaries = self.summarise(session, When::Idle).await;
        }
        for chore in [Chore::Journal, Chore::Index] {
            match self.tend(chore).await {
                Err(why) if chore == Chore::Index => {
                    tracing::debug!(why, "the text index stays as it is");
                }
                Err(why) => tracing::warn!(why, "{} waits", chore.as_str()),
                Ok(()) => {}
            }
        }
        idled
    }

    /// Does for `session` what idle time would have done and nobody gave it: the whole list of chores.
    /// Unlike [`Agent::idle`] it doesn't prepare a next turn: it infers nothing, since that is of use
    /// only while a conversation is open. One chore that fails doesn't keep the others from being done.
    /// Whatever was finished is kept when the future is dropped.
    pub async fn catch_up(&mut self, session: &SessionId) -> CaughtUp {
        let mut done = CaughtUp::default();
        match self.try_embed().await {
            Ok(embedded) => done.embedded = embedded,
            Err(error) => done.failed(Chore::Vectors, error),
        }
        match self.parts.store.session(session) {
            Ok(Some(_)) => {
                if let Err(error) = self.extract_all(session, &mut done).await {
                    done.failed(Chore::Facts, error);
                }
                self.summarise_all(session, &mut done).await;
            }
            Ok(None) => {}
            Err(error) => done.failed(Chore::Facts, error),
        }
        for chore in [Chore::Journal, Chore::Index] {
            if let Err(why) = self.tend(chore).await {
                done.failed(chore, why);
            }
        }
        done
    }

    /// Has the store do one of its own chores, if that is due; returns why it couldn't.
    async fn tend(&self, chore: Chore) -> Result<(), String> {
        let store = Arc::clone(&self.parts.store);
        unblock(move || match chore {
            Chore::Journal => store.tend_journal().map(drop).map_err(|error| error.to_string()),
            _ => store.tend_index(Store::INDEX_TAIL).map(drop).map_err(|error| error.to_string()),
        })
        .await
    }

    /// Has the model bring the conversation into its cache, unless it is there as the next prompt will
    /// show it; returns the number of tokens decoded.
    async fn prefill(&mut self, session: &SessionId) -> u32 {
        if self.conversation.turn_to(&self.parts.store, session).is_prefilled {
            return 0;
        }
        let from = self.live_from(session);
        let live = from.and_then(|from| self.conversation(session, from, u64::MAX, None));
        let Some(live) = live else { return 0 };
        let prompt = self.tokens.get(..live.length).unwrap_or(&self.tokens);
        match ask(&self.parts.model, ModelRole::Main, prompt, None, 0).await {
            Ok(answer) => {
                self.conversation.turn_to(&self.parts.store, session).is_prefilled = true;
                answer.prefilled
            }
            Err(error) => {
                tracing::debug!(%error, "the next turn prefills this one again");
                0
            }
        }
    }

    /// Gives vectors to what has none yet; returns to how much. An embedder that fails is left alone
    /// for a while.
    async fn embed(&mut self) -> usize {
        let now = self.now_ms();
        if !self.backoffs.vectors.allows(now) {
            return 0;
        }
        match self.try_embed().await {
            Ok(embedded) => {
                self.backoffs.vectors.succeeded();
                embedded
            }
            Err(error) => {
                self.backoffs.vectors.failed(now);
                tracing::warn!(%error, "what was said gets its vectors later");
                0
            }
        }
    }

    /// Gives vectors to what has none yet, whatever failed before; returns to how much.
    async fn try_embed(&self) -> Result<usize, embed::WorkError> {
        match &self.parts.embedder {
            Some(embedder) => embed::embed_idle(&self.parts.store, embedder).await,
            None => Ok(0),
        }
    }

    /// Reads all turns for facts that weren't read yet.
    async fn extract_all(
        &mut self,
        session: &SessionId,
        done: &mut CaughtUp,
    ) -> Result<(), KeepError> {
        loop {
            let before = self.extracted_to(session)?;
            let found = self.try_extract(session).await?;
            done.extracted += found.new;
            if let Some(why) = found.unasked {
                let why = format!("{why}; some values are kept as far as the rule reaches");
                done.failed(Chore::Facts, why);
            }
            if self.extracted_to(session)? == before {
                return Ok(());
            }
        }
    }

    /// Returns the last turn that was read for facts.
    fn extracted_to(&mut self, session: &SessionId) -> Result<TurnSeq, ReadError> {
        Ok(self.schedule(session, TurnSeq::MAX)?.extracted)
    }

    /// Sums up for as long as something is made.
    async fn summarise_all(&mut self, session: &SessionId, done: &mut CaughtUp) {
        loop {
            let (more, broken) = self.try_summarise(session, When::Idle).await;
            done.summaries = done.summaries.and(more);
            match broken {
                Some(error) => done.failed(Chore::Summaries, error),
                None if more.waits => done.failed(Chore::Summaries, LEFT_ALONE),
                None => {}
            }
            if more.failed || more.leaves + more.condensed == 0 {
                return;
            }
        }
    }
}

/// The reason for which summing up waits.
const LEFT_ALONE: &str = "the companion failed not long ago and is left alone for a while";
