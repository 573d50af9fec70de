//! What idle time would have done for a session that had none, all at once, and what of it failed.
//!
//! Limits: what a user is after is worked out only while a conversation is open, so not here.

use std::fmt;
use std::sync::Arc;

use garret_core::id::{SessionId, TurnSeq};
use garret_core::model::ChatModel;
use garret_core::prompt::PromptEncoder;
use garret_storage::{ReadError, Store};
use smol::unblock;

use super::{Agent, Compaction, When};
use crate::embed;
use crate::infer::extract::KeepError;

/// What [`Agent::catch_up`] did.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct CaughtUp {
    /// Messages and facts that were given vectors.
    pub embedded: usize,
    /// Facts that were new in what the user said.
    pub extracted: usize,
    /// What became of older turns: the sum of all compactions, and the cause of the last.
    pub compaction: Compaction,
    /// What wasn't done to its end. It can be tried again; nothing is lost.
    pub failed: Vec<Failure>,
}

impl CaughtUp {
    fn failed(&mut self, chore: Chore, why: impl fmt::Display) {
        self.failed.push(Failure { chore, why: why.to_string() });
    }
}

/// Something that wasn't done to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// What.
    pub chore: Chore,
    /// Why, in words.
    pub why: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: {}", self.chore.as_str(), self.why)
    }
}

/// Something that idle time does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Chore {
    /// Vectors of what was said.
    Vectors,
    /// Facts from what was said.
    Facts,
    /// Summaries of older turns.
    Summaries,
    /// Folding the journal into the records.
    Journal,
    /// The file of the text index.
    Index,
}

impl Chore {
    /// What is done, in words.
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
    /// Does for `session` what idle time would have done and nobody gave it: vectors, facts and
    /// summaries. Unlike [`Agent::idle`] it doesn't prepare a next turn, and infers nothing. One thing
    /// that fails doesn't keep the others from being done. What was finished is kept when the future
    /// is dropped.
    pub async fn catch_up(&mut self, session: &SessionId) -> CaughtUp {
        let mut done = CaughtUp::default();
        match self.try_embed().await {
            Ok(embedded) => done.embedded = embedded,
            Err(error) => done.failed(Chore::Vectors, error),
        }
        match self.parts.store.session(session) {
            Ok(Some(_)) => {
                if let Err(error) = self.read_all(session, &mut done).await {
                    done.failed(Chore::Facts, error);
                }
                self.sum_all_up(session, &mut done).await;
            }
            Ok(None) => {}
            Err(error) => done.failed(Chore::Facts, error),
        }
        let store = Arc::clone(&self.parts.store);
        if let Err(error) = unblock(move || store.tend_journal()).await {
            done.failed(Chore::Journal, error);
        }
        let store = Arc::clone(&self.parts.store);
        if let Err(error) = unblock(move || store.tend_index(Store::INDEX_TAIL)).await {
            done.failed(Chore::Index, error);
        }
        done
    }

    /// Reads all turns for facts that weren't read yet.
    async fn read_all(
        &mut self,
        session: &SessionId,
        done: &mut CaughtUp,
    ) -> Result<(), KeepError> {
        loop {
            let before = self.read_to(session)?;
            let found = self.try_extract(session).await?;
            done.extracted += found.new;
            if let Some(why) = found.unasked {
                let why = format!("{why}; some values are kept as far as the rule reaches");
                done.failed(Chore::Facts, why);
            }
            if self.read_to(session)? == before {
                return Ok(());
            }
        }
    }

    /// Compacts for as long as something is made.
    async fn sum_all_up(&mut self, session: &SessionId, done: &mut CaughtUp) {
        loop {
            let (more, broken) = self.try_compact(session, When::Idle).await;
            let all = &mut done.compaction;
            *all = Compaction {
                leaves: all.leaves + more.leaves,
                condensed: all.condensed + more.condensed,
                extracts: all.extracts + more.extracts,
                calls: all.calls + more.calls,
                reused: all.reused + more.reused,
                prefilled: all.prefilled + more.prefilled,
                generated: all.generated + more.generated,
                rebased: all.rebased + more.rebased,
                unreadable: all.unreadable + more.unreadable,
                cause: more.cause.or(all.cause),
                waits: more.waits,
                failed: more.failed,
            };
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

    /// The last turn that was read for facts.
    fn read_to(&mut self, session: &SessionId) -> Result<TurnSeq, ReadError> {
        Ok(self.mind(session, TurnSeq::MAX)?.extracted)
    }

    /// Gives vectors to what has none yet; to how much.
    pub(super) async fn try_embed(&self) -> Result<usize, embed::WorkError> {
        match &self.parts.embedder {
            Some(embedder) => embed::embed_idle(&self.parts.store, embedder).await,
            None => Ok(0),
        }
    }
}

/// Why summing up waits.
const LEFT_ALONE: &str = "the companion failed not long ago and is left alone for a while";
