//! Sizes that no text, name or list may exceed.

use crate::ground::error::WriteError;

/// Most bytes that a text, a reply's token ids or a receipt can have.
pub const MAX_BYTES: usize = 16 << 20;

/// Most bytes that the name of a subject, of its type, of a predicate or a source can have.
pub const MAX_NAME_BYTES: usize = 1_024;

/// Refuses what is larger than [`MAX_BYTES`].
pub(crate) fn check_size(what: &'static str, bytes: usize) -> Result<(), WriteError> {
    if bytes > MAX_BYTES {
        return Err(WriteError::TooLarge { what, bytes, max: MAX_BYTES });
    }
    Ok(())
}
