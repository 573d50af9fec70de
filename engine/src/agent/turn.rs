//! One turn, from the user's words to a durable reply.

use garret_core::gate::Decision;
use garret_core::id::{SessionId, TurnSeq};
use garret_core::model::{ChatModel, Event, Finish, ModelRole, Reply, Request, Sampling};
use garret_core::prompt::PromptEncoder;
use garret_core::receipt::Receipt;
use garret_core::shorten::shorten;
use garret_core::token::Token;
use garret_core::utf8::Utf8Stream;
use garret_storage::{NewReply, ReadError, StoredFinish, WriteError};
use smol::channel::Receiver;
use smol::future::{or, poll_fn};

use super::Agent;
use super::mind::Told;
use super::prompt::{Beginning, Prompt};
use crate::receipt::StoredReceipt;
use crate::trace::Trace;

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
        let prompt = self.prompt(session, turn, text, &message)?;
        let (length, volatile) = (prompt.length, prompt.is_volatile());
        let seen = Seen { trace: prompt.trace(), beginning: prompt.beginning.clone() };
        let mut draft = Draft::new(prompt);
        let run = self.generate(length, &mut draft, stop, on_text).await;
        let finish = match &run {
            Ok(finish) => stored(*finish),
            Err(_) => StoredFinish::Failed,
        };
        if run.is_ok() || !draft.tokens.is_empty() {
            let used = draft.receipt.prompt_tokens.saturating_add(draft.receipt.reply_tokens);
            let fill = used as f32 / self.budget.n_ctx as f32;
            let told = Told { fill, ..Told::default() };
            let decision = self.judge(session, turn, text, told, &draft.memory);
            self.keep(session, turn, &draft, &seen, finish, &decision)?;
        }
        self.settled = (!volatile).then(|| session.clone());
        let Draft { receipt, text: reply, memory, .. } = draft;
        match run {
            Ok(finish) => Ok(Outcome { turn, reply, finish, receipt, memory }),
            Err(source) => Err(TurnError::Model { turn, source: Box::new(source) }),
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
        seen: &Seen,
        finish: StoredFinish,
        decision: &Decision,
    ) -> Result<(), TurnError> {
        let receipt = StoredReceipt {
            made_at: seen.beginning.made_at,
            system_in: seen.beginning.system_in,
            companions: decision.into(),
            ..StoredReceipt::new(&draft.receipt, &draft.memory)
        };
        let receipt = receipt.to_bytes().unwrap_or_default();
        let trace = seen.trace.to_bytes().unwrap_or_default();
        let reply = NewReply {
            text: &draft.text,
            tokens: if draft.structural { &[] } else { &draft.tokens },
            model_fingerprint: &self.parts.model.facts().fingerprint,
            finish,
            at: self.parts.clock.wall(),
            receipt: &receipt,
            trace: &trace,
        };
        let kept = self.parts.store.reply(session, turn, reply);
        kept.map_err(|source| TurnError::ReplyNotStored { turn, source })
    }
}

/// What the model was shown, as it is kept.
struct Seen {
    trace: Trace,
    beginning: Beginning,
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
    fn new(Prompt { receipt, memory, .. }: Prompt) -> Self {
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
