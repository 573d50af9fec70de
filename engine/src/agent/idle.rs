//! Work for the time in which nobody waits: one future, which ends when it is dropped.
//!
//! - The conversation as the next prompt will show it is brought into the model's cache. A turn that
//!   was answered with a block of memory left its words there, and the next prompt has the turn
//!   without them; after a restart the cache is empty.
//! - What was said and has no vector yet gets one.
//! - What the user said of themselves becomes facts, and what they are after is worked out if there is
//!   reason to.
//! - Older turns are summed up and leave the prompt, when that is due; the prompt without them is
//!   brought into the cache. That comes after all else that asks about the conversation, which goes on
//!   from the prompt as it is.
//! - What waits in the store's journal becomes part of its records, if that is due before long.
//! - The file of the text index gets what it lacks, when that is much.
//!
//! Whatever was done when it is dropped is kept, and the rest is done later. What fails is left alone
//! for a while, which gets longer with every failure in a row.

use std::sync::Arc;

use garret_core::id::SessionId;
use garret_core::model::{ChatModel, ModelRole};
use garret_core::prompt::PromptEncoder;
use garret_storage::Store;
use smol::unblock;

use super::{Agent, Compaction, When};
use crate::companion::ask;

/// What was done while nobody waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Idled {
    /// Tokens that were brought into the model's cache.
    pub prefilled: u32,
    /// Messages and facts that were given vectors.
    pub embedded: usize,
    /// Facts that were new in what the user said.
    pub extracted: usize,
    /// Whether something was inferred for the next turn.
    pub inferred: bool,
    /// What became of older turns.
    pub compaction: Compaction,
}

impl<M: ChatModel, E: PromptEncoder> Agent<M, E> {
    /// Does for later turns of `session` what can be done while nobody waits. Dropping the future at
    /// any moment ends the work within one decode batch, or one call of the embedder; nothing that
    /// was finished is lost, and the next call goes on from there.
    pub async fn idle(&mut self, session: &SessionId) -> Idled {
        let mut idled = Idled { prefilled: self.settle(session).await, ..Idled::default() };
        idled.embedded = self.embed().await;
        // Before its first message there is no such session.
        if matches!(self.parts.store.session(session), Ok(Some(_))) {
            idled.extracted = self.extract(session).await;
            idled.inferred = self.infer(session).await;
            idled.compaction = self.compact(session, When::Idle).await;
        }
        self.fold().await;
        self.tend_index().await;
        idled
    }

    /// Writes to the file of the text index what it lacks, when that is much.
    async fn tend_index(&self) {
        let store = Arc::clone(&self.parts.store);
        let tended = unblock(move || store.tend_index(Store::INDEX_TAIL)).await;
        if let Err(error) = tended {
            tracing::debug!(%error, "the text index stays as it is");
        }
    }

    /// Has the model bring the conversation into its cache, unless it is there as the next prompt will
    /// show it; the number of tokens decoded.
    async fn settle(&mut self, session: &SessionId) -> u32 {
        if self.settled.as_ref() == Some(session) {
            return 0;
        }
        let from = self.live_from(session);
        let live = from.and_then(|from| self.conversation(session, from, u64::MAX, None));
        let Some(live) = live else { return 0 };
        let prompt = self.tokens.get(..live.length).unwrap_or(&self.tokens);
        match ask(&self.parts.model, ModelRole::Main, prompt, None, 0).await {
            Ok(answer) => {
                self.settled = Some(session.clone());
                answer.prefilled
            }
            Err(error) => {
                tracing::debug!(%error, "the next turn prefills this one again");
                0
            }
        }
    }

    /// Gives vectors to what has none yet; to how much. An embedder that fails is left alone for a
    /// while.
    async fn embed(&mut self) -> usize {
        let now = self.now_ms();
        if !self.breakers.vectors.allows(now) {
            return 0;
        }
        match self.try_embed().await {
            Ok(embedded) => {
                self.breakers.vectors.succeeded();
                embedded
            }
            Err(error) => {
                self.breakers.vectors.failed(now);
                tracing::warn!(%error, "what was said gets its vectors later");
                0
            }
        }
    }

    /// The monotonic clock, in milliseconds: what breakers go by.
    pub(super) fn now_ms(&self) -> i64 {
        i64::try_from(self.parts.clock.monotonic_us() / 1_000).unwrap_or(i64::MAX)
    }

    /// Folds the store's journal now if it would be folded by a message before long, which would have
    /// to wait for it.
    async fn fold(&self) {
        let store = Arc::clone(&self.parts.store);
        match unblock(move || store.tend_journal()).await {
            Ok(folded) => tracing::trace!(folded, "looked after the journal"),
            Err(error) => tracing::warn!(%error, "the journal is folded later"),
        }
    }
}
