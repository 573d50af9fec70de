//! A turn, from the user's words to a durable reply.

use std::sync::Arc;

use garret_core::gate::Decision;
use garret_core::id::{SessionId, TurnSeq};
use garret_core::model::{ChatModel, Finish};
use garret_core::prompt::PromptEncoder;
use garret_core::receipt::Receipt;
use garret_core::scan::{Companion, Companions};
use garret_core::shorten::shorten;
use garret_storage::{NewReply, ReadError, StoredFinish, Ticket, WriteError};

use super::Agent;
use super::error::TurnError;
use super::prompt::{AcceptedTurn, SystemOrigin};
use super::reply::ReplyDraft;
use super::tool_loop::Talk;
use crate::cancel::Cancel;
use crate::companion::schedule::AnsweredTurn;
use crate::prompt::error::erased;
use crate::receipt::{RoundReport, StoredReceipt};
use crate::trace::record::ObservedPrompt;
use crate::trace::{Shape, System, Trace};

/// A turn that was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Number of the turn in the session.
    pub turn: TurnSeq,
    /// The text of the reply, as far as it was given.
    pub reply: String,
    /// The reason for which the reply ended.
    pub finish: Finish,
    /// The account of its prompt and its tokens.
    pub receipt: Receipt,
    /// Ids of the messages and facts from elsewhere that the prompt showed, in its order.
    pub memory: Vec<String>,
    /// The model's lookups on the way.
    pub rounds: Vec<RoundReport>,
    /// Companions that the model asked for.
    pub companions: Companions,
    /// The time it took.
    pub timing: Timing,
}

/// The time of a turn, from the message to what the user waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// Microseconds to the first token of the reply; `None` when none came.
    pub first_us: Option<u64>,
    /// Microseconds to the end of the reply.
    pub total_us: u64,
}

/// The model's view of a turn, as far as it is known before the reply.
struct SeenPrompt {
    /// Tells whether something was erased since the message was accepted.
    ticket: Ticket,
    origin: SystemOrigin,
    volatile: String,
    observed: ObservedPrompt,
}

impl<M: ChatModel, E: PromptEncoder> Agent<M, E> {
    /// Answers `text`. The reply leaves through `on_text` as it is generated, in whole characters;
    /// `cancel` ends it early, and what was said by then is kept.
    ///
    /// # Errors
    /// See [`TurnError`].
    pub async fn turn(
        &mut self,
        session: &SessionId,
        text: &str,
        cancel: &Cancel,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<Outcome, TurnError> {
        if text.trim().is_empty() {
            return Err(TurnError::Empty);
        }
        let begun = self.parts.clock.monotonic_us();
        let limit = self.budget.message_text() as usize;
        let message = shorten(&mut self.parts.encoder, text, limit);
        let message = message.map_err(|error| TurnError::NotShowable(erased(error)))?;
        let accepted = self.parts.store.accept(session, text, self.parts.clock.wall());
        let turn = accepted.map_err(TurnError::NotAccepted)?;
        let ticket = self.parts.store.ticket();
        let accepted = AcceptedTurn { session, turn, text, message: &message };
        let (prompt, origin) = self.prompt(accepted, cancel)?;
        let tokens = self.tokens.get(..prompt.length).unwrap_or(&self.tokens);
        let talk = Talk::new(session, turn, [text, &prompt.volatile], tokens);
        let native = self.tool_tokens.is_some();
        let mut draft = ReplyDraft::new(prompt.receipt, prompt.memory, native);
        let seen =
            SeenPrompt { ticket, origin, volatile: prompt.volatile, observed: prompt.observed };
        let is_volatile = !seen.volatile.is_empty();
        let run = self.converse(talk, &mut draft, cancel, on_text).await;
        let timing = Timing {
            first_us: draft.first_us.map(|first| first.saturating_sub(begun)),
            total_us: self.parts.clock.monotonic_us().saturating_sub(begun),
        };
        if run.is_ok() || draft.has_begun() {
            let decision = self.judge(accepted, &draft);
            let finish = match &run {
                Ok(finish) if !draft.wordless => stored(*finish),
                _ => StoredFinish::Failed,
            };
            self.keep(accepted, &draft, seen, timing, finish, &decision)?;
        }
        let conversation = self.conversation.turn_to(&self.parts.store, session);
        conversation.is_prefilled = !is_volatile && !draft.strayed() && conversation.is_of(ticket);
        let ReplyDraft { receipt, text: reply, memory, rounds, companions, .. } = draft;
        match run {
            Ok(finish) => {
                Ok(Outcome { turn, reply, finish, receipt, memory, rounds, companions, timing })
            }
            Err(error) => Err(TurnError::Model { turn, reason: Box::new(error) }),
        }
    }

    /// Decides which companions run after a turn that was just answered. A failure to decide is logged:
    /// then none runs.
    fn judge(&mut self, turn: AcceptedTurn<'_>, draft: &ReplyDraft) -> Decision {
        let used = draft.receipt.prompt_tokens.saturating_add(draft.receipt.reply_tokens);
        let answered = AnsweredTurn {
            session: turn.session,
            turn: turn.turn,
            text: turn.text,
            fill: used as f32 / self.budget.n_ctx as f32,
            asks_summaries: draft.asks(Companion::Compact),
            asks_inference: draft.asks(Companion::Infer),
        };
        let judged = self.try_judge(&answered, &draft.memory);
        judged.unwrap_or_else(|error| {
            tracing::warn!(%error, "no companion runs after this turn");
            Decision::default()
        })
    }

    fn try_judge(
        &mut self,
        answered: &AnsweredTurn<'_>,
        recalled: &[String],
    ) -> Result<Decision, ReadError> {
        let mode = self.options.companions;
        let embedder = self.parts.embedder.as_deref();
        let signals = answered.signals(&self.parts.store, embedder, mode)?;
        let schedule = self.schedule(answered.session, answered.turn)?;
        Ok(schedule.decide(mode, &signals, recalled))
    }

    /// Makes the trace of a turn that was answered.
    fn trace(
        &mut self,
        seen: ObservedPrompt,
        origin: &SystemOrigin,
        volatile: String,
        draft: &ReplyDraft,
        timing: Timing,
    ) -> Trace {
        let wrote = Some(self.written(draft)).filter(|wrote| wrote != draft.said());
        let shape = Shape {
            rounds: draft.around.clone(),
            wrote,
            given_up: draft.given_up.clone(),
            first_us: timing.first_us,
            total_us: timing.total_us,
            ..seen.shape(&mut self.parts.encoder)
        };
        Trace {
            system: origin.text.clone().map_or(System::AsIn(origin.system_in), System::Text),
            history_from: draft.receipt.history_from,
            volatile,
            rounds: draft.exchanges.clone(),
            shape: Some(shape),
        }
    }

    /// Makes a reply durable.
    fn keep(
        &mut self,
        turn: AcceptedTurn<'_>,
        draft: &ReplyDraft,
        seen: SeenPrompt,
        timing: Timing,
        finish: StoredFinish,
        decision: &Decision,
    ) -> Result<(), TurnError> {
        let AcceptedTurn { session, turn, .. } = turn;
        let SeenPrompt { ticket, origin, volatile, observed } = seen;
        let whole = self.trace(observed, &origin, volatile, draft, timing);
        let receipt = StoredReceipt {
            made_at: origin.made_at,
            system_in: origin.system_in,
            companions: decision.into(),
            ..StoredReceipt::new(&draft.receipt, &draft.memory)
        };
        let conversation = self.conversation.turn_to(&self.parts.store, session);
        let mut trace = whole.clone();
        if let System::AsIn(at) = trace.system {
            trace.relative_to(conversation.trace_pieces(at).unwrap_or_default());
        }
        let bytes = receipt.clone().with_rounds(&draft.rounds, draft.companions).to_bytes();
        // A sentence that says that there is no answer must not be taken for one later.
        let reply = NewReply {
            text: if draft.wordless { "" } else { &draft.text },
            tokens: draft.tokens(),
            model_fingerprint: &self.parts.model.facts().fingerprint,
            finish,
            at: self.parts.clock.wall(),
            receipt: &bytes,
            trace: &trace.to_bytes(),
        };
        let store = Arc::clone(&self.parts.store);
        let kept = match store.since(ticket).reply(session, turn, reply) {
            // What the model saw, and what it asked tools for, may quote what was erased meanwhile.
            Err(WriteError::Outdated) => {
                let receipt = receipt.with_rounds(&[], draft.companions).to_bytes();
                store.reply(session, turn, NewReply { receipt: &receipt, trace: &[], ..reply })
            }
            Ok(()) => {
                if conversation.is_of(ticket) {
                    conversation.set_trace_base(turn, &whole);
                }
                Ok(())
            }
            Err(error) => Err(error),
        };
        kept.map_err(|reason| TurnError::ReplyNotStored { turn, reason })
    }
}

const fn stored(finish: Finish) -> StoredFinish {
    match finish {
        Finish::Stop => StoredFinish::Stop,
        Finish::Length => StoredFinish::Length,
        _ => StoredFinish::Cancelled,
    }
}
