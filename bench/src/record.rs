//! A model that remembers the prompts it was given, so that another can be given the same.

use std::sync::{Arc, Mutex, PoisonError};

use garret_core::model::{ChatModel, ModelFacts, Request};
use garret_core::token::Token;

/// Passes everything on to `M`.
#[derive(Clone)]
pub(crate) struct Recorder<M> {
    model: M,
    last: Arc<Mutex<Vec<Token>>>,
}

impl<M> Recorder<M> {
    pub(crate) fn new(model: M) -> Self {
        Self { model, last: Arc::default() }
    }

    /// The newest prompt.
    pub(crate) fn last_prompt(&self) -> Vec<Token> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<M: ChatModel> ChatModel for Recorder<M> {
    type Reply = M::Reply;
    type Error = M::Error;

    fn facts(&self) -> ModelFacts {
        self.model.facts()
    }

    fn start(&self, request: Request<'_>) -> Result<M::Reply, M::Error> {
        if request.max_tokens == 0 {
            return self.model.start(request);
        }
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = request.prompt.to_vec();
        self.model.start(request)
    }
}
