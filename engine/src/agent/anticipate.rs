//! Working out what the user is after, while nobody waits, for the next turn.

use std::sync::Arc;

use garret_core::id::{SessionId, TurnSeq};
use garret_core::model::{ChatModel, ModelRole};
use garret_core::prompt::PromptEncoder;
use garret_storage::{ErasureEpoch, FactSource, NewFact, Origin, ReadError, StateKind};

use super::remember::is_outdated;
use super::{Agent, CALL_US};
use crate::anticipate::pending::{InferenceState, PendingInference};
use crate::anticipate::reading::{Inference, Reading, instruction, most_tokens};
use crate::companion::form::{Form as _, Size};
use crate::companion::{Answer, Question};
use crate::remember::cues::topic_changed;
use crate::remember::extract::KeepError;
use crate::state;

impl<M: ChatModel, E: PromptEncoder> Agent<M, E> {
    /// Works out what the user is after, if the gate said so, for the next turn; returns whether it did.
    pub(super) async fn infer(&mut self, session: &SessionId) -> bool {
        match self.try_infer(session).await {
            Ok(done) => done,
            Err(error) => {
                if !is_outdated(&error) {
                    self.inferrer_did(false);
                }
                tracing::warn!(%error, "nothing is inferred for the next turn");
                false
            }
        }
    }

    async fn try_infer(&mut self, session: &SessionId) -> Result<bool, KeepError> {
        let epoch = self.parts.store.erasure_epoch();
        self.confirm(session, epoch)?;
        let Some((turn, said)) = self.recent(session)? else { return Ok(false) };
        let may_ask = self.backoffs.inferrer.allows(self.now_ms());
        if !may_ask || !std::mem::take(&mut self.schedule(session, turn)?.due.infer) {
            return Ok(false);
        }
        let size = self.companion_size();
        let grammar = Reading::grammar(size);
        let question = Question {
            role: ModelRole::Inferrer,
            instruction: instruction(size),
            grammar: Some(&grammar),
            max_tokens: most_tokens(size),
        };
        let answer = match self.ask_inferrer(session, turn, &question).await {
            Ok(Some(answer)) => answer,
            Ok(None) => return Ok(false),
            Err(why) => {
                tracing::warn!(why, "the next turn does without an inference");
                return Ok(false);
            }
        };
        let said: Vec<&str> = said.iter().map(String::as_str).collect();
        let inference = match Inference::read(&answer.text, size, &said) {
            Ok(inference) => inference,
            Err(error) => {
                tracing::debug!(%error, "the inferrer's answer can't be read");
                self.inferrer_did(false);
                return Ok(false);
            }
        };
        self.inferrer_did(true);
        self.leave(session, turn, &inference, epoch)?;
        Ok(true)
    }

    /// Keeps an inference for the next turn and tells the gate of it.
    fn leave(
        &mut self,
        session: &SessionId,
        turn: TurnSeq,
        inference: &Inference,
        epoch: ErasureEpoch,
    ) -> Result<(), KeepError> {
        let store = Arc::clone(&self.parts.store);
        let mut kept = self.inferences(session)?;
        kept.waiting = PendingInference::new(turn, inference);
        self.set_inferences(session, &kept, epoch)?;
        let percent = inference.likeliest().map_or(0, |guess| guess.percent);
        let schedule = self.schedule(session, turn)?;
        schedule.gate_mut().inferred(f32::from(percent) / 100.0);
        Ok(schedule.save(&store, session)?)
    }

    /// Stores what the newest message confirms of what was inferred, as an inference.
    fn confirm(&mut self, session: &SessionId, epoch: ErasureEpoch) -> Result<(), KeepError> {
        let mut kept = self.inferences(session)?;
        let Some(consumed) = kept.consumed.clone() else { return Ok(()) };
        let Some((turn, said)) = self.recent(session)? else { return Ok(()) };
        let message = said.last().map(String::as_str).unwrap_or_default();
        let note = kept.confirmed(turn, message);
        if let Some(note) = &note {
            let fact = NewFact {
                text: note,
                source: FactSource::Assistant,
                origin: Some(Origin { session, turn }),
                inferred: true,
                confidence: Some(CONFIRMED),
                ..NewFact::default()
            };
            let at = self.parts.clock.wall();
            self.parts.store.since(epoch).add_fact(&fact, at)?;
        }
        if note.is_some() || turn > consumed.by {
            kept.consumed = None;
            self.set_inferences(session, &kept, epoch)?;
        }
        Ok(())
    }

    /// Hands out what was inferred for turn `turn`, whose message is `text`, once: the next call has
    /// nothing. `None` where it has nothing to do with the message.
    pub(super) fn take_inference(
        &self,
        session: &SessionId,
        turn: TurnSeq,
        text: &str,
    ) -> Option<PendingInference> {
        let epoch = self.parts.store.erasure_epoch();
        let mut kept = self.inferences(session).ok()?;
        kept.waiting.as_ref()?;
        let similar = |inference: &str, message: &str| {
            let embedder = self.parts.embedder.as_deref();
            embedder.and_then(|embedder| topic_changed(embedder, inference, message)) == Some(false)
        };
        let inference = kept.consume(turn, text, similar);
        // Shown without being consumed, it might be shown again.
        let consumed = self.set_inferences(session, &kept, epoch);
        let consumed =
            consumed.inspect_err(|error| tracing::warn!(%error, "an inference isn't shown"));
        consumed.ok()?;
        inference
    }

    fn inferences(&self, session: &SessionId) -> Result<InferenceState, ReadError> {
        let bytes = state::read(&self.parts.store, session, StateKind::Carry)?;
        Ok(bytes.map(|bytes| InferenceState::from_bytes(&bytes)).unwrap_or_default())
    }

    fn set_inferences(
        &self,
        session: &SessionId,
        kept: &InferenceState,
        epoch: ErasureEpoch,
    ) -> Result<(), KeepError> {
        let store = self.parts.store.since(epoch);
        Ok(store.set_state(session, StateKind::Carry, &kept.to_bytes())?)
    }

    /// Reads the number of the newest turn and what the user said in the last few, the newest last.
    /// `None` when nothing was said.
    fn recent(&self, session: &SessionId) -> Result<Option<(TurnSeq, Vec<String>)>, ReadError> {
        let newest = self.parts.store.session(session)?.map_or(0, |info| info.turns);
        let from = newest.saturating_sub(RECENT_TURNS).max(1);
        self.parts.store.with_turns(session, from, |views| {
            let said = views.iter().filter(|view| view.speaker.is_none());
            let said: Vec<_> = said.map(|view| view.user.to_owned()).collect();
            views.last().map(|last| (last.seq, said))
        })
    }

    /// Asks the inferrer, unless it failed not long ago. `None` when there is nothing to ask it about,
    /// or no room for that; the error says in words why it didn't answer.
    pub(super) async fn ask_inferrer(
        &mut self,
        session: &SessionId,
        turn: TurnSeq,
        question: &Question<'_>,
    ) -> Result<Option<Answer>, String> {
        let begun = self.parts.clock.monotonic_us();
        if !self.backoffs.inferrer.allows(self.now_ms()) {
            return Err("the inferrer failed not long ago and is left alone for a while".to_owned());
        }
        let answer = self.ask_about(session, Some(turn), question).await;
        let took = self.parts.clock.monotonic_us().saturating_sub(begun);
        let why = match answer {
            Ok(None) if took >= CALL_US => "the inferrer took too long".to_owned(),
            Ok(answer) => return Ok(answer),
            Err(error) => format!("the inferrer failed: {error}"),
        };
        self.inferrer_did(false);
        Err(why)
    }

    /// Takes note of whether the inferrer did what it was asked.
    pub(super) fn inferrer_did(&mut self, well: bool) {
        let now = self.now_ms();
        match well {
            true => self.backoffs.inferrer.succeeded(),
            false => self.backoffs.inferrer.failed(now),
        }
    }

    /// Returns how much companions are asked.
    fn companion_size(&self) -> Size {
        let suited = Size::suited(self.model_of(ModelRole::Inferrer).facts());
        self.options.companion_size.unwrap_or(suited)
    }
}

/// Turns before the newest whose words a guess may quote.
const RECENT_TURNS: u64 = 8;
/// Confidence of what was inferred and confirmed.
const CONFIRMED: f32 = 0.7;
