//! What makes a unit an answer, and how much each of it counts.

/// What is known about a unit for one query, in the order of [`NAMES`].
pub type Features = [f32; FEATURES];

/// Number of features.
pub const FEATURES: usize = NAMES.len();

/// What each feature is.
///
/// - `words`: BM25 of the unit with its date and speaker, relative to the best in the search
/// - `best`: the square of that
/// - `before`, `before2`, `after`: `words` of the units one and two before and one after
/// - `around`: `words` of the second to sixth neighbours on both sides, fading
/// - `answers`: `words` of the unit before, when that is a question
/// - `session`: BM25 of the whole session as one document, relative to the best session
/// - `length`: logarithm of one more than the terms in the unit (at most 40), a quarter
/// - `question`: the unit ends with a question mark
/// - `when`: the query asks for a time and the unit tells one
/// - `date`: the unit was said on the day, or in the month or year, that the query names
/// - `speaker`: the unit is by the one speaker whom the query names
/// - `covered`: BM25 of the unit, relative to the most that the query could have anywhere
pub const NAMES: [&str; 14] = [
    "words", "best", "before", "before2", "after", "around", "answers", "session", "length",
    "question", "when", "date", "speaker", "covered",
];

/// What each feature counts: `cargo run --release -p garret-bench -- locomo --data DIR` fits them.
pub const WEIGHTS: Features =
    [2.05, 1.75, 0.55, 1.55, 1.2, 0.45, 2.25, 3.2, 5.0, -1.05, 2.15, 1.55, 1.1, 1.85];

/// The sum of what `features` count by `weights`.
pub fn blend(features: &Features, weights: &Features) -> f32 {
    features.iter().zip(weights).map(|(feature, weight)| feature * weight).sum()
}
