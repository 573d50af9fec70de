//! What is put into an index, and what comes out.

use std::cmp::Ordering;

use crate::facts::view::FactKind;
use crate::search::names::ASSISTANT;
use crate::search::rank::Features;
use crate::vectors::UnitKey;

/// Something said by one speaker.
#[derive(Clone, Copy, Debug)]
pub struct Unit<'a> {
    /// The session it is in, by number.
    pub session: u64,
    /// The turn of that session.
    pub turn: u64,
    /// The one who said it; a turn has at most one unit of a speaker.
    pub speaker: Speaker<'a>,
    /// The moment, in milliseconds since 1970, where the clock could be trusted.
    pub at_ms: Option<i64>,
    /// The words.
    pub text: &'a str,
}

/// The one who said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Speaker<'a> {
    /// Whoever asks; a query names them by "I" or "my".
    User,
    /// Whoever answers; a query names them by "you" or "your".
    Assistant,
    /// Somebody with a name, which belongs to what can be found.
    Named(&'a str),
}

/// A question to an index.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// Any text.
    pub query: &'a str,
    /// Search this session alone.
    pub session: Option<u64>,
    /// Most units to give.
    pub k: usize,
    /// Where there is an embedder: the cosine of the query's vector and each unit's, by the number
    /// of the unit ([`Index::add`](super::Index::add) gives it); NaN, or nothing beyond the end of
    /// the slice, for a unit without a vector.
    pub cosines: Option<&'a [f32]>,
    /// The moment when it is asked, in milliseconds since 1970: what "yesterday" is counted from.
    pub now: Option<i64>,
}

impl<'a> Ask<'a> {
    /// Asks all sessions by words alone.
    pub const fn new(query: &'a str, k: usize) -> Self {
        Self { query, session: None, k, cosines: None, now: None }
    }
}

/// A unit found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked {
    /// Its session, by number; that of a fact is the one it was said in, and 0 when there is none.
    pub session: u64,
    /// Its turn there.
    pub turn: u64,
    /// The number of the fact that it is, if it is one.
    pub fact: Option<u64>,
    /// Its speaker, counted in the order of appearance; the user is 0, the assistant 1.
    pub speaker: u16,
    /// The moment when it was said; from when on a fact is true.
    pub at_ms: Option<i64>,
    /// The likelihood that it answers, 0 to 1: the logistic function of the sum of `parts`.
    pub relevance: f32,
    /// The freshness of a fact, 0 to 1: .5 for what has no age.
    pub recency: f32,
    /// The weight of a fact, 0 to 1: .5 for a message.
    pub importance: f32,
    /// Its rank: `relevance`, by which a message is ranked alone; that of a fact times
    /// .75 + .25 `recency` + .25 `importance`.
    pub score: f32,
    /// Terms of the relevance, each feature times its weight; all 0 for what was found by a link
    /// alone.
    pub parts: Features,
    /// The hit through which it was found: its `relevance` is that one's, less what a link takes.
    pub through: Option<UnitKey>,
}

impl Ranked {
    /// Returns what its vector would be kept under, and links lead to.
    pub(crate) fn key(&self) -> UnitKey {
        let Self { session, turn, .. } = *self;
        match self.fact {
            Some(id) => UnitKey::Fact { id },
            None if self.speaker == ASSISTANT => UnitKey::Reply { session, turn },
            None => UnitKey::Words { session, turn },
        }
    }

    /// The message that a fact was said in: the reply where it is the assistant's own, else the words.
    pub(crate) fn origin(&self) -> Option<UnitKey> {
        let Self { session, turn, .. } = *self;
        let known = self.fact.is_some() && session != 0 && turn != 0;
        known.then_some(match self.speaker {
            ASSISTANT => UnitKey::Reply { session, turn },
            _ => UnitKey::Words { session, turn },
        })
    }

    /// Its score from its relevance, which for a fact counts more or less by what else is known.
    pub(crate) fn scored(&mut self) {
        self.score = self.relevance;
        if self.fact.is_some() {
            self.score *= 0.75 + 0.25 * self.recency + 0.25 * self.importance;
        }
    }
}

impl Eq for Ranked {}

impl Ord for Ranked {
    /// By score, then by age, the newest last; at the end by what never changes.
    fn cmp(&self, other: &Self) -> Ordering {
        let rest = |ranked: &Self| {
            (ranked.at_ms, ranked.fact, ranked.session, ranked.turn, ranked.speaker)
        };
        self.score.total_cmp(&other.score).then_with(|| rest(self).cmp(&rest(other)))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The kind of a hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Something that was said: the words of a turn, or a reply.
    Message,
    /// A fact of this kind.
    Fact(FactKind),
}

impl Kind {
    /// The name on the wire: `message`, or that of the fact's kind.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Fact(kind) => kind.as_str(),
        }
    }
}
