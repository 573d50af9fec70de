//! The first hits of a search in the order that a reranker and the search give them together. The port
//! itself is core's [`Rerank`].
//!
//! A search ranks by features that are cheap to know of every message. A cross-encoder reads the
//! query and a text as one, which is dear, so it is asked of the first hits alone ([`TOP`]). Its order
//! and the search's are then merged by their ranks: what stands at place `r` in one (counted from 1)
//! gets 1 / (10 + `r`) from each, and the greater sum comes first. Ranks need no scale, which differs
//! from model to model, and a hit that the search has high, for what was said around it, isn't lost
//! because it says little by itself. What is behind the first hits stays where it is, and so do all
//! when the reranker fails: that is no reason not to search.
//!
//! ```
//! use garret::rerank::merge;
//!
//! // The second hit answers best, the first one least.
//! assert_eq!(merge(&[0.1, 0.9, 0.5]), [1, 0, 2]);
//! ```
//!
//! # Limits
//!
//! No trained reranker has been measured with it: the weight of both orders, and how many hits are
//! worth reading, are the usual ones of reciprocal rank fusion. A reranker reads the part of a message
//! that a hit shows, without what was said before it; of a query that is longer than it takes, the
//! beginning and the end.

pub use garret_core::rerank::Rerank;
use garret_storage::search::{FACTS, Found, Hit, INFERRED, Kind, Search};
use garret_storage::{FactKind, ReadError, Store};

/// The reranking of a search.
#[derive(Clone, Copy)]
pub struct Reranking<'a> {
    /// The reranker.
    pub by: &'a dyn Rerank,
    /// Number of hits that it reads, the first ones.
    pub top: usize,
    /// Tells, before every few texts, whether to go on; if not, the hits stay as they are.
    pub go_on: &'a dyn Fn() -> bool,
}

impl<'a> Reranking<'a> {
    /// Reads the first [`TOP`] hits to the end.
    pub fn new(by: &'a dyn Rerank) -> Self {
        Self { by, top: TOP, go_on: &|| true }
    }
}

/// Searches `store`, and reranks the hits where that is wanted.
///
/// # Errors
/// Those of [`Store::find`]; a reranker that fails is done without.
pub fn find(
    store: &Store,
    search: &Search<'_>,
    reranking: Option<Reranking<'_>>,
) -> Result<Found, ReadError> {
    let Some(reranking) = reranking else { return store.find(search) };
    let k = search.k.max(reranking.top);
    let mut found = store.find(&Search { k, ..*search })?;
    rerank(&mut found.hits, search.query, reranking);
    keep_shares(&mut found.hits, search.k);
    Ok(found)
}

/// Keeps the first `k` hits, with as many facts among them as a search for so many would have: behind
/// messages that answer, facts give way that are more than their share.
fn keep_shares(hits: &mut Vec<Hit>, k: usize) {
    let is_fact = |hit: &Hit| matches!(hit.kind, Kind::Fact(_));
    let is_inferred = |hit: &Hit| hit.kind == Kind::Fact(FactKind::Derives);
    let messages = hits.iter().filter(|hit| !is_fact(hit)).count();
    let said = hits.iter().filter(|hit| is_fact(hit) && !is_inferred(hit)).count();
    let left = k.saturating_sub(messages);
    let mut facts = k.div_ceil(FACTS).max(left);
    let mut inferred = k.div_ceil(INFERRED).max(left.saturating_sub(said));
    hits.retain(|hit| {
        let fits = !is_fact(hit) || (facts > 0 && (inferred > 0 || !is_inferred(hit)));
        facts -= usize::from(fits && is_fact(hit));
        inferred -= usize::from(fits && is_inferred(hit));
        fits
    });
    hits.truncate(k);
}

/// Brings the first hits into the order that the reranker and the search give them together, and
/// notes its numbers with them.
pub fn rerank(hits: &mut [Hit], query: &str, reranking: Reranking<'_>) {
    let top = reranking.top.min(hits.len());
    let (hits, _) = hits.split_at_mut(top);
    let Some(scores) = scores(hits, query, reranking) else { return };
    for (hit, score) in hits.iter_mut().zip(&scores) {
        hit.rerank = Some(*score);
    }
    let mut places = vec![0; top];
    for (place, hit) in merge(&scores).into_iter().enumerate() {
        places[hit] = place;
    }
    // Each swap brings one hit to its place.
    for at in 0..top {
        while places[at] != at {
            let to = places[at];
            hits.swap(at, to);
            places.swap(at, to);
        }
    }
}

/// Returns the reranker's numbers of the hits; `None` when it fails or isn't to go on.
fn scores(hits: &[Hit], query: &str, reranking: Reranking<'_>) -> Option<Vec<f32>> {
    let mut scores = vec![0.0; hits.len()];
    for (some, scores) in hits.chunks(BATCH).zip(scores.chunks_mut(BATCH)) {
        if !(reranking.go_on)() {
            return None;
        }
        let texts: Vec<_> = some.iter().map(|hit| hit.text.as_str()).collect();
        if let Err(error) = reranking.by.score_into(query, &texts, scores) {
            tracing::warn!(%error, "the hits stay in the order of the search");
            return None;
        }
    }
    scores.iter().all(|score| score.is_finite()).then_some(scores)
}

/// Returns the order of hits that have these numbers, the first hit of the search first: the place of each in
/// the search, the best of all first. Of equals the search's order holds.
pub fn merge(scores: &[f32]) -> Vec<usize> {
    let mut by_score: Vec<usize> = (0..scores.len()).collect();
    by_score.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    let share = |place: usize| 1.0 / (RANKS + place as f64 + 1.0);
    let mut sums: Vec<f64> = (0..scores.len()).map(share).collect();
    for (place, hit) in by_score.into_iter().enumerate() {
        sums[hit] += share(place);
    }
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| sums[*b].total_cmp(&sums[*a]));
    order
}

/// Number of the first hits that are read where nothing else is said.
pub const TOP: usize = 20;
/// The number added to a place: the larger, the less the first places differ from those behind.
const RANKS: f64 = 10.0;
/// Texts of one call of the model; nobody who stops it waits for more than these.
const BATCH: usize = 4;
