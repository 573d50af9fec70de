//! Operations: every write there is, as one value that can be stored and applied again.

use serde::{Deserialize, Serialize};

use crate::conversations::op::{Reply, Said};
use crate::erase::Removal;
use crate::facts::FactOp;
use crate::ground::error::Fault;
use crate::ground::stamp::Stamp;
use crate::summaries::Compaction;

/// One write. A frame of the journal holds it in postcard, which names a variant by its place in
/// this list and a field by its place in the variant: add variants at the end, and change none that
/// is there.
///
/// A new variant needs, beside its line here: a function of its own that [`apply`] calls, an
/// [`Outcome`] where the store has to know what came of it, its line in [`Changes::add`] (without, the
/// text index is made anew after each), and its line in `FORMAT.md`, "Frames".
///
/// [`apply`]: super::apply::apply
/// [`Outcome`]: super::apply::Outcome
/// [`Changes::add`]: crate::index::Changes::add
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Op<'a> {
    /// A user's message.
    Accept { session: &'a str, text: &'a str, at: Stamp },
    /// The reply to a turn.
    #[serde(borrow)]
    Reply(Reply<'a>),
    /// Another name for a session.
    Rename { session: &'a str, to: &'a str },
    /// A session's title.
    SetTitle { session: &'a str, title: &'a str },
    /// A session goes, with all that is in it.
    Delete { session: &'a str },
    /// Of facts and what belongs to them.
    #[serde(borrow)]
    Facts(FactOp<'a>),
    /// Utterances of conversations held elsewhere.
    #[serde(borrow)]
    Import(Vec<Said<'a>>),
    /// Words go for good, with all that was made of them.
    Erase(Removal),
    /// Summaries of a session, and the state that goes with them.
    #[serde(borrow)]
    Compact(Compaction<'a>),
    /// The reply to a turn, and what the model saw.
    TracedReply {
        #[serde(borrow)]
        reply: Reply<'a>,
        trace: &'a [u8],
    },
    /// A state that the engine keeps of a session; nothing removes it.
    SetState { session: &'a str, kind: u8, bytes: &'a [u8] },
}

impl Op<'_> {
    pub(crate) fn encode(&self) -> Result<Vec<u8>, Fault> {
        postcard::to_allocvec(self)
            .map_err(|error| Fault::Engine(format!("can't encode an operation: {error}")))
    }

    /// Tells whether it goes into the records at once, whatever its size: what it takes away mustn't
    /// come back with a journal that lost its last frame.
    pub(crate) fn is_removal(&self) -> bool {
        matches!(self, Self::Delete { .. } | Self::Erase(_))
    }
}

impl<'a> Op<'a> {
    /// Returns what `payload` holds, if it is whole and of a kind that is known.
    pub(crate) fn decode(payload: &'a [u8]) -> Option<Self> {
        match postcard::take_from_bytes(payload) {
            Ok((op, [])) => Some(op),
            _ => None,
        }
    }
}
