//! Searching a store.

use garret_core::id::{SessionId, TurnSeq};
use redb::ReadableDatabase as _;

use super::derived::Derived;
use super::excerpt::excerpt;
use super::names::ASSISTANT;
use super::rank::Features;
use super::unit::{Ask, Ranked};
use crate::error::{Fault, ReadError};
use crate::open::Open;
use crate::read::find;
use crate::record::{ReplyRecord, TurnRecord, damaged, turn_name};
use crate::store::Store;
use crate::table::{REPLIES, TURNS, turn_key};

/// What a search came to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Found {
    /// The best hits, the best first; of equals the newest.
    pub hits: Vec<Hit>,
    /// Messages that were searched: each turn has the user's, and the reply where there is one.
    pub searched: usize,
}

/// A message that answers a query.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Hit {
    /// The session it is in.
    pub session: SessionId,
    /// Its turn there.
    pub turn: TurnSeq,
    /// Who said it.
    pub source: Source,
    /// When, in milliseconds since 1970; `None` when the clock was known to be wrong.
    pub at_ms: Option<i64>,
    /// What it is worth; comparable within one search.
    pub score: f32,
    /// What the score is the sum of, in the order of [`NAMES`](super::NAMES).
    pub parts: Features,
    /// The part of the message that is closest to the query, verbatim.
    pub text: String,
    /// There is more of the message before `text`.
    pub cut_before: bool,
    /// There is more of the message after `text`.
    pub cut_after: bool,
}

/// Who said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// The user.
    User,
    /// The model.
    Assistant,
}

impl Source {
    /// The name on the wire: `user` or `assistant`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

impl Store {
    /// The `k` messages that answer `query` best, of `session` or of all. Any text is a query; one
    /// that shares no word with anything said finds nothing.
    ///
    /// The first search reads the whole store into an index (1.4 s of processor time for 100,000
    /// short messages on x86_64); from then on every write keeps it, so that a message can be found
    /// as soon as it is accepted. Other operations wait meanwhile.
    ///
    /// # Errors
    /// [`ReadError::UnknownSession`] and others.
    pub fn search(
        &self,
        query: &str,
        session: Option<&SessionId>,
        k: usize,
    ) -> Result<Found, ReadError> {
        self.reading(|open| {
            let scope = match session {
                None => None,
                Some(id) => match find(open, id)? {
                    Some(record) => Some(record.number),
                    None => return Ok(Err(ReadError::UnknownSession { session: id.clone() })),
                },
            };
            let derived = match open.derived.take() {
                Some(derived) => derived,
                None => Box::new(Derived::build(open)?),
            };
            let found = search(open, &derived, query, scope, k);
            open.derived = Some(derived);
            Ok(Ok(found?))
        })
    }
}

fn search(
    open: &Open,
    derived: &Derived,
    query: &str,
    session: Option<u64>,
    k: usize,
) -> Result<Found, Fault> {
    let words = derived.index.query(query).words;
    let ranked = derived.index.search(&Ask { session, ..Ask::new(query, k) });
    let hits = ranked.iter().map(|ranked| hit(open, derived, ranked, &words));
    Ok(Found { hits: hits.collect::<Result<_, _>>()?, searched: derived.index.count(session) })
}

fn hit(
    open: &Open,
    derived: &Derived,
    ranked: &Ranked,
    words: &[Vec<String>],
) -> Result<Hit, Fault> {
    let (number, turn) = (ranked.session, ranked.turn);
    let missing = || damaged("index (a message isn't there)", turn_name(number, turn));
    let session = derived.names.get(&number).ok_or_else(missing)?.clone();
    let transaction = open.database.begin_read()?;
    let source = if ranked.speaker == ASSISTANT { Source::Assistant } else { Source::User };
    let table = match source {
        Source::User => transaction.open_table(TURNS)?,
        Source::Assistant => transaction.open_table(REPLIES)?,
    };
    let bytes = table.get(&turn_key(number, turn))?.ok_or_else(missing)?;
    let text = match source {
        Source::User => TurnRecord::view(number, turn, bytes.value())?.user,
        Source::Assistant => ReplyRecord::view(number, turn, bytes.value())?.text,
    };
    let part = excerpt(text, words);
    Ok(Hit {
        session,
        turn,
        source,
        at_ms: ranked.at_ms,
        score: ranked.score,
        parts: ranked.parts,
        cut_before: part.start > 0,
        cut_after: part.end < text.len(),
        text: text.get(part).unwrap_or(text).to_owned(),
    })
}
