//! Names of sessions and numbers of turns.
//!
//! ```
//! use garret_core::id::SessionId;
//! let id: SessionId = "kitchen".parse()?;
//! assert_eq!(id.as_str(), "kitchen");
//! assert!("".parse::<SessionId>().is_err());
//! # Ok::<(), garret_core::id::IdError>(())
//! ```
//!
//! Limits: a session id is 1 to 64 bytes of UTF-8 without control characters and without white
//! space at its ends, so that it can be typed, printed on one line and used as a key.

use core::fmt;
use core::str::FromStr;

/// Number of a turn within its session, counted from 1 in the order of acceptance.
pub type TurnSeq = u64;

/// Name of a conversation, unique within its namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(heapless::String<{ SessionId::MAX_BYTES }>);

impl SessionId {
    /// Most bytes of UTF-8 a session id can have.
    pub const MAX_BYTES: usize = 64;

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SessionId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        if text.is_empty() {
            return Err(IdError::Empty);
        }
        if text.chars().any(char::is_control) {
            return Err(IdError::Control);
        }
        if text.trim() != text {
            return Err(IdError::Space);
        }
        heapless::String::try_from(text)
            .map(Self)
            .map_err(|_| IdError::TooLong { bytes: text.len() })
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reason why a text is no session id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdError {
    /// No characters at all.
    #[error("a session id can't be empty: give it a name such as `kitchen`")]
    Empty,
    /// A control character, such as a line break.
    #[error("a session id can't hold control characters: use letters, digits, spaces, `-` and `_`")]
    Control,
    /// White space first or last.
    #[error("a session id can't begin or end with white space: remove it")]
    Space,
    /// Over [`SessionId::MAX_BYTES`].
    #[error("a session id has at most 64 bytes, this one has {bytes}: shorten it")]
    TooLong {
        /// Length given, in bytes of UTF-8.
        bytes: usize,
    },
}
