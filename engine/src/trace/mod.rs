//! Traces: what the model saw in a turn beside what was said, stored with the reply and shown by an
//! [export](crate::export).
//!
//! The whole prompt of a turn is its system message, the turns from [`Trace::history_from`] on as they
//! are stored, [`Trace::volatile`], and the user's words; then whatever was looked up on the way.
//! [`Trace::shape`] says how these texts were put together, so that the prompt can be told byte for
//! byte without the model.
//!
//! What stays from turn to turn, which is the system message and what the template writes, is kept in
//! one trace, to which the others refer ([`System::AsIn`], [`Trace::relative_to`]).
//!
//! Limits: an erasure takes the traces of all turns before it, since a trace may quote what was erased. Traces of version 1 have no shape.

mod frames;
pub(crate) mod record;

use garret_core::id::{SessionId, TurnSeq};
use garret_storage::{ReadError, Store};
use serde::{Deserialize, Serialize};

use crate::state;

pub(crate) use frames::find;
pub use frames::{Frames, Piece, Run, Shows, Stretch};

/// The record of what the model saw in a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// The system message.
    pub system: System,
    /// Oldest earlier turn in the prompt.
    pub history_from: Option<TurnSeq>,
    /// The block before the user's words, for this turn alone.
    pub volatile: String,
    /// The lookups in the middle of the reply.
    pub rounds: Vec<Exchange>,
    /// The way its texts were put together; `None` where that wasn't kept.
    pub shape: Option<Shape>,
}

/// The system message of a turn, stored once since it seldom changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum System {
    /// The text; empty for none.
    Text(String),
    /// The text in the trace of this turn.
    AsIn(TurnSeq),
}

/// A lookup in the middle of a reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// The words that the model wrote before, tag and all.
    pub said: String,
    /// The message with the result.
    pub result: String,
}

/// The way in which the texts of a prompt were put together, and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Bytes of the system message that are instructions; the rest is tracked of the conversation.
    pub instructions: usize,
    /// Bytes of each part of [`Trace::volatile`], in the order of the receipt's blocks.
    pub volatile: Vec<usize>,
    /// Messages that were shown shortened.
    pub cuts: Vec<Cut>,
    /// The bytes that the template wrote around the texts.
    pub frames: Frames,
    /// The bytes that the template wrote around each result of [`Trace::rounds`].
    pub rounds: Vec<Around>,
    /// The words that the model wrote after the last result, where more or less of them was shown.
    pub wrote: Option<String>,
    /// The words it wrote before that, if none could be shown and it was asked again.
    pub given_up: Option<String>,
    /// Microseconds from the message to the first token of the reply; `None` when none came.
    pub first_us: Option<u64>,
    /// Microseconds from the message to the end of the reply.
    pub total_us: u64,
    /// The days that history shows.
    pub days: Vec<Dated>,
}

/// A line with a day before a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dated {
    /// The turn before whose message the line stands.
    pub turn: TurnSeq,
    /// The line, with its end. It is kept, since the turn's time wouldn't tell it once the user moved.
    pub day: String,
}

/// A message that was shown as head and tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// The turn of the message.
    pub turn: TurnSeq,
    /// Bytes from the front.
    pub head: usize,
    /// Bytes from the back.
    pub tail: usize,
}

/// The bytes around a text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Around {
    /// Bytes before the text.
    pub before: Vec<u8>,
    /// Bytes after the text.
    pub after: Vec<u8>,
}

impl Around {
    /// Splits `whole` at `text`; all of it is before, if the text isn't there.
    pub fn of(text: &str, whole: &[u8]) -> Self {
        let text = text.as_bytes();
        let at = frames::find(whole, text);
        let (before, after) = whole.split_at(at.unwrap_or(whole.len()));
        let after = after.strip_prefix(text).unwrap_or(after);
        Self { before: before.to_vec(), after: after.to_vec() }
    }
}

impl Trace {
    /// Returns the bytes of the record.
    pub fn to_bytes(&self) -> Vec<u8> {
        state::encode(self)
    }

    /// Reads a record; `None` when its version isn't known or it is damaged.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        state::decode(bytes)
    }

    /// Reads the trace of a turn, with what it refers to in another one; `None` where there is none.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn read(
        store: &Store,
        session: &SessionId,
        turn: TurnSeq,
    ) -> Result<Option<Self>, ReadError> {
        let read = |turn| {
            let bytes = store.trace(session, turn)?;
            Ok::<_, ReadError>(bytes.and_then(|bytes| Self::from_bytes(&bytes)))
        };
        let Some(mut trace) = read(turn)? else { return Ok(None) };
        if let System::AsIn(at) = trace.system
            && let Some(other) = read(at)?
        {
            trace.complete(&other);
        }
        Ok(Some(trace))
    }

    /// Leaves out the pieces that `other` has as well, which are those of the trace with the system
    /// message.
    pub fn relative_to(&mut self, other: &[Piece]) {
        if let Some(shape) = &mut self.shape {
            shape.frames.relative_to(other);
        }
    }

    /// Puts in again what [`Trace::relative_to`] left out, from the trace with the system message.
    pub fn complete(&mut self, other: &Self) {
        if let Some(shape) = &mut self.shape {
            shape.frames.complete(other.pieces());
        }
    }

    /// Returns the different pieces that the template wrote before texts.
    pub fn pieces(&self) -> &[Piece] {
        self.shape.as_ref().map_or(&[], |shape| &shape.frames.pieces)
    }

    /// Returns the text of the system message; `None` where another turn had it that has no trace.
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

/// A shape of version 2 has no days at its end, and version 1 has no shape. Behind a version 2 without
/// a shape the byte means nothing.
impl state::Record for Trace {
    const VERSION: u8 = 3;
    const OLDER: &'static [(u8, &'static [u8])] = &[(2, &[0]), (1, &[0])];
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace() -> Trace {
        let exchange = Exchange { said: "Let me see.".into(), result: "[Result]".into() };
        Trace {
            system: System::AsIn(3),
            history_from: Some(4),
            volatile: "[Now: never]".into(),
            rounds: vec![exchange],
            shape: None,
        }
    }

    #[test]
    fn a_trace_comes_back_and_a_damaged_one_is_none() {
        let shape = Shape {
            instructions: 7,
            volatile: vec![13],
            cuts: vec![Cut { turn: 4, head: 100, tail: 50 }],
            frames: Frames::of(b"<u>hello<a>", &[8], &["hello"]),
            rounds: vec![Around::of("[Result]", b"</a><u>[Result]</u><a>")],
            wrote: Some("Well <<garret-x>>".into()),
            given_up: Some(String::new()),
            first_us: Some(20),
            total_us: 30,
            days: vec![Dated { turn: 4, day: "[Friday 1 May 2026]\n".into() }],
        };
        let trace = Trace { shape: Some(shape), ..trace() };
        let bytes = trace.to_bytes();
        assert_eq!(Trace::from_bytes(&bytes), Some(trace));
        for end in 0..bytes.len() {
            assert_eq!(Trace::from_bytes(&bytes[..end]), None, "cut at {end}");
        }
    }

    #[test]
    fn traces_of_the_versions_before_have_no_shape_or_no_days() {
        let bytes = trace().to_bytes();
        let first = [&[1], &bytes[1..bytes.len() - 1]].concat();
        assert_eq!(Trace::from_bytes(&first), Some(trace()));
        let second = [&[2], &bytes[1..]].concat();
        assert_eq!(Trace::from_bytes(&second), Some(trace()));
        let shaped = Trace { shape: Some(Shape { total_us: 9, ..Shape::default() }), ..trace() };
        let whole = shaped.to_bytes();
        let second = [&[2], &whole[1..whole.len() - 1]].concat();
        assert_eq!(Trace::from_bytes(&second), Some(shaped));
        assert_eq!(Trace::from_bytes(&[&[4], &bytes[1..]].concat()), None);
    }

    #[test]
    fn what_stands_around_a_text_is_all_the_rest() {
        let around = Around::of("b", b"<abc>");
        assert_eq!((&*around.before, &*around.after), (&b"<a"[..], &b"c>"[..]));
        let missing = Around::of("x", b"<abc>");
        assert_eq!((&*missing.before, &*missing.after), (&b"<abc>"[..], &b""[..]));
    }
}
