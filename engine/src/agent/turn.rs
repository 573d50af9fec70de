//! One turn, from the user's words to a durable reply.

use std::sync::Arc;

use garret_core::gate::Decision;
use garret_core::id::{SessionId, TurnSeq};
use garret_core::model::{ChatModel, Event, Finish, ModelRole, Reply, Request, Sampling};
use garret_core::prompt::PromptEncoder;
use garret_core::receipt::Receipt;
use garret_core::scan::{Companion, Companions};
use garret_core::shorten::shorten;
use garret_core::token::Token;
use garret_storage::{NewReply, StoredFinish, Ticket, WriteError};
use smol::future::{or, poll_fn};

use super::Agent;
use super::draft::Draft;
use super::error::{TurnError, erased};
use super::mind::Told;
use super::prompt::{Base, Beginning};
use super::rounds::Talk;
use crate::cancel::Cancel;
use crate::receipt::{RoundReport, StoredReceipt};
use crate::trace::{Shape, System, Trace};

/// A turn that was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Its number in the session.
    pub turn: TurnSeq,
    /// The reply, or what there is of it.
    pub reply: String,
    /// Why the reply ended.
    pub finish: Finish,
    /// What it cost.
    pub receipt: Receipt,
    /// Ids of the messages from elsewhere that the prompt showed, in its order.
    pub memory: Vec<String>,
    /// What the model looked up on the way.
    pub rounds: Vec<RoundReport>,
    /// Companions that the model asked for.
    pub companions: Companions,
    /// How long it took.
    pub timing: Timing,
}

/// How long a turn took, from the message to what the user waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// To the first token of the reply, in microseconds; `None` when none came.
    pub first_us: Option<u64>,
    /// To the end of the reply, in microseconds.
    pub total_us: u64,
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
        let prompt = self.prompt(session, turn, text, &message, &|| !cancel.is_cancelled())?;
        let volatile = prompt.is_volatile();
        let seen = Seen { ticket, trace: prompt.trace(), beginning: prompt.beginning.clone() };
        let tokens = self.tokens.get(..prompt.length).unwrap_or(&self.tokens);
        let talk = Talk::new(session, turn, [text, &prompt.volatile], tokens);
        let mut draft = Draft::new(prompt.receipt, prompt.memory, self.native.is_some());
        let run = self.converse(talk, &mut draft, cancel, on_text).await;
        let finish = match &run {
            Ok(finish) if !draft.wordless => stored(*finish),
            _ => StoredFinish::Failed,
        };
        let timing = Timing {
            first_us: draft.first_us.map(|first| first.saturating_sub(begun)),
            total_us: self.parts.clock.monotonic_us().saturating_sub(begun),
        };
        if run.is_ok() || draft.has_begun() {
            let used = draft.receipt.prompt_tokens.saturating_add(draft.receipt.reply_tokens);
            let fill = used as f32 / self.budget.n_ctx as f32;
            let (compact, infer) = (draft.asks(Companion::Compact), draft.asks(Companion::Infer));
            let told = Told { fill, compact, infer };
            let decision = self.judge(session, turn, text, told, &draft.memory);
            let seen = Seen { trace: self.traced(seen.trace, &draft, timing), ..seen };
            self.keep(session, turn, &draft, seen, finish, &decision)?;
        }
        self.settled = (!volatile && !draft.strayed()).then(|| session.clone());
        let Draft { receipt, text: reply, memory, rounds, companions, .. } = draft;
        match run {
            Ok(finish) => {
                Ok(Outcome { turn, reply, finish, receipt, memory, rounds, companions, timing })
            }
            Err(error) => Err(TurnError::Model { turn, reason: Box::new(error) }),
        }
    }

    /// Runs the model on `prompt` until its reply, by `grammar` if there is one, ends or asks for a
    /// tool.
    pub(super) async fn generate(
        &self,
        prompt: &[Token],
        max_tokens: u32,
        grammar: Option<&str>,
        draft: &mut Draft,
        cancel: &Cancel,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<Finish, M::Error> {
        let request = Request {
            role: ModelRole::Main,
            prompt,
            max_tokens,
            sampling: self.sampling(),
            grammar,
        };
        let mut reply = self.parts.model.start(request)?;
        let mut cancelled_already = false;
        loop {
            let cancelled = async {
                cancel.cancelled().await;
                Next::Cancel
            };
            let event = async { Next::Event(poll_fn(|cx| reply.poll_event(cx)).await) };
            let next = if cancelled_already { event.await } else { or(cancelled, event).await };
            match next {
                Next::Cancel => {
                    reply.cancel();
                    cancelled_already = true;
                }
                Next::Event(Some(Ok(Event::Prefilled { reused, prefilled }))) => {
                    draft.prefilled(reused, prefilled);
                }
                Next::Event(Some(Ok(Event::Piece { token, bytes }))) => {
                    let now = || self.parts.clock.monotonic_us();
                    draft.first_us = draft.first_us.or_else(|| Some(now()));
                    if draft.push(token, bytes.as_ref(), on_text) {
                        return Ok(Finish::Stop);
                    }
                }
                Next::Event(end) => {
                    draft.finish(on_text);
                    return match end {
                        Some(Ok(Event::Finished(finish))) => Ok(finish),
                        Some(Err(error)) => Err(error),
                        _ => Ok(Finish::Cancelled),
                    };
                }
            }
        }
    }

    fn sampling(&self) -> Sampling {
        let mut seed = [0; 4];
        if self.options.draw_seed && self.parts.entropy.fill(&mut seed).is_ok() {
            return Sampling { seed: u32::from_le_bytes(seed), ..self.options.sampling };
        }
        self.options.sampling
    }

    /// A trace with what happened after its prompt.
    fn traced(&self, trace: Trace, draft: &Draft, timing: Timing) -> Trace {
        let wrote = Some(self.written(draft)).filter(|wrote| wrote != draft.said());
        let shape = trace.shape.map(|shape| Shape {
            rounds: draft.around.clone(),
            wrote,
            given_up: draft.given_up.clone(),
            first_us: timing.first_us,
            total_us: timing.total_us,
            ..shape
        });
        Trace { rounds: draft.exchanges.clone(), shape, ..trace }
    }

    /// Makes a reply durable.
    fn keep(
        &mut self,
        session: &SessionId,
        turn: TurnSeq,
        draft: &Draft,
        seen: Seen,
        finish: StoredFinish,
        decision: &Decision,
    ) -> Result<(), TurnError> {
        let receipt = StoredReceipt {
            made_at: seen.beginning.made_at,
            system_in: seen.beginning.system_in,
            companions: decision.into(),
            ..StoredReceipt::new(&draft.receipt, &draft.memory)
        };
        let whole = receipt.clone().with_rounds(&draft.rounds, draft.companions);
        let whole = whole.to_bytes().unwrap_or_default();
        let base = Base::of(session, seen.ticket, turn, &seen.trace);
        let mut trace = seen.trace;
        if let System::AsIn(at) = trace.system {
            let known = self.base.as_ref().filter(|base| base.is_of(session, seen.ticket, at));
            trace.relative_to(known.map_or(&[], |base| &base.pieces));
        }
        let trace = trace.to_bytes().unwrap_or_default();
        // What says that there is no answer must not be taken for one later.
        let reply = NewReply {
            text: if draft.wordless { "" } else { &draft.text },
            tokens: draft.tokens(),
            model_fingerprint: &self.parts.model.facts().fingerprint,
            finish,
            at: self.parts.clock.wall(),
            receipt: &whole,
            trace: &trace,
        };
        let store = Arc::clone(&self.parts.store);
        let kept = match store.since(seen.ticket).reply(session, turn, reply) {
            // What the model saw, and what it asked tools for, may quote what was forgotten meanwhile.
            Err(WriteError::Outdated) => {
                let receipt = receipt.with_rounds(&[], draft.companions);
                let receipt = receipt.to_bytes().unwrap_or_default();
                store.reply(session, turn, NewReply { receipt: &receipt, trace: &[], ..reply })
            }
            Ok(()) => {
                self.base = base.or_else(|| self.base.take());
                Ok(())
            }
            Err(error) => Err(error),
        };
        kept.map_err(|reason| TurnError::ReplyNotStored { turn, reason })
    }
}

/// What the model was shown, as it is kept.
struct Seen {
    ticket: Ticket,
    trace: Trace,
    beginning: Beginning,
}

enum Next<T> {
    Cancel,
    Event(T),
}

const fn stored(finish: Finish) -> StoredFinish {
    match finish {
        Finish::Stop => StoredFinish::Stop,
        Finish::Length => StoredFinish::Length,
        _ => StoredFinish::Cancelled,
    }
}
