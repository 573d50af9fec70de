//! A model whose prompts are remembered.

use std::sync::{Arc, Mutex, PoisonError};

use garret_core::model::{ChatModel, ModelFacts, ModelRole, Request};
use garret_core::token::Token;

/// Another model, and every prompt in which it was asked for a reply to the user.
#[derive(Clone, Debug)]
pub struct Recorder<M> {
    model: M,
    prompts: Arc<Mutex<Vec<Vec<Token>>>>,
}

impl<M> Recorder<M> {
    /// Remembers what `model` is asked from now on.
    pub fn new(model: M) -> Self {
        Self { model, prompts: Arc::default() }
    }

    /// Every such prompt so far.
    pub fn prompts(&self) -> Vec<Vec<Token>> {
        self.prompts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<M: ChatModel> ChatModel for Recorder<M> {
    type Reply = M::Reply;
    type Error = M::Error;

    fn facts(&self) -> ModelFacts {
        self.model.facts()
    }

    fn start(&self, request: Request<'_>) -> Result<M::Reply, M::Error> {
        if request.role == ModelRole::Main && request.max_tokens > 0 {
            let mut prompts = self.prompts.lock().unwrap_or_else(PoisonError::into_inner);
            prompts.push(request.prompt.to_vec());
        }
        self.model.start(request)
    }
}
