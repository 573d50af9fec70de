//! The system message of a session.

use std::sync::Arc;

use garret_core::id::SessionId;
use garret_core::model::ChatModel;
use garret_core::prompt::PromptEncoder;
use garret_storage::ReadError;

use super::Agent;

impl<M: ChatModel, E: PromptEncoder> Agent<M, E> {
    /// The whole system message with which every prompt of a session begins; empty for none.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn system(&self, _session: &SessionId) -> Result<Arc<str>, ReadError> {
        Ok(Arc::clone(&self.system.text))
    }
}
