//! The surroundings of a call.

use garret_core::id::{SessionId, TurnSeq};
use garret_storage::{ReadError, Store};

use super::call::Place;
use crate::embed::Embed;

/// The store that a call is answered from, and what is known of whoever calls.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The store.
    pub store: &'a Store,
    /// The embedder of queries, so that `lookup` goes by meaning too.
    pub embedder: Option<&'a dyn Embed>,
    /// The conversation that is meant where none is named; without one, a call has to name it.
    pub session: Option<&'a SessionId>,
    /// The turn that is being answered: what is said in it isn't found.
    pub turn: Option<TurnSeq>,
    /// The present moment, in milliseconds since 1970, if the clock can be trusted.
    pub now: Option<i64>,
}

impl<'a> Context<'a> {
    /// Creates a context of a store alone.
    pub const fn new(store: &'a Store) -> Self {
        Self { store, embedder: None, session: None, turn: None, now: None }
    }

    /// Returns the conversation that a call is about; `None` for all of them.
    pub(super) fn place(&self, place: &'a Place) -> Result<Option<&'a SessionId>, ToolError> {
        match place {
            Place::Everywhere => Ok(None),
            Place::Session(id) => Ok(Some(id)),
            Place::Here => self.session.map(Some).ok_or(ToolError::Nowhere),
        }
    }

    /// Returns the conversation of a call about one.
    pub(super) fn one(&self, place: &'a Place) -> Result<&'a SessionId, ToolError> {
        self.place(place)?.ok_or(ToolError::Nowhere)
    }

    /// Returns true for the turn of `session` that is being answered, and for later ones.
    pub(super) fn is_current(&self, session: &SessionId, turn: TurnSeq) -> bool {
        self.session == Some(session) && self.turn.is_some_and(|current| turn >= current)
    }
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("session", &self.session)
            .field("turn", &self.turn)
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

/// The reason for which a call has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The call is about a conversation and none is meant.
    #[error("say in which conversation: in=NAME")]
    Nowhere,
    /// The store can't be read, or has no such conversation.
    #[error(transparent)]
    Read(#[from] ReadError),
}
