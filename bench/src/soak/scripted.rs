//! A model that answers by rule, in the tokens of a real one, and remembers no prompt but the last.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use garret_core::model::{ChatModel, Event, Finish, ModelFacts, ModelRole, Reply, Request};
use garret_core::token::Token;
use garret_llm::Model;

use crate::answers;

/// A model that answers by rule; see the module. Clones share what was asked and what is to be
/// said.
#[derive(Clone)]
pub(crate) struct ScriptedModel {
    vocab: Arc<Model>,
    n_ctx: u32,
    shared: Arc<Mutex<Shared>>,
}

/// The requests to a scripted model so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestCounts {
    /// Requests whose prompt and longest answer exceed the window.
    pub(crate) overflows: u32,
    /// Requests for a summary.
    pub(crate) summaries: u32,
    /// Requests for what the user is after, or for the value of a fact.
    pub(crate) inferences: u32,
    /// New beginnings of the prompt.
    pub(crate) rebases: u32,
}

#[derive(Default)]
struct Shared {
    script: VecDeque<Vec<Token>>,
    last: Vec<Token>,
    asked: RequestCounts,
}

impl ScriptedModel {
    pub(crate) fn new(vocab: Arc<Model>, n_ctx: u32) -> Self {
        Self { vocab, n_ctx, shared: Arc::default() }
    }

    /// Puts these down as the next replies to the user.
    pub(crate) fn say(&self, texts: &[&str]) {
        let tokens: Vec<_> = texts.iter().map(|text| answers::tokens(&self.vocab, text)).collect();
        self.shared().script.extend(tokens);
    }

    pub(crate) fn asked(&self) -> RequestCounts {
        self.shared().asked
    }

    /// The text of the last prompt that was answered to the user.
    pub(crate) fn last_prompt(&self) -> String {
        answers::text(&self.vocab, &self.shared().last)
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChatModel for ScriptedModel {
    type Reply = ReadyReply;
    type Error = Overflow;

    fn facts(&self) -> ModelFacts {
        ModelFacts { n_ctx: self.n_ctx, fingerprint: [7; 32], parameters: None }
    }

    fn start(&self, request: Request<'_>) -> Result<ReadyReply, Overflow> {
        let tokens = match request.role {
            ModelRole::Main | ModelRole::Rebase => Vec::new(),
            _ => answers::tokens(&self.vocab, &answers::of_companion(&self.vocab, &request)),
        };
        let mut shared = self.shared();
        let most = request.prompt.len() + request.max_tokens as usize;
        if most > self.n_ctx as usize {
            shared.asked.overflows += 1;
            return Err(Overflow { tokens: most, n_ctx: self.n_ctx });
        }
        let tokens = match request.role {
            ModelRole::Main if request.max_tokens > 0 => {
                shared.last.clear();
                shared.last.extend_from_slice(request.prompt);
                shared.script.pop_front().unwrap_or_default()
            }
            ModelRole::Compactor => {
                shared.asked.summaries += 1;
                tokens
            }
            ModelRole::Rebase => {
                shared.asked.rebases += 1;
                tokens
            }
            ModelRole::Main => tokens,
            _ => {
                shared.asked.inferences += 1;
                tokens
            }
        };
        drop(shared);
        let cut = tokens.len() > request.max_tokens as usize;
        let prefilled = Event::Prefilled {
            reused: 0,
            prefilled: u32::try_from(request.prompt.len()).unwrap_or(u32::MAX),
        };
        let pieces = tokens.into_iter().take(request.max_tokens as usize);
        let pieces = pieces.map(|token| Event::Piece { token, bytes: self.vocab.piece(token) });
        let end = if cut || request.max_tokens == 0 { Finish::Length } else { Finish::Stop };
        let events = [prefilled].into_iter().chain(pieces).chain([Event::Finished(end)]);
        Ok(ReadyReply { events: events.collect() })
    }
}

/// A prompt and its answer don't fit into the window.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("{tokens} tokens were asked of a window of {n_ctx}")]
pub(crate) struct Overflow {
    tokens: usize,
    n_ctx: u32,
}

/// An answer, which is there at once.
pub(crate) struct ReadyReply {
    events: VecDeque<Event<Vec<u8>>>,
}

impl Reply for ReadyReply {
    type Bytes = Vec<u8>;
    type Error = Overflow;

    fn poll_event(
        &mut self,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Event<Vec<u8>>, Overflow>>> {
        Poll::Ready(self.events.pop_front().map(Ok))
    }

    fn cancel(&self) {}
}
