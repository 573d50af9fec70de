//! Fits the weights of the ranking to questions whose answers are known.
//!
//! The loss of a question is the mean, over its answers, of the negative logarithm of the share
//! that an answer has in the softmax over itself and all that is no answer. It is convex; Adam
//! from zero finds its minimum in a fixed number of steps, the same one in every run.

use garret_storage::search::{FEATURES, Features, blend};

/// One question: what could answer it, and which of that does.
pub(crate) struct Example {
    pub(crate) candidates: Vec<Features>,
    /// For each candidate.
    pub(crate) is_answer: Vec<bool>,
}

/// The weights with the least loss.
pub(crate) fn fit<'a>(examples: impl Iterator<Item = &'a Example> + Clone) -> Features {
    let mut weights = [0.0; FEATURES];
    let (mut mean, mut square) = ([0.0_f32; FEATURES], [0.0_f32; FEATURES]);
    for step in 1..=STEPS {
        let mut slope = [0.0_f64; FEATURES];
        let mut questions = 0;
        for example in examples.clone() {
            questions += add_slope(example, &weights, &mut slope);
        }
        // Slower towards the end, so that it settles.
        let rate = RATE * (1.0 - step as f32 / (STEPS as f32 + 1.0));
        for (feature, weight) in weights.iter_mut().enumerate() {
            let slope = (slope[feature] / f64::from(questions.max(1))) as f32 + RIDGE * *weight;
            mean[feature] = 0.9 * mean[feature] + 0.1 * slope;
            square[feature] = 0.999 * square[feature] + 0.001 * slope * slope;
            let mean = mean[feature] / (1.0 - 0.9_f32.powi(step));
            let square = square[feature] / (1.0 - 0.999_f32.powi(step));
            *weight -= rate * mean / (square.sqrt() + 1e-8);
        }
    }
    weights
}

const STEPS: i32 = 150;
const RATE: f32 = 0.2;
/// Pull towards zero.
const RIDGE: f32 = 1e-4;

/// Adds the slope of one question's loss; gives the number of questions, 0 where there is no
/// answer to be found.
fn add_slope(example: &Example, weights: &Features, slope: &mut [f64; FEATURES]) -> u32 {
    let answers = example.is_answer.iter().filter(|is| **is).count();
    if answers == 0 {
        return 0;
    }
    let scores: Vec<f32> = example.candidates.iter().map(|one| blend(one, weights)).collect();
    let highest = scores.iter().copied().fold(f32::MIN, f32::max);
    let mut others = 0.0_f32;
    let mut sum = [0.0_f32; FEATURES];
    let all = || example.candidates.iter().zip(&scores).zip(&example.is_answer);
    for ((features, score), _) in all().filter(|(_, is_answer)| !**is_answer) {
        let share = (score - highest).exp();
        others += share;
        sum.iter_mut().zip(features).for_each(|(sum, feature)| *sum += share * feature);
    }
    for ((features, score), _) in all().filter(|(_, is_answer)| **is_answer) {
        let share = (score - highest).exp();
        for (feature, slope) in slope.iter_mut().enumerate() {
            let expected = (sum[feature] + share * features[feature]) / (others + share);
            *slope += f64::from(expected - features[feature]) / answers as f64;
        }
    }
    1
}
