//! Ids as they are printed and typed: `f12` is a fact, `kitchen/3/user` a message.

use std::fmt;
use std::str::FromStr;

use garret_core::id::{SessionId, TurnSeq};
use garret_storage::FactId;
use garret_storage::search::Source;

/// An item by its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Id {
    Fact(FactId),
    Message { session: SessionId, turn: TurnSeq, source: Source },
}

impl FromStr for Id {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        if let Ok(fact) = text.parse() {
            return Ok(Self::Fact(fact));
        }
        message(text).ok_or_else(|| IdError { text: text.to_owned() })
    }
}

/// A session's name may have slashes in it; what comes after it hasn't.
fn message(text: &str) -> Option<Id> {
    let mut parts = text.rsplitn(3, '/');
    let source = match parts.next()? {
        "user" => Source::User,
        "assistant" => Source::Assistant,
        _ => return None,
    };
    let turn = parts.next()?.parse().ok().filter(|turn| *turn > 0)?;
    let session = parts.next()?.parse().ok()?;
    Some(Id::Message { session, turn, source })
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fact(id) => id.fmt(f),
            Self::Message { session, turn, source } => {
                write!(f, "{session}/{turn}/{}", source.as_str())
            }
        }
    }
}

/// The text that was typed is no id.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{text}` is no id: a fact's is like f12 (`garret memory list`), a message's like \
     kitchen/3/user (`garret memory search`)"
)]
pub(super) struct IdError {
    text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_printed() {
        for id in ["f12", "kitchen/3/user", "conv-26/1/19/assistant", "f12/1/user", "a b/1/user"] {
            assert_eq!(id.parse::<Id>().unwrap().to_string(), id);
        }
        for wrong in ["", "12", "f", "kitchen", "kitchen/3", "kitchen/0/user", "/1/user", "k/1/x"] {
            let error = wrong.parse::<Id>().unwrap_err().to_string();
            assert!(error.contains("garret memory list"), "{error}");
        }
    }
}
