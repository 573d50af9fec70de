//! What a vector belongs to.

/// A unit that has a vector of its own.
///
/// Sessions are named by their number, which stays when a session is renamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnitKey {
    /// The words of a turn, of the user or whoever spoke there.
    Words {
        /// Number of the session.
        session: u64,
        /// Number of the turn in it, from 1.
        turn: u64,
    },
    /// The reply of a turn.
    Reply {
        /// Number of the session.
        session: u64,
        /// Number of the turn in it, from 1.
        turn: u64,
    },
    /// A fact.
    Fact {
        /// Number of the fact.
        id: u64,
    },
}

impl UnitKey {
    /// Number of the session it is in; facts are in none.
    pub fn session(self) -> Option<u64> {
        match self {
            Self::Words { session, .. } | Self::Reply { session, .. } => Some(session),
            Self::Fact { .. } => None,
        }
    }

    /// Returns the stored form: a kind that is never 0, and two numbers.
    pub(crate) fn parts(self) -> (u8, u64, u64) {
        match self {
            Self::Words { session, turn } => (1, session, turn),
            Self::Reply { session, turn } => (2, session, turn),
            Self::Fact { id } => (3, 0, id),
        }
    }

    /// The key of these [`parts`](Self::parts), if they are those of one.
    pub(crate) fn from_parts(kind: u8, first: u64, second: u64) -> Option<Self> {
        match (kind, first) {
            (1, session) => Some(Self::Words { session, turn: second }),
            (2, session) => Some(Self::Reply { session, turn: second }),
            (3, 0) => Some(Self::Fact { id: second }),
            _ => None,
        }
    }
}
