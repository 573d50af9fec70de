//! What is kept of a session beside what was said.

use garret_core::id::SessionId;
use garret_storage::{ReadError, StateKind, Store};

/// A state of a session. All of them can be made anew: one whose bytes changed on the device is as
/// good as none, and keeps nobody from going on.
pub(super) fn read(
    store: &Store,
    session: &SessionId,
    kind: StateKind,
) -> Result<Option<Vec<u8>>, ReadError> {
    match store.state(session, kind) {
        Err(error @ ReadError::Damaged { .. }) => {
            tracing::warn!(%error, "it is made anew");
            Ok(None)
        }
        read => read,
    }
}
