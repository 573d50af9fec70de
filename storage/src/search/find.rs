//! Searching a store.

use garret_core::id::{SessionId, TurnSeq};
use redb::ReadTransaction;

use crate::conversations::record::{ReplyRecord, TurnRecord, speaker, turn_name};
use crate::facts;
use crate::facts::FactId;
use crate::ground::error::{Fault, damaged};
use crate::ground::table::{REPLIES, SPEAKERS, TURNS, turn_key};
use crate::search::derived::Kept;
use crate::search::excerpt::{Asked, EXCERPT_BYTES, excerpt};
use crate::search::filter::Filter;
use crate::search::index::Index;
use crate::search::names::ASSISTANT;
use crate::search::rank::Features;
use crate::search::unit::{Kind, Ranked};
use crate::vectors::UnitKey;

/// A search of a store.
///
/// ```
/// use garret_storage::search::{Kind, Search};
///
/// let search = Search {
///     source: Some("user"),
///     kinds: &[Kind::Message],
///     as_of: Some(1_767_225_600_000),
///     ..Search::new("When did the bees swarm?", 5)
/// };
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// Any text; it has no syntax.
    pub query: &'a str,
    /// Most hits.
    pub k: usize,
    /// Only what was said in this session.
    pub session: Option<&'a SessionId>,
    /// Only what was said by this one: `user`, `assistant`, or a name.
    pub source: Option<&'a str>,
    /// Only hits of these kinds; of any where there are none.
    pub kinds: &'a [Kind],
    /// As it was at that moment, in milliseconds since 1970: what had been said by then, and facts
    /// that were true then.
    pub as_of: Option<i64>,
    /// Facts that were replaced or have ended, too. Without `as_of` they aren't found else.
    pub replaced: bool,
    /// When it is asked, in milliseconds since 1970: what "yesterday" and the age of facts are
    /// counted from.
    pub now: Option<i64>,
    /// The vector that the store's embedder makes of the query, without the names of those who
    /// speak ([`Store::without_names`](crate::Store::without_names)).
    pub vector: Option<&'a [f32]>,
    /// What isn't found and has no say in what is usual: the turn that asks, where that is stored
    /// already.
    pub except: Option<(&'a SessionId, TurnSeq)>,
    /// Most bytes of a hit's text, save that no word is cut; of a longer text it is the part that
    /// answers.
    pub excerpt: usize,
}

impl<'a> Search<'a> {
    /// Looks for the `k` best of everything, by words alone.
    pub const fn new(query: &'a str, k: usize) -> Self {
        Self {
            query,
            k,
            session: None,
            source: None,
            kinds: &[],
            as_of: None,
            replaced: false,
            now: None,
            vector: None,
            except: None,
            excerpt: EXCERPT_BYTES,
        }
    }
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Found {
    /// The best hits, the best first; of equals the newest.
    pub hits: Vec<Hit>,
    /// Messages and facts that were searched: each turn has its words, and the reply where there
    /// is one.
    pub searched: usize,
}

/// A message or a fact that answers a query.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Hit {
    /// Its public id: `SESSION/TURN/user` or `SESSION/TURN/assistant` for what stands in a turn,
    /// `f12` for a fact.
    pub id: String,
    /// Its kind.
    pub kind: Kind,
    /// The session it was said in, if it was in one that is still there.
    pub session: Option<SessionId>,
    /// Its turn there.
    pub turn: Option<TurnSeq>,
    /// The one who said it: `user`, `assistant`, or a name.
    pub source: String,
    /// When, in milliseconds since 1970; from when on a fact is true. `None` when the clock was
    /// known to be wrong.
    pub at_ms: Option<i64>,
    /// From when on a fact isn't true any more.
    pub valid_to: Option<i64>,
    /// Its rank, 0 to about 1.2: `relevance`, by which alone messages are ranked; that of
    /// a fact times .75 + .25 `recency` + .25 `importance`.
    pub score: f32,
    /// The likelihood that it answers, 0 to 1; comparable between searches.
    pub relevance: f32,
    /// The freshness of a fact, 0 to 1: e to the minus age in units of 30 days, counted from when
    /// it
    /// was last of use or else became true; .5 without [`Search::now`] and for messages.
    pub recency: f32,
    /// The weight of a fact, 0 to 1; .5 for messages.
    pub importance: f32,
    /// Terms whose sum, by the logistic function, is the relevance, in the order of
    /// [`NAMES`](super::NAMES); all 0 for what was found by a link alone.
    pub parts: Features,
    /// The score of a reranker, where one was asked: the greater, the better it answers. Nothing
    /// here
    /// asks one; whoever does notes it, and orders the hits by it.
    pub rerank: Option<f32>,
    /// The id of the hit that is linked to this one, where that made it more relevant than it is by
    /// itself.
    pub through: Option<String>,
    /// The part of the text that is closest to the query, verbatim.
    pub text: String,
    /// There is more of it before `text`.
    pub cut_before: bool,
    /// There is more of it after `text`.
    pub cut_after: bool,
}

/// The side of a turn whose words they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// The user's, or those of whoever spoke there.
    User,
    /// The reply.
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

/// Returns what a search looks at; `None` where nobody of the name that it wants said anything.
pub(crate) fn filter(index: &Index, search: &Search<'_>, session: Option<u64>) -> Option<Filter> {
    let mut filter = Filter {
        session,
        kinds: search.kinds.to_vec(),
        as_of: search.as_of,
        replaced: search.replaced,
        ..Filter::default()
    };
    let known = search.source.is_none_or(|source| filter.only(index, source));
    known.then_some(filter)
}

/// Units whose cosines are exact.
pub(crate) const EXACT: usize = 200;

/// An excerpt of a text.
#[derive(Clone, Copy)]
pub(crate) struct Cut<'q> {
    pub(crate) asked: &'q Asked<'q>,
    pub(crate) most: usize,
}

pub(crate) fn hit(
    transaction: &ReadTransaction,
    kept: &Kept,
    ranked: &Ranked,
    cut: Cut<'_>,
) -> Result<Hit, Fault> {
    let mut hit = match ranked.fact {
        Some(id) => fact_hit(transaction, kept, ranked, FactId(id), cut),
        None => message_hit(transaction, kept, ranked, cut),
    }?;
    hit.through = ranked.through.and_then(|key| public_id(kept, key));
    Ok(hit)
}

/// The id of a unit on the wire.
pub(crate) fn public_id(kept: &Kept, key: UnitKey) -> Option<String> {
    let message = |session, turn, place: Source| {
        kept.names.get(&session).map(|name| format!("{name}/{turn}/{}", place.as_str()))
    };
    match key {
        UnitKey::Words { session, turn } => message(session, turn, Source::User),
        UnitKey::Reply { session, turn } => message(session, turn, Source::Assistant),
        UnitKey::Fact { id } => Some(FactId(id).to_string()),
    }
}

pub(crate) fn message_hit(
    transaction: &ReadTransaction,
    kept: &Kept,
    ranked: &Ranked,
    cut: Cut<'_>,
) -> Result<Hit, Fault> {
    let (number, turn) = (ranked.session, ranked.turn);
    let missing = || damaged("index (a message isn't there)", turn_name(number, turn));
    let session = kept.names.get(&number).ok_or_else(missing)?.clone();
    let key = turn_key(number, turn);
    let place = if ranked.speaker == ASSISTANT { Source::Assistant } else { Source::User };
    let table = match place {
        Source::User => transaction.open_table(TURNS)?,
        Source::Assistant => transaction.open_table(REPLIES)?,
    };
    let bytes = table.get(&key)?.ok_or_else(missing)?;
    let (text, source) = match place {
        Source::User => {
            let name = transaction.open_table(SPEAKERS)?.get(&key)?;
            let name = name.map(|name| speaker(number, turn, name.value()).map(str::to_owned));
            let source = name.transpose()?.unwrap_or_else(|| "user".to_owned());
            (TurnRecord::view(number, turn, bytes.value())?.user, source)
        }
        Source::Assistant => {
            (ReplyRecord::view(number, turn, bytes.value())?.text, "assistant".to_owned())
        }
    };
    let id = public_id(kept, ranked.key()).ok_or_else(missing)?;
    let said = Shown { id, kind: Kind::Message, source, valid_to: None };
    Ok(said.hit(ranked, Some(session), Some(turn), text, cut))
}

pub(crate) fn fact_hit(
    transaction: &ReadTransaction,
    kept: &Kept,
    ranked: &Ranked,
    id: FactId,
    cut: Cut<'_>,
) -> Result<Hit, Fault> {
    let missing = || damaged("index (a fact isn't there)", id.to_string());
    let fact = facts::fact(transaction, id)?.ok_or_else(missing)?;
    let session = fact.session.and_then(|number| kept.names.get(&number)).cloned();
    let turn = fact.turn.filter(|_| session.is_some());
    let shown = Shown {
        id: id.to_string(),
        kind: Kind::Fact(fact.kind),
        source: fact.source.to_string(),
        valid_to: fact.valid_to,
    };
    Ok(shown.hit(ranked, session, turn, &fact.text, cut))
}

/// The parts of a hit in which messages and facts differ.
pub(crate) struct Shown {
    pub(crate) id: String,
    pub(crate) kind: Kind,
    pub(crate) source: String,
    pub(crate) valid_to: Option<i64>,
}

impl Shown {
    fn hit(
        self,
        ranked: &Ranked,
        session: Option<SessionId>,
        turn: Option<TurnSeq>,
        text: &str,
        cut: Cut<'_>,
    ) -> Hit {
        let part = excerpt(text, cut.asked, cut.most);
        Hit {
            id: self.id,
            kind: self.kind,
            session,
            turn,
            source: self.source,
            at_ms: ranked.at_ms,
            valid_to: self.valid_to,
            score: ranked.score,
            relevance: ranked.relevance,
            recency: ranked.recency,
            importance: ranked.importance,
            parts: ranked.parts,
            rerank: None,
            through: None,
            cut_before: part.start > 0,
            cut_after: part.end < text.len(),
            text: text.get(part).unwrap_or(text).to_owned(),
        }
    }
}
