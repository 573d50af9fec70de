//! What makes a unit an answer, and how much each of it counts.

/// Properties of a unit for one query, in the order of [`NAMES`].
pub type Features = [f32; FEATURES];

/// Number of features.
pub const FEATURES: usize = NAMES.len();

/// Names of the features. A *share* is the BM25 of a unit with its date and speaker, relative to
/// the
/// best in the search.
///
/// - `words`: the square of the unit's share
/// - `before`, `before2`, `after`: shares of the units one and two before and one after
/// - `answers`: share of the unit before, when that is a question
/// - `session`: BM25 of the session's whole day as one document, relative to the best such day
/// - `near`: how much of the query stands in the unit or close by: each word weighs what it tells
///   (its inverse document frequency) and counts in full in the unit, .7 in a neighbour, .49 and
///   .34 two and three units away
/// - `length`: logarithm of one more than the terms in the unit (at most 40), a quarter
/// - `question`: the unit ends with a question mark
/// - `when`: the query asks for a time and the unit tells one
/// - `date`: the unit was said on the day, or in the month or year, that the query names
/// - `speaker`: the unit is by the one speaker whom the query names
/// - `entity`: how much of what the query names (people, places, things) a fact is about or mentions:
///   words with a capital where no sentence begins, and names of speakers and of what facts are about,
///   however they are written; not months and days. Always 0 for messages: with it, fitted, LoCoMo's
///   were found no better without vectors (R@10 .8335 against .8323, R@5 .7578 against .7584, MRR .6426
///   against .6430), since `near` and `speaker` know as much
/// - `elsewhere`: what share of that (people, places, things) is spoken of, or speaks, on the day of
///   another unit that could answer, and not on the unit's own day; for a fact, not in itself. It tells
///   conversations apart: within one of LoCoMo's it is nearly always 0
///
/// With vectors:
///
/// - `meaning`: cosine of the unit's vector and the query's, less the mean of all units, in
///   quarters of their standard deviation
/// - `agree`: `meaning` times `near`, which counts against a unit: each makes the other less needed
/// - `meaning_before`: `meaning` of the unit before
/// - `meaning_near`: the greatest `meaning` of the three units on either side, at least 0
pub const NAMES: [&str; 18] = [
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
    "entity",
    "elsewhere",
    "meaning",
    "agree",
    "meaning_before",
    "meaning_near",
];

/// The number of of the features are known without vectors: the first ones.
pub const LEXICAL: usize = 14;

/// Weights of the features without vectors:
/// `cargo run --release -p garret-bench -- locomo --data DIR` fits them. `entity` isn't fitted, since no
/// data at hand has both questions and facts: being about whom a question names counts as being by them.
pub const WEIGHTS: Features = [
    1.45, -0.35, 1.35, 0.4, 2.3, 2.3, 6.0, 3.05, -1.05, 2.15, 1.6, 1.15, 1.15, -2.7, 0.0, 0.0, 0.0,
    0.0,
];

/// Weights of the features with vectors: `... locomo --data DIR --embedder GGUF` fits them.
pub const WEIGHTS_WITH_VECTORS: Features = [
    0.75, -1.3, 0.7, 0.0, 2.15, 1.6, 6.65, 2.75, -1.05, 2.1, 2.4, 1.15, 1.15, -2.0, 3.65, -3.0,
    0.7, 0.9,
];

/// The sum of what `features` count by `weights`.
pub fn blend(features: &Features, weights: &Features) -> f32 {
    features.iter().zip(weights).map(|(feature, weight)| feature * weight).sum()
}

/// From the sum of a unit's features to how likely it answers.
///
/// The same sum means less where there is more to choose from, since the best of many is high by
/// chance, and less where much of the query is found, or a speaker is named: a question whose words
/// nobody used has low sums only, its answer's too. Fitted (`... locomo --data DIR --calibrate`) to
/// questions asked of their own conversation and of another one, of 20 units, 60, 200 or all, with
/// and without the names in them and, where there are vectors, with all their telling words made
/// unknown as well.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    /// The sum at which one unit in two answers.
    middle: f32,
    width: f32,
}

impl Scale {
    /// In an index of `units`, for a query whose features are nowhere greater than `most`.
    pub(crate) fn new(with_vectors: bool, units: usize, most: &Features) -> Self {
        let by = if with_vectors { CALIBRATION_WITH_VECTORS } else { CALIBRATION };
        let units = units.clamp(FITTED_FROM, FITTED_TO) as f32;
        let words = by.with_words * most[NEAR].min(1.0);
        let speaker = by.with_speaker * most[SPEAKER];
        Self { middle: by.middle + by.per_e_fold * units.ln() + words + speaker, width: by.width }
    }

    /// Says how likely a unit with this sum answers, 0 to 1.
    pub(crate) fn relevance(self, sum: f32) -> f32 {
        1.0 / (1.0 + ((self.middle - sum) / self.width).exp())
    }
}

/// The likelihood that a unit answers whose features come to a sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// The sum at which it is one in two, less the next three.
    pub middle: f32,
    /// Increase of that for each 2.72 times as many units.
    pub per_e_fold: f32,
    /// Increase where all of the query is found close together; see `near` of [`NAMES`].
    pub with_words: f32,
    /// Increase where the query names one who speaks.
    pub with_speaker: f32,
    /// The increase that makes the odds 2.72 times as good.
    pub width: f32,
}

/// Without vectors.
pub const CALIBRATION: Calibration =
    Calibration { middle: 9.45, per_e_fold: 0.4, with_words: 0.5, with_speaker: 1.25, width: 1.5 };
/// With vectors.
pub const CALIBRATION_WITH_VECTORS: Calibration =
    Calibration { middle: 7.05, per_e_fold: 0.8, with_words: 2.7, with_speaker: 0.7, width: 1.6 };

/// The number of units the calibration has seen; fewer or more count as so many.
const FITTED_FROM: usize = 20;
const FITTED_TO: usize = 700;

/// The place where even the best is less likely to answer than that, nothing is found. In
/// `... locomo --calibrate` less than one in a hundred of the questions that their own conversation
/// answers find nothing for that.
pub const UNLIKELY: f32 = 0.03;

/// The same with vectors, which find what shares no word with a question: that is always the less
/// likely the less it means, but rarely as little as that.
pub const UNLIKELY_WITH_VECTORS: f32 = 0.01;

/// In fewer units than that, nothing is held unlikely: it isn't known yet what is usual there.
pub(crate) const USUAL: usize = FITTED_FROM;

/// The places of `near` and `speaker` among the features.
const NEAR: usize = 6;
const SPEAKER: usize = 11;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_where_the_scale_looks_for_them() {
        assert_eq!((NAMES[NEAR], NAMES[SPEAKER]), ("near", "speaker"));
    }

    #[test]
    fn a_sum_means_less_among_more_units_and_more_where_no_word_is_found() {
        for with_vectors in [false, true] {
            let likely = |units, near, speaker| {
                let mut most = Features::default();
                (most[NEAR], most[SPEAKER]) = (near, speaker);
                Scale::new(with_vectors, units, &most).relevance(11.0)
            };
            assert!(likely(20, 0.5, 0.0) > likely(200, 0.5, 0.0));
            assert!(likely(20, 0.0, 0.0) > likely(20, 0.5, 0.0));
            assert!(likely(20, 0.5, 0.0) > likely(20, 0.5, 1.0));
            // Beyond what was seen it stays as it is.
            assert_eq!(likely(2, 0.5, 0.0), likely(20, 0.5, 0.0));
            assert_eq!(likely(1_000_000, 7.0, 0.0), likely(5_000, 1.0, 0.0));
        }
    }
}
