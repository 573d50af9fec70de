//! One turn, from the user's words to a durable reply.

use garret_core::assemble::{self, Input, Memory, Scratch};
use garret_core::budget::Budget;
use garret_core::id::{SessionId, TurnSeq};
use garret_core::model::{ChatModel, Event, Finish, ModelRole, Reply, Request, Sampling};
use garret_core::prompt::{Message, PromptEncoder, Role};
use garret_core::receipt::{Omission, Omitted, Receipt};
use garret_core::shorten::{Shown, shorten};
use garret_core::time::Confidence;
use garret_core::token::Token;
use garret_core::utf8::Utf8Stream;
use garret_storage::{NewReply, ReadError, StoredFinish, WriteError};
use smol::channel::Receiver;
use smol::future::{or, poll_fn};

use super::Agent;
use super::history::Limits;
use super::recall::{Asking, Recall};
use crate::receipt::StoredReceipt;

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
}

/// Why a turn wasn't answered. Whatever was accepted is stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TurnError {
    /// Nothing but white space.
    #[error("the message is empty: say something")]
    Empty,
    /// The model can't be shown the message, so it isn't accepted.
    #[error("the message was not accepted: {0}")]
    NotShowable(String),
    /// The message couldn't be made durable, so the model never saw it.
    #[error("the message was not accepted: {0}")]
    NotAccepted(#[source] WriteError),
    /// The history can't be read.
    #[error("turn {turn} is stored but its history can't be read: {source}")]
    History {
        /// The turn.
        turn: TurnSeq,
        /// The store's words.
        source: ReadError,
    },
    /// No prompt could be assembled.
    #[error("turn {turn} is stored but can't be put into a prompt: {reason}")]
    Prompt {
        /// The turn.
        turn: TurnSeq,
        /// What is in the way.
        reason: String,
    },
    /// The model failed; what it had said is stored.
    #[error("turn {turn} is stored but the model failed: {source}")]
    Model {
        /// The turn.
        turn: TurnSeq,
        /// The model's words.
        source: Box<dyn std::error::Error>,
    },
    /// The reply was given but couldn't be made durable.
    #[error("turn {turn}: the reply was given but could not be stored: {source}")]
    ReplyNotStored {
        /// The turn.
        turn: TurnSeq,
        /// The store's words.
        source: WriteError,
    },
}

impl<M: ChatModel, E: PromptEncoder> Agent<M, E>
where
    E::Error: 'static,
{
    /// Answers `text`. The reply leaves through `on_text` as it is generated, in whole characters;
    /// every message on `stop` asks the model to end it.
    ///
    /// # Errors
    /// See [`TurnError`].
    pub async fn turn(
        &mut self,
        session: &SessionId,
        text: &str,
        stop: &Receiver<()>,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<Outcome, TurnError> {
        if text.trim().is_empty() {
            return Err(TurnError::Empty);
        }
        let limit = self.budget.message_text() as usize;
        let message = shorten(&mut self.parts.encoder, text, limit);
        let message = message.map_err(|error| TurnError::NotShowable(error.to_string()))?;
        let accepted = self.parts.store.accept(session, text, self.parts.clock.wall());
        let turn = accepted.map_err(TurnError::NotAccepted)?;
        let Prompt { receipt, length, memory } = self.prompt(session, turn, text, &message)?;
        let mut draft = Draft::new(receipt, memory);
        let run = self.generate(length, &mut draft, stop, on_text).await;
        let finish = match &run {
            Ok(finish) => stored(*finish),
            Err(_) => StoredFinish::Failed,
        };
        if run.is_ok() || !draft.tokens.is_empty() {
            self.keep(session, turn, &draft, finish)?;
        }
        if !draft.memory.is_empty() {
            self.unsettled = Some(session.clone());
        }
        let Draft { receipt, text: reply, memory, .. } = draft;
        match run {
            Ok(finish) => Ok(Outcome { turn, reply, finish, receipt, memory }),
            Err(source) => Err(TurnError::Model { turn, source: Box::new(source) }),
        }
    }

    /// Assembles the prompt of an accepted turn into `self.tokens`.
    fn prompt(
        &mut self,
        session: &SessionId,
        turn: TurnSeq,
        text: &str,
        message: &Shown<'_>,
    ) -> Result<Prompt, TurnError> {
        let unreadable = |source| TurnError::History { turn, source };
        let keep_from = self.last_receipt(session).map_err(unreadable)?.and_then(|last| {
            let same = last.receipt.report.n_ctx == self.budget.n_ctx
                && last.receipt.report.reply_reserve == self.budget.reply_reserve;
            last.receipt.history_from.filter(|_| same)
        });
        let system = self.system(session).map_err(unreadable)?;
        self.counts.turn_to(session);
        let limits = self.limits();
        // No turn costs less than its scaffolding, so no more than this many can fit.
        let most = u64::from(self.budget.n_ctx) / FEWEST_TOKENS_A_TURN;
        let from = keep_from.unwrap_or(1).max(turn.saturating_sub(most)).max(1);
        let now = self.parts.clock.wall();
        let now = (now.confidence != Confidence::Wrong).then_some(now.unix_ms);
        let (encoder, counts, store) =
            (&mut self.parts.encoder, &mut self.counts, &self.parts.store);
        let embedder = self.parts.embedder.as_deref();
        let (budget, tokens, system) = (&self.budget, &mut self.tokens, &*system);
        let read = store.with_turns(session, from, |views| {
            let earlier = views.partition_point(|view| view.seq < turn);
            let past = counts.shown(encoder, &views[..earlier], limits).map_err(describe)?;
            let history: Vec<_> = past.iter().map(|past| past.turn()).collect();
            let oldest = history.first().map_or(turn, |turn| turn.seq);
            let older = oldest.saturating_sub(1);
            let memory = Memory::default();
            let input = Input { system, history: &history, older, keep_from, memory, message };
            let asking = Asking { session, turn, text, now };
            let mut recall = Recall::new(store, embedder, budget, asking);
            remember(budget, encoder, tokens, &input, &mut recall)
        });
        read.map_err(unreadable)?.map_err(|reason| TurnError::Prompt { turn, reason })
    }

    /// What bounds a history.
    pub(super) fn limits(&self) -> Limits {
        Limits {
            message: self.budget.message_text() as usize,
            room: self.budget.prompt_limit() as usize,
            fingerprint: self.parts.model.facts().fingerprint,
        }
    }

    /// Runs the model on the first `length` of `self.tokens`.
    async fn generate(
        &self,
        length: usize,
        draft: &mut Draft,
        stop: &Receiver<()>,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<Finish, M::Error> {
        let request = Request {
            role: ModelRole::Main,
            prompt: self.tokens.get(..length).unwrap_or(&self.tokens),
            max_tokens: self.budget.reply_reserve,
            sampling: self.sampling(),
            grammar: None,
        };
        let mut reply = self.parts.model.start(request)?;
        let mut stoppable = true;
        loop {
            let stopped = async {
                match stop.recv().await {
                    Ok(()) => Next::Stop,
                    Err(_) => Next::Unstoppable,
                }
            };
            let event = async { Next::Event(poll_fn(|cx| reply.poll_event(cx)).await) };
            let next = if stoppable { or(stopped, event).await } else { event.await };
            match next {
                Next::Stop => reply.cancel(),
                Next::Unstoppable => stoppable = false,
                Next::Event(None) => return Ok(Finish::Cancelled),
                Next::Event(Some(Err(error))) => return Err(error),
                Next::Event(Some(Ok(Event::Prefilled { reused, prefilled }))) => {
                    draft.receipt.reused_tokens = reused;
                    draft.receipt.prefilled_tokens = prefilled;
                }
                Next::Event(Some(Ok(Event::Piece { token, bytes }))) => {
                    draft.push(token, bytes.as_ref(), on_text);
                }
                Next::Event(Some(Ok(Event::Finished(finish)))) => return Ok(finish),
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

    /// Makes a reply durable.
    fn keep(
        &self,
        session: &SessionId,
        turn: TurnSeq,
        draft: &Draft,
        finish: StoredFinish,
    ) -> Result<(), TurnError> {
        let receipt = StoredReceipt::new(&draft.receipt, &draft.memory);
        let receipt = receipt.to_bytes().unwrap_or_default();
        let reply = NewReply {
            text: &draft.text,
            tokens: if draft.structural { &[] } else { &draft.tokens },
            model_fingerprint: &self.parts.model.facts().fingerprint,
            finish,
            at: self.parts.clock.wall(),
            receipt: &receipt,
            trace: &[],
        };
        let kept = self.parts.store.reply(session, turn, reply);
        kept.map_err(|source| TurnError::ReplyNotStored { turn, source })
    }
}

/// A prompt in a buffer of tokens.
struct Prompt {
    receipt: Receipt,
    /// Its tokens.
    length: usize,
    /// Ids of the messages in its block of memory.
    memory: Vec<String>,
}

/// Assembles `input` with what is remembered beside it.
fn remember<E: PromptEncoder>(
    budget: &Budget,
    encoder: &mut E,
    tokens: &mut [Token],
    input: &Input<'_>,
    recall: &mut Recall<'_>,
) -> Result<Prompt, String>
where
    E::Error: 'static,
{
    let mut prompt = assembled(budget, encoder, tokens, input)?;
    // Beside memory history may have to give way; what it no longer shows may then be remembered.
    for _ in 0..2 {
        let from = prompt.receipt.history_from;
        let block = recall.block(encoder, from).map_err(describe)?;
        if block.ids.is_empty() {
            if block.left_out > 0 {
                let found = Omission { what: Omitted::Found, count: block.left_out };
                // The fourth kind, room for four.
                let _ = prompt.receipt.omitted.push(found);
            }
            break;
        }
        let memory = Memory { text: &block.text, left_out: block.left_out };
        let with = Input { memory, keep_from: from.or(input.keep_from), ..*input };
        match assembled(budget, encoder, tokens, &with) {
            Ok(with) => prompt = Prompt { memory: block.ids, ..with },
            Err(reason) => {
                tracing::warn!(reason, "nothing is remembered: the block doesn't fit");
                return assembled(budget, encoder, tokens, input);
            }
        }
        if prompt.receipt.history_from == from {
            break;
        }
    }
    Ok(prompt)
}

fn assembled<E: PromptEncoder>(
    budget: &Budget,
    encoder: &mut E,
    tokens: &mut [Token],
    input: &Input<'_>,
) -> Result<Prompt, String> {
    let mut messages = vec![Message::new(Role::User, ""); 2 * input.history.len() + 2];
    let mut ends = vec![0; messages.len()];
    let scratch = Scratch { messages: &mut messages, ends: &mut ends, tokens };
    let slot = assemble::assemble(budget, encoder, input, scratch).map_err(describe)?;
    Ok(Prompt { length: slot.tokens.len(), receipt: slot.receipt, memory: Vec::new() })
}

enum Next<T> {
    Stop,
    Unstoppable,
    Event(T),
}

/// A reply as it grows. A character that its end cuts in two is left out of the text; the ids of
/// its first half are kept.
struct Draft {
    receipt: Receipt,
    memory: Vec<String>,
    text: String,
    tokens: Vec<Token>,
    /// Whether a control token was generated. Such a reply is kept as text alone: put back by its
    /// ids, it would be structure in every later prompt.
    structural: bool,
    utf8: Utf8Stream,
}

impl Draft {
    fn new(receipt: Receipt, memory: Vec<String>) -> Self {
        let (text, tokens, utf8) = (String::new(), Vec::new(), Utf8Stream::new());
        Self { receipt, memory, text, tokens, structural: false, utf8 }
    }

    fn push(&mut self, token: Token, bytes: &[u8], on_text: &mut dyn FnMut(&str)) {
        self.tokens.push(token);
        self.structural |= bytes.is_empty();
        self.receipt.reply_tokens += 1;
        let text = &mut self.text;
        self.utf8.push(bytes, &mut |piece: &str| {
            text.push_str(piece);
            on_text(piece);
        });
    }
}

const fn stored(finish: Finish) -> StoredFinish {
    match finish {
        Finish::Stop => StoredFinish::Stop,
        Finish::Length => StoredFinish::Length,
        _ => StoredFinish::Cancelled,
    }
}

fn describe(error: impl std::error::Error) -> String {
    error.to_string()
}

/// A template opens and closes two messages a turn with at least two tokens each.
const FEWEST_TOKENS_A_TURN: u64 = 4;
