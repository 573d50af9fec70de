//! Asking companions: on a fork of the live conversation, or a model of their own with its text.
//!
//! The prompt of a fork is the conversation as the main sequence of the model's cache holds it, cut after
//! some turn, and one message with what is asked. The companion's sequence shares the cells of what
//! they have in common, so that only the message is decoded.
//!
//! Limits: whatever a fork adds must fit beside the whole conversation, since a companion never
//! pushes it out; else there is no fork.

use garret_core::assemble::{self, Scratch};
use garret_core::id::{SessionId, TurnSeq};
use garret_core::model::ChatModel;
use garret_core::prompt::{Message, PromptEncoder, Role};

use super::{Agent, CALL_US};
use crate::companion::transcript::{end_prompt, recent_lines};
use crate::companion::{Answer, Question, ask_until};
use crate::prompt::history::Limits;

/// A fork's prompt, which is at the beginning of the agent's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ForkPrompt {
    /// Tokens of the prompt.
    pub(super) length: usize,
    /// Tokens of the prompt that are the conversation's.
    pub(super) shared: usize,
    /// The oldest turn it shows.
    pub(super) from: TurnSeq,
    /// The newest turn it shows.
    pub(super) to: TurnSeq,
}

impl<M: ChatModel, E: PromptEncoder> Agent<M, E> {
    /// Asks something about the conversation up to turn `to`, or to its newest turn: on a fork of it,
    /// or a companion that has a model of its own with a text. `None` when there is no such
    /// conversation in the cache, or the fork doesn't fit beside it, or nothing of the text fits, or
    /// there is no answer in time.
    ///
    /// # Errors
    /// The model's.
    pub async fn ask_about(
        &mut self,
        session: &SessionId,
        to: Option<TurnSeq>,
        question: &Question<'_>,
    ) -> Result<Option<Answer>, M::Error> {
        let Question { role, instruction, max_tokens, .. } = *question;
        if self.own_models.of(role).is_some() {
            return self.ask_own_model(session, to, question).await;
        }
        let Some(fork) = self.fork_prompt(session, to, instruction, max_tokens) else {
            return Ok(None);
        };
        let prompt = self.tokens.get(..fork.length).unwrap_or(&self.tokens);
        let clock = &*self.parts.clock;
        let deadline = clock.monotonic_us().saturating_add(CALL_US);
        ask_until(&self.parts.model, question, prompt, clock, deadline).await
    }

    /// Asks a companion with a model of its own about the end of a conversation, at turn `to` or the
    /// newest. `None` when nothing was said, or nothing of it fits.
    async fn ask_own_model(
        &mut self,
        session: &SessionId,
        to: Option<TurnSeq>,
        question: &Question<'_>,
    ) -> Result<Option<Answer>, M::Error> {
        let Question { role, instruction, max_tokens, .. } = *question;
        let lines = recent_lines(&self.parts.store, session, to.unwrap_or(TurnSeq::MAX));
        let Some(own) = self.own_models.of_mut(role) else { return Ok(None) };
        let n_ctx = own.model.facts().n_ctx;
        let prompt = match end_prompt(&mut own.encoder, n_ctx, &lines, instruction, max_tokens) {
            Ok(Some(prompt)) => prompt,
            Ok(None) => return Ok(None),
            Err(error) => {
                tracing::warn!(%error, "the companion's own model can't be told what was said");
                return Ok(None);
            }
        };
        let clock = &*self.parts.clock;
        let deadline = clock.monotonic_us().saturating_add(CALL_US);
        ask_until(&own.model, question, &prompt, clock, deadline).await
    }

    /// Encodes a fork at the end of turn `to`, or of the newest turn, that asks `instruction` and may
    /// be answered in `max_tokens`. `None` when there is no such conversation in the cache, or the
    /// fork doesn't fit beside it.
    pub(super) fn fork_prompt(
        &mut self,
        session: &SessionId,
        to: Option<TurnSeq>,
        instruction: &str,
        max_tokens: u32,
    ) -> Option<ForkPrompt> {
        let from = self.live_from(session)?;
        let live = self.conversation(session, from, TurnSeq::MAX, None)?;
        let to = to.unwrap_or(live.to);
        let fork = self.conversation(session, from, to, Some(instruction))?;
        let added = fork.length.saturating_sub(fork.shared);
        let needed = added.saturating_add(max_tokens as usize);
        (fork.to == to && needed <= self.budget.companion_room(live.length)).then_some(fork)
    }

    /// Returns the turn with which the conversation begins that the newest prompt showed and the next one
    /// goes on with. `None` when nothing was answered yet.
    pub(super) fn live_from(&self, session: &SessionId) -> Option<TurnSeq> {
        let last = self.last_receipt(session).ok()??;
        let from = self.session_prefix(session).ok()?.map_or(1, |prefix| prefix.from);
        Some(last.receipt.history_from.unwrap_or(last.turn).max(from))
    }

    /// Encodes turns `from` to `to` at most as the next prompt begins, and what is asked after them.
    /// `None` when there are none, when they can't be read, or when they fit no prompt.
    pub(super) fn conversation(
        &mut self,
        session: &SessionId,
        from: TurnSeq,
        to: TurnSeq,
        ask: Option<&str>,
    ) -> Option<ForkPrompt> {
        let system = self.system(session).ok()?;
        self.conversation_under(&system, session, from, to, ask)
    }

    /// Encodes a conversation like [`Agent::conversation`], under a system message that may not be the
    /// session's yet.
    pub(super) fn conversation_under(
        &mut self,
        system: &str,
        session: &SessionId,
        from: TurnSeq,
        to: TurnSeq,
        ask: Option<&str>,
    ) -> Option<ForkPrompt> {
        // A reply may have made it longer than a prompt is.
        let limits = Limits { room: self.budget.n_ctx as usize, ..self.limits() };
        let encoder = &mut self.parts.encoder;
        let counts = &mut self.conversation.turn_to(&self.parts.store, session).counts;
        let tokens = &mut self.tokens;
        let read = self.parts.store.with_turns(session, from, |views| {
            let past = counts.shown(encoder, views, limits).ok()?;
            if past.len() != views.len() {
                return None;
            }
            let whole = views.partition_point(|view| view.seq <= to);
            let history: Vec<_> = past[..whole].iter().map(|past| past.turn()).collect();
            let first = history.first()?.seq;
            let last = history.last()?.seq;
            let mut messages = vec![Message::new(Role::User, ""); 2 * history.len() + 2];
            let mut ends = vec![0; messages.len()];
            let scratch = Scratch { messages: &mut messages, ends: &mut ends, tokens };
            let (length, shared) = match ask {
                None => {
                    let run = assemble::conversation(encoder, system, &history, scratch).ok()?;
                    (run.len(), run.len())
                }
                Some(ask) => {
                    let fork = assemble::fork(encoder, system, &history, ask, scratch).ok()?;
                    (fork.tokens.len(), fork.shared)
                }
            };
            Some(ForkPrompt { length, shared, from: first, to: last })
        });
        read.ok().flatten()
    }
}
