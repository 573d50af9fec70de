//! Memory: messages and facts from elsewhere that answer a message, and the block that shows them.

pub(crate) mod block;

use std::collections::HashSet;

use garret_core::budget::Budget;
use garret_core::id::{SessionId, TurnSeq};
use garret_core::prompt::{EncodeError, PromptEncoder};
use garret_storage::Store;
use garret_storage::search::{Hit, NAMES, Search};

pub(crate) use block::MemoryBlock;
use block::fill;

use crate::embed::{self, Embed};
use crate::remember::fading;
use crate::rerank::{Reranking, rerank};

/// The message for which something may be remembered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Query<'a> {
    pub(crate) session: &'a SessionId,
    pub(crate) turn: TurnSeq,
    /// The user's words.
    pub(crate) text: &'a str,
    /// The time of the message, in milliseconds since 1970, if the clock can be trusted.
    pub(crate) now: Option<i64>,
    /// Numbers of the facts that the prompt shows anyway.
    pub(crate) tracked: &'a [u64],
}

/// The search for what answers a message, done when it is first wanted.
pub(crate) struct Recall<'a> {
    store: &'a Store,
    embedder: Option<&'a dyn Embed>,
    reranking: Option<Reranking<'a>>,
    query: Query<'a>,
    /// Most tokens of the block; `None` when there is to be none.
    room: Option<usize>,
    /// The hits, the best first; `None` until they are wanted.
    hits: Option<Vec<Hit>>,
}

impl<'a> Recall<'a> {
    pub(crate) fn new(
        store: &'a Store,
        embedder: Option<&'a dyn Embed>,
        budget: &Budget,
        query: Query<'a>,
    ) -> Self {
        let room = (budget.memory > 0).then(|| budget.memory.saturating_sub(SEAM) as usize);
        Self { store, embedder, reranking: None, query, room, hits: None }
    }

    /// Has the first hits ranked again.
    pub(crate) fn reranked(self, reranking: Reranking<'a>) -> Self {
        Self { reranking: Some(reranking), ..self }
    }

    /// Makes the block beside a history that shows the turns from `from` on: the best hits among what it
    /// doesn't show, each whole, oldest first.
    pub(crate) fn block<E: PromptEncoder>(
        &mut self,
        encoder: &mut E,
        from: Option<TurnSeq>,
    ) -> Result<MemoryBlock, EncodeError<E::Error>> {
        let Some(room) = self.room else { return Ok(MemoryBlock::EMPTY) };
        let from = from.unwrap_or(self.query.turn);
        let hits = match self.hits.take() {
            Some(hits) => hits,
            None => self.search(from),
        };
        let hits = self.hits.insert(hits);
        let asks = self.query.text.contains(QUESTION_MARKS);
        if !hits.iter().any(|hit| is_likely(hit, asks)) {
            return Ok(MemoryBlock::EMPTY);
        }
        let mut known = HashSet::from([self.query.text.trim()]);
        let query = self.query;
        let hidden = |hit: &&Hit| query.hides(from, hit);
        let tracked = query.tracked;
        let untracked = |hit: &&Hit| {
            let fact = hit.id.strip_prefix('f').and_then(|id| id.parse().ok());
            !fact.is_some_and(|id| tracked.contains(&id))
        };
        let mut hits: Vec<&Hit> = hits
            .iter()
            .filter(|hit| hit.relevance >= LEAST)
            .filter(untracked)
            .filter(hidden)
            .filter(|hit| !hit.text.trim().is_empty())
            .filter(|hit| known.insert(hit.text.trim()))
            .take(MAX_HITS)
            .collect();
        let read_again = hits.iter().filter(|hit| hit.rerank.is_some()).count();
        if let Some(rest) = hits.get_mut(read_again.max(FIRST)..) {
            rest.sort_by(|a, b| worth(b).total_cmp(&worth(a)));
        }
        fill(encoder, hits.into_iter(), room, self.query.session)
    }

    /// Searches the store. A failure is logged and finds nothing: that is no reason not to answer.
    fn search(&self, from: TurnSeq) -> Vec<Hit> {
        let shown = usize::try_from(self.query.turn.saturating_sub(from)).unwrap_or(usize::MAX);
        // Two messages a turn that may be found and is shown already.
        let most = shown.saturating_mul(2).saturating_add(MAX_HITS);
        let Query { session, turn, text, now, .. } = self.query;
        let vector = self.embedder.and_then(|embedder| embed::query(self.store, embedder, text));
        let vector = vector.as_deref();
        let except = Some((session, turn));
        let search = Search { now, vector, except, excerpt: LONGEST, ..Search::new(text, most) };
        match self.store.find(&search) {
            Ok(found) => match fading::sift(self.store, found.hits, now) {
                Ok(hits) => self.ranked_again(hits, from),
                Err(error) => {
                    tracing::warn!(%error, "nothing is remembered: a fact can't be read");
                    Vec::new()
                }
            },
            Err(error) => {
                tracing::warn!(%error, "nothing is remembered: the search failed");
                Vec::new()
            }
        }
    }

    /// Returns the hits in the order that the reranker gives them, if there is one; those that the history shows
    /// anyway come last.
    fn ranked_again(&self, hits: Vec<Hit>, from: TurnSeq) -> Vec<Hit> {
        let Some(reranking) = self.reranking else { return hits };
        let (mut hits, shown): (Vec<_>, Vec<_>) =
            hits.into_iter().partition(|hit| self.query.hides(from, hit));
        rerank(&mut hits, self.query.text, reranking);
        hits.extend(shown);
        hits
    }
}

impl Query<'_> {
    /// Returns whether a history that shows the turns from `from` on doesn't show a hit.
    fn hides(&self, from: TurnSeq, hit: &Hit) -> bool {
        let here = hit.session.as_ref() == Some(self.session);
        !here || hit.turn.is_none_or(|turn| turn < from)
    }
}

/// Returns whether a hit is worth a block for a message that asks something, or doesn't.
fn is_likely(hit: &Hit, asks: bool) -> bool {
    let mut parts = NAMES.iter().zip(hit.parts);
    let has_words = parts.any(|(name, part)| matches!(*name, "words" | "near") && part != 0.0);
    let least = match (has_words, asks) {
        (false, _) => LIKELY_BY_MEANING,
        (true, true) => LIKELY_TO_ANSWER,
        (true, false) => LIKELY,
    };
    hit.relevance >= least
}

/// Returns a hit's relevance per byte, so that of equally likely hits the shorter come first.
fn worth(hit: &Hit) -> f32 {
    hit.relevance / (hit.text.len() + HEAD_BYTES) as f32
}

/// The least relevance of the best hit, in the prompt already or not, else there is no block: it
/// costs more of the window, and of the time to the first word, than it is worth, so small talk
/// remembers nothing.
const LIKELY: f32 = 0.05;
/// [`LIKELY`] for a message with a question mark, which is more likely to need an answer. Of LoCoMo's
/// questions, which all have one, .995 have such a hit in their own conversation and .85 in another one
/// (`garret-bench`'s `locomo --calibrate`); with the floor of other messages it would be .976 and .62,
/// without an embedder .963 and .60.
const LIKELY_TO_ANSWER: f32 = 0.03;
/// [`LIKELY`] for a hit that shares no word with the message: its meaning alone makes it less likely
/// than words do. Of twenty notes' answers the least likely has .029; of nonsense and questions about
/// other matters the likeliest .025.
const LIKELY_BY_MEANING: f32 = 0.027;
/// The least relevance of every hit: all but one in some hundred of the answers behind the first are
/// (`garret-bench`'s `context`), which in a large store fill the block.
const LEAST: f32 = 0.001;
/// Hits that stand first whatever their length, as all that a reranker has read do.
const FIRST: usize = 10;
/// Bytes that stand beside a hit's text, about.
const HEAD_BYTES: usize = 50;
/// Most bytes of a message, of which the part that answers is shown.
const LONGEST: usize = 1_600;
/// Most messages that are looked at; far more than fit into a block.
const MAX_HITS: usize = 160;
/// Question marks of most scripts.
const QUESTION_MARKS: [char; 3] = ['?', '\u{61f}', '\u{ff1f}'];
/// Tokens that a block may have more where it meets the user's words.
const SEAM: u32 = 4;
