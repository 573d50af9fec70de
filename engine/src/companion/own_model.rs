//! Companions with a model of their own.
//!
//! Such a companion can't go on from the conversation, whose cache is another model's. It is told what
//! was said as a [transcript](super::transcript), in tokens of its own model and within that model's
//! window; the conversation's model doesn't notice.

use garret_core::model::ModelRole;
use garret_core::scan::Companion;

/// A companion's own model.
#[derive(Clone, Debug)]
pub struct OwnModel<M, E> {
    /// The model.
    pub model: M,
    /// The template and the tokenizer of the model.
    pub encoder: E,
}

/// The own models of those companions that have one.
pub(crate) struct OwnModels<M, E> {
    compactor: Option<OwnModel<M, E>>,
    inferrer: Option<OwnModel<M, E>>,
}

impl<M, E> Default for OwnModels<M, E> {
    fn default() -> Self {
        Self { compactor: None, inferrer: None }
    }
}

impl<M, E> OwnModels<M, E> {
    /// Returns the own model of a role, if it has one.
    pub(crate) const fn of(&self, role: ModelRole) -> Option<&OwnModel<M, E>> {
        match role {
            ModelRole::Compactor => self.compactor.as_ref(),
            ModelRole::Inferrer => self.inferrer.as_ref(),
            _ => None,
        }
    }

    /// Returns the own model of a role, if it has one.
    pub(crate) const fn of_mut(&mut self, role: ModelRole) -> Option<&mut OwnModel<M, E>> {
        match role {
            ModelRole::Compactor => self.compactor.as_mut(),
            ModelRole::Inferrer => self.inferrer.as_mut(),
            _ => None,
        }
    }

    /// Has `companion` use a model of its own.
    pub(crate) fn set(&mut self, companion: Companion, own: OwnModel<M, E>) {
        match role_of(companion) {
            ModelRole::Inferrer => self.inferrer = Some(own),
            _ => self.compactor = Some(own),
        }
    }
}

/// Returns the role in which a companion is asked.
pub(crate) const fn role_of(companion: Companion) -> ModelRole {
    match companion {
        Companion::Infer => ModelRole::Inferrer,
        _ => ModelRole::Compactor,
    }
}
