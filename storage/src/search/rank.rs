//! What makes a unit an answer, and how much each of it counts.

/// What is known about a unit for one query, in the order of [`NAMES`].
pub type Features = [f32; FEATURES];

/// Number of features.
pub const FEATURES: usize = NAMES.len();

/// What each feature is. A *share* is the BM25 of a unit with its date and speaker, relative to the
/// best in the search.
///
/// - `words`: the square of the unit's share
/// - `before`, `before2`, `after`: shares of the units one and two before and one after
/// - `answers`: share of the unit before, when that is a question
/// - `session`: BM25 of the whole session as one document, relative to the best session
/// - `near`: how much of the query stands in the unit or close by: each word weighs what it tells
///   (its inverse document frequency) and counts in full in the unit, .7 in a neighbour, .49 and
///   .34 two and three units away
/// - `length`: logarithm of one more than the terms in the unit (at most 40), a quarter
/// - `question`: the unit ends with a question mark
/// - `when`: the query asks for a time and the unit tells one
/// - `date`: the unit was said on the day, or in the month or year, that the query names
/// - `speaker`: the unit is by the one speaker whom the query names
///
/// With vectors:
///
/// - `meaning`: cosine of the unit's vector and the query's, less the mean of all units, in
///   quarters of their standard deviation
/// - `agree`: `meaning` times `near`, which counts against a unit: each makes the other less needed
/// - `meaning_before`: `meaning` of the unit before
/// - `meaning_near`: the greatest `meaning` of the three units on either side, at least 0
pub const NAMES: [&str; 16] = [
    "words",
    "before",
    "before2",
    "after",
    "answers",
    "session",
    "near",
    "length",
    "question",
    "when",
    "date",
    "speaker",
    "meaning",
    "agree",
    "meaning_before",
    "meaning_near",
];

/// How many of the features are known without vectors: the first ones.
pub const LEXICAL: usize = 12;

/// What each feature counts without vectors:
/// `cargo run --release -p garret-bench -- locomo --data DIR` fits them.
pub const WEIGHTS: Features =
    [1.45, -0.35, 1.35, 0.4, 2.3, 2.3, 6.0, 3.05, -1.05, 2.15, 1.6, 1.15, 0.0, 0.0, 0.0, 0.0];

/// What each feature counts with vectors: `... locomo --data DIR --embedder GGUF` fits them.
pub const WEIGHTS_WITH_VECTORS: Features =
    [0.75, -1.3, 0.7, 0.0, 2.15, 1.6, 6.65, 2.75, -1.05, 2.1, 2.4, 1.15, 3.65, -3.0, 0.7, 0.9];

/// The sum of what `features` count by `weights`.
pub fn blend(features: &Features, weights: &Features) -> f32 {
    features.iter().zip(weights).map(|(feature, weight)| feature * weight).sum()
}

/// How likely a unit answers whose features come to `sum`, 0 to 1. Calibrated on the same
/// questions: each asked of its own conversation, where some units answer, and of another one,
/// where none does.
pub(super) fn relevance(sum: f32, with_vectors: bool) -> f32 {
    let (middle, width) = if with_vectors { WITH_VECTORS } else { WITHOUT };
    1.0 / (1.0 + ((middle - sum) / width).exp())
}

/// The sum at which one unit in two answers, and how steeply that changes.
const WITHOUT: (f32, f32) = (14.3, 1.35);
const WITH_VECTORS: (f32, f32) = (15.0, 1.35);

/// Where even the best is less likely to answer than that, nothing is found. Of the questions
/// whose conversation answers them, one in a thousand finds nothing for that; of those asked of
/// another conversation one in six.
pub const UNLIKELY: f32 = 0.005;

/// The same with vectors, which find what shares no word with the question: so low that one that
/// is asked of another conversation finds nothing only where nothing is close either.
pub const UNLIKELY_WITH_VECTORS: f32 = 0.001;

/// In fewer units than that, nothing is held unlikely: it isn't known yet what is usual there.
pub(super) const USUAL: usize = 200;
