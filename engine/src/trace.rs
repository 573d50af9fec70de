//! What the model saw in a turn beside what was said: stored with the reply, shown by an export.
//!
//! The whole prompt of a turn is its system message, the turns from [`Trace::history_from`] on as they
//! are stored, [`Trace::volatile`], and the user's words; then whatever was looked up on the way.
//!
//! Limits: after a forget nothing is known any more of the turns before it, since a trace may quote
//! what was forgotten.

use garret_core::id::{SessionId, TurnSeq};
use garret_storage::{ReadError, Store};
use serde::{Deserialize, Serialize};

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// The system message.
    pub system: System,
    /// Oldest earlier turn in the prompt.
    pub history_from: Option<TurnSeq>,
    /// What stood before the user's words, for this turn alone.
    pub volatile: String,
    /// What was looked up in the middle of the reply.
    pub rounds: Vec<Exchange>,
}

/// The system message of a turn. It seldom changes, so it is stored once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum System {
    /// This text; empty for none.
    Text(String),
    /// The same as in this turn.
    AsIn(TurnSeq),
}

/// Something that was looked up in the middle of a reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// What the model wrote before.
    pub said: String,
    /// The message with the result.
    pub result: String,
}

impl Trace {
    /// The record.
    ///
    /// # Errors
    /// None that these fields can cause; the encoder's type allows for some.
    pub fn to_bytes(&self) -> Result<Vec<u8>, postcard::Error> {
        postcard::to_extend(self, vec![VERSION])
    }

    /// Reads a record; `None` when it is of another version or damaged.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (version, body) = bytes.split_first()?;
        (*version == VERSION).then(|| postcard::from_bytes(body).ok()).flatten()
    }

    /// The trace of a turn; `None` where there is none.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn read(
        store: &Store,
        session: &SessionId,
        turn: TurnSeq,
    ) -> Result<Option<Self>, ReadError> {
        Ok(store.trace(session, turn)?.and_then(|bytes| Self::from_bytes(&bytes)))
    }

    /// The text of the system message; `None` where it is that of a turn without a trace.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn system_text(
        &self,
        store: &Store,
        session: &SessionId,
    ) -> Result<Option<String>, ReadError> {
        match &self.system {
            System::Text(text) => Ok(Some(text.clone())),
            System::AsIn(turn) => Ok(match Self::read(store, session, *turn)? {
                Some(Self { system: System::Text(text), .. }) => Some(text),
                _ => None,
            }),
        }
    }
}

/// Version of the record.
const VERSION: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_comes_back_and_a_damaged_one_is_none() {
        let exchange = Exchange { said: "Let me see.".into(), result: "[Result]".into() };
        let trace = Trace {
            system: System::AsIn(3),
            history_from: Some(4),
            volatile: "[Now: never]".into(),
            rounds: vec![exchange],
        };
        let bytes = trace.to_bytes().unwrap();
        assert_eq!(Trace::from_bytes(&bytes), Some(trace));
        for end in 0..bytes.len() {
            assert_eq!(Trace::from_bytes(&bytes[..end]), None, "cut at {end}");
        }
    }
}
