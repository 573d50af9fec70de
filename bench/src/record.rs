//! A model that remembers what it was asked, so that another can be asked the same.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use garret_core::model::{ChatModel, Event, ModelFacts, ModelRole, Reply, Request};
use garret_core::token::Token;

/// Passes everything on to `M`.
#[derive(Clone)]
pub(crate) struct Recorder<M> {
    model: M,
    calls: Arc<Mutex<Vec<Arc<Mutex<Call>>>>>,
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) role: ModelRole,
    pub(crate) prompt: Vec<Token>,
    pub(crate) max_tokens: u32,
    pub(crate) grammar: Option<String>,
    /// Tokens of the prompt that were decoded.
    pub(crate) prefilled: u32,
    /// Tokens generated.
    pub(crate) answer: Vec<Token>,
}

impl<M> Recorder<M> {
    pub(crate) fn new(model: M) -> Self {
        Self { model, calls: Arc::default() }
    }

    /// The requests since the last call of this, as far as they were answered.
    pub(crate) fn take(&self) -> Vec<Call> {
        let calls = std::mem::take(&mut *lock(&self.calls));
        calls.iter().map(|call| lock(call).clone()).collect()
    }
}

impl<M: ChatModel> ChatModel for Recorder<M> {
    type Reply = RecordedReply<M::Reply>;
    type Error = M::Error;

    fn facts(&self) -> ModelFacts {
        self.model.facts()
    }

    fn start(&self, request: Request<'_>) -> Result<Self::Reply, M::Error> {
        let Request { role, prompt, max_tokens, grammar, .. } = request;
        let prompt = prompt.to_vec();
        let grammar = grammar.map(str::to_owned);
        let call = Call { role, prompt, max_tokens, grammar, prefilled: 0, answer: Vec::new() };
        let call = Arc::new(Mutex::new(call));
        lock(&self.calls).push(Arc::clone(&call));
        Ok(RecordedReply { reply: self.model.start(request)?, call })
    }
}

/// A reply that is noted as it comes.
pub(crate) struct RecordedReply<R> {
    reply: R,
    call: Arc<Mutex<Call>>,
}

impl<R: Reply> Reply for RecordedReply<R> {
    type Bytes = R::Bytes;
    type Error = R::Error;

    fn poll_event(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Event<R::Bytes>, R::Error>>> {
        let event = self.reply.poll_event(cx);
        match &event {
            Poll::Ready(Some(Ok(Event::Prefilled { prefilled, .. }))) => {
                lock(&self.call).prefilled = *prefilled;
            }
            Poll::Ready(Some(Ok(Event::Piece { token, .. }))) => {
                lock(&self.call).answer.push(*token);
            }
            _ => {}
        }
        event
    }

    fn cancel(&self) {
        self.reply.cancel();
    }
}

/// Nothing panics while it holds the lock.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
