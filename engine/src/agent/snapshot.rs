//! Snapshots: going on after a restart without reading the conversation again.
//!
//! What the cache holds of a conversation is kept in the store's snapshot, and what every
//! conversation begins with in another one, for conversations that are new. A snapshot is used only
//! where model, window, llama.cpp and (of a prefix) the words are those that it was made with; in any
//! other case, as in that of a damaged one, the prompt is read as if there were none.
//!
//! Limits: one conversation at a time is kept, the one that was left last.

use std::sync::Arc;

use garret_core::assemble::{self, Scratch};
use garret_core::id::{SessionId, TurnSeq};
use garret_core::model::Resumable;
use garret_core::prompt::{Message, PromptEncoder, Role};
use garret_core::token::Token;
use garret_storage::{ErasureEpoch, SnapshotKind, Store, Unusable, WriteError};
use sha2::{Digest as _, Sha256};

use super::Agent;
use super::conversation::KeptSnapshot;

/// A snapshot that is still to be written.
#[derive(Debug)]
pub struct PendingSnapshot<S> {
    store: Arc<Store>,
    epoch: ErasureEpoch,
    kind: SnapshotKind,
    fingerprint: [u8; 32],
    state: S,
}

impl<S: AsRef<[u8]>> PendingSnapshot<S> {
    /// Returns the bytes of the state.
    pub fn bytes(&self) -> usize {
        self.state.as_ref().len()
    }

    /// Writes it, which takes as long as the device needs. Returns false when something was erased since
    /// its state was taken: nothing is written then.
    ///
    /// # Errors
    /// [`WriteError`]; there is no snapshot then, and nothing else is lost.
    pub fn write(&self) -> Result<bool, WriteError> {
        let pieces = [self.state.as_ref()];
        self.store.save_snapshot(self.kind, self.epoch, &self.fingerprint, &pieces)
    }
}

impl<M: Resumable, E: PromptEncoder> Agent<M, E> {
    /// Brings into the model's cache what there is a snapshot of: the conversation, or at least its
    /// beginning. Returns how many tokens that are. Belongs before a session's first turn.
    pub fn resume(&mut self, session: &SessionId) -> u32 {
        let conversation = self.conversation_print(session);
        let resumed = self.restore(SnapshotKind::Conversation, &conversation);
        if resumed > 0 {
            // What is there needn't be written again.
            let turn = self.last_receipt(session).ok().flatten().map_or(0, |last| last.turn);
            let tokens = resumed as usize;
            let conversation = self.conversation.turn_to(&self.parts.store, session);
            conversation.snapshot = Some(KeptSnapshot { turn, tokens });
            return resumed;
        }
        let prefix = self.prefix_print();
        self.restore(SnapshotKind::Prefix, &prefix)
    }

    fn restore(&mut self, kind: SnapshotKind, fingerprint: &[u8; 32]) -> u32 {
        let state = match self.parts.store.load_snapshot(kind, fingerprint) {
            Ok(Ok(state)) => state,
            Ok(Err(Unusable::Missing)) => return 0,
            Ok(Err(why)) => {
                self.bad_prefix |= kind == SnapshotKind::Prefix;
                tracing::info!(?kind, %why, "a snapshot isn't used; the prompt is read instead");
                return 0;
            }
            Err(error) => {
                tracing::warn!(?kind, %error, "a snapshot can't be read; the prompt is instead");
                return 0;
            }
        };
        self.parts.model.restore(&state).unwrap_or_else(|error| {
            tracing::warn!(?kind, %error, "a snapshot isn't used; the prompt is read instead");
            0
        })
    }

    /// Takes the state of a conversation that has at least `more` tokens more than its snapshot, if it
    /// has at most `most` bytes.
    pub fn snapshot(
        &mut self,
        session: &SessionId,
        more: usize,
        most: u64,
    ) -> Option<PendingSnapshot<M::State>> {
        let epoch = self.parts.store.erasure_epoch();
        let from = self.live_from(session)?;
        let live = self.conversation(session, from, TurnSeq::MAX, None)?;
        let turn = live.to;
        let tokens = live.length;
        let conversation = self.conversation.turn_to(&self.parts.store, session);
        if let Some(kept) = conversation.snapshot
            && (kept.turn == turn || tokens < kept.tokens.saturating_add(more))
            && kept.tokens <= tokens
        {
            return None;
        }
        let state = self.state(live.length, most)?;
        let kind = SnapshotKind::Conversation;
        let fingerprint = self.conversation_print(session);
        let conversation = self.conversation.turn_to(&self.parts.store, session);
        conversation.snapshot = Some(KeptSnapshot { turn, tokens });
        let store = Arc::clone(&self.parts.store);
        Some(PendingSnapshot { store, epoch, kind, fingerprint, state })
    }

    /// Takes the state of the beginning of every conversation, unless there is a snapshot of it that
    /// wasn't found damaged. The cache loses the conversation by this: it is for the end.
    pub fn prefix_snapshot(&mut self, most: u64) -> Option<PendingSnapshot<M::State>> {
        let kind = SnapshotKind::Prefix;
        let fingerprint = self.prefix_print();
        let epoch = self.parts.store.erasure_epoch();
        if !self.bad_prefix && self.parts.store.has_snapshot(kind, &fingerprint).ok()? {
            return None;
        }
        let length = self.prefix()?;
        let state = self.state(length, most)?;
        Some(PendingSnapshot {
            store: Arc::clone(&self.parts.store),
            epoch,
            kind,
            fingerprint,
            state,
        })
    }

    /// Takes the state of the first `length` of `self.tokens`.
    fn state(&self, length: usize, most: u64) -> Option<M::State> {
        let prompt: &[Token] = self.tokens.get(..length)?;
        self.parts.model.save(prompt, most).unwrap_or_else(|error| {
            tracing::warn!(%error, "no snapshot can be taken; the next start reads the prompt");
            None
        })
    }

    /// Encodes the beginning of every conversation into `self.tokens`; returns its length.
    fn prefix(&mut self) -> Option<usize> {
        let mut messages = [Message::new(Role::User, "")];
        let tokens = &mut self.tokens;
        let scratch = Scratch { messages: &mut messages, ends: &mut [0], tokens };
        let system = &self.instructions.text;
        let run = assemble::conversation(&mut self.parts.encoder, system, &[], scratch).ok()?;
        (!run.is_empty()).then_some(run.len())
    }

    fn conversation_print(&self, session: &SessionId) -> [u8; 32] {
        self.print("conversation", session.as_str())
    }

    fn prefix_print(&self) -> [u8; 32] {
        self.print("prefix", &self.instructions.text)
    }

    fn print(&self, kind: &str, what: &str) -> [u8; 32] {
        let state = self.parts.model.state_fingerprint();
        Sha256::new().chain_update(state).chain_update(kind).chain_update(what).finalize().into()
    }
}
