//! Fits the weights of the ranking to questions whose answers are known.
//!
//! The loss of a question is the mean, over its answers, of the negative logarithm of the share
//! that an answer has in the softmax over itself and all that is no answer. It is convex; Newton's
//! method finds its minimum, the same one in every run.

use garret_storage::search::{FEATURES, Features, blend};

/// One question: what could answer it, and which of that does.
pub(crate) struct Example {
    pub(crate) candidates: Vec<Features>,
    /// An entry for each candidate: true where it answers.
    pub(crate) is_answer: Vec<bool>,
}

/// The weights with the least loss.
pub(crate) fn fit<'a>(examples: impl Iterator<Item = &'a Example> + Clone) -> Features {
    let mut weights = [0.0; FEATURES];
    for _ in 0..STEPS {
        let mut shape = Shape::default();
        let questions: u32 = examples.clone().map(|one| shape.add(one, &weights)).sum();
        let count = f64::from(questions.max(1));
        for (feature, weight) in weights.iter().enumerate() {
            shape.slope[feature] = shape.slope[feature] / count + RIDGE * f64::from(*weight);
            shape.bend[feature].iter_mut().for_each(|bend| *bend /= count);
            shape.bend[feature][feature] += RIDGE;
        }
        let step = solve(shape.slope, shape.bend);
        let longest = step.iter().map(|step| step.abs()).fold(0.0, f64::max);
        let damped = (LONGEST_STEP / longest.max(LONGEST_STEP)).min(1.0);
        weights.iter_mut().zip(step).for_each(|(weight, step)| *weight -= (damped * step) as f32);
        if longest < SETTLED {
            break;
        }
    }
    weights
}

/// Something that happened or didn't.
pub(crate) struct Case<const N: usize> {
    /// The numbers that its likelihood depends on.
    pub(crate) known: [f64; N],
    pub(crate) happened: bool,
}

/// The weights with which the logistic function of the weighted sum is the likeliest.
pub(crate) fn logistic<const N: usize>(cases: &[Case<N>]) -> [f64; N] {
    let mut weights = [0.0; N];
    for _ in 0..STEPS {
        let mut slope = weights.map(|weight| RIDGE * weight);
        let mut bend = [[0.0; N]; N];
        (0..N).for_each(|i| bend[i][i] = RIDGE);
        for Case { known, happened } in cases {
            let sum: f64 = known.iter().zip(weights).map(|(x, weight)| x * weight).sum();
            let likely = 1.0 / (1.0 + (-sum).exp());
            let off = likely - f64::from(u8::from(*happened));
            for i in 0..N {
                slope[i] += off * known[i];
                (0..N).for_each(|j| bend[i][j] += likely * (1.0 - likely) * known[i] * known[j]);
            }
        }
        let step = solve(slope, bend);
        weights.iter_mut().zip(step).for_each(|(weight, step)| *weight -= step);
        if step.iter().all(|step| step.abs() < 1e-6) {
            break;
        }
    }
    weights
}

const STEPS: usize = 30;
const LONGEST_STEP: f64 = 4.0;
/// A shorter step isn't worth another.
const SETTLED: f64 = 0.005;
/// Pull towards zero.
const RIDGE: f64 = 1e-4;

/// The loss around some weights.
#[derive(Default)]
struct Shape {
    /// First derivatives.
    slope: [f64; FEATURES],
    /// Second derivatives.
    bend: [[f64; FEATURES]; FEATURES],
}

impl Shape {
    /// Adds one question; gives the number of questions, 0 where there is no answer to be found.
    fn add(&mut self, example: &Example, weights: &Features) -> u32 {
        let answers = example.is_answer.iter().filter(|is| **is).count();
        if answers == 0 {
            return 0;
        }
        let scores: Vec<f32> = example.candidates.iter().map(|one| blend(one, weights)).collect();
        let highest = scores.iter().copied().fold(f32::MIN, f32::max);
        let mut others = Moments::default();
        let all = || example.candidates.iter().zip(&scores).zip(&example.is_answer);
        for ((features, score), _) in all().filter(|(_, is_answer)| !**is_answer) {
            others.add(features, f64::from((score - highest).exp()));
        }
        for ((features, score), _) in all().filter(|(_, is_answer)| **is_answer) {
            self.add_answer(&others, features, f64::from((score - highest).exp()), answers as f64);
        }
        1
    }

    /// Adds what one of `answers` answers has to it.
    fn add_answer(&mut self, others: &Moments, answer: &Features, share: f64, answers: f64) {
        let total = others.total + share;
        let mean: [f64; FEATURES] = std::array::from_fn(|feature| {
            (others.first[feature] + share * f64::from(answer[feature])) / total
        });
        for (i, mean_i) in mean.iter().enumerate() {
            self.slope[i] += (mean_i - f64::from(answer[i])) / answers;
            for (j, mean_j) in mean.iter().enumerate() {
                let low = i.min(j);
                let high = i.max(j);
                let product = share * f64::from(answer[i]) * f64::from(answer[j]);
                let square = (others.second[low][high] + product) / total;
                self.bend[i][j] += (square - mean_i * mean_j) / answers;
            }
        }
    }
}

/// The step that a parabola with these first and second derivatives has to its lowest point, by
/// Gauss's elimination: the second derivatives are symmetric and positive, so no row needs to be
/// exchanged.
fn solve<const N: usize>(mut slope: [f64; N], mut bend: [[f64; N]; N]) -> [f64; N] {
    for pivot in 0..N {
        let row = bend[pivot];
        let value = slope[pivot];
        for other in (0..N).filter(|other| *other != pivot) {
            let factor = bend[other][pivot] / row[pivot];
            bend[other].iter_mut().zip(row).for_each(|(a, b)| *a -= factor * b);
            slope[other] -= factor * value;
        }
    }
    std::array::from_fn(|i| slope[i] / bend[i][i])
}

/// Weighted sums over candidates.
#[derive(Default)]
struct Moments {
    total: f64,
    first: [f64; FEATURES],
    /// Products of pairs, the upper half.
    second: [[f64; FEATURES]; FEATURES],
}

impl Moments {
    fn add(&mut self, features: &Features, share: f64) {
        self.total += share;
        let features = features.map(f64::from);
        for (i, one) in features.iter().enumerate() {
            self.first[i] += share * one;
            let row = self.second[i].iter_mut().zip(&features).skip(i);
            row.for_each(|(sum, other)| *sum += share * one * other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Questions whose answers are drawn by known weights lead back to these weights.
    #[test]
    fn weights_that_made_the_answers_are_found() {
        let mut seed = 1_u64;
        let mut random = || {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 40) as f32 / (1_u64 << 24) as f32
        };
        let mut weights = [0.0; FEATURES];
        (weights[0], weights[3], weights[5]) = (3.0, -2.0, 1.0);
        let examples: Vec<Example> = (0..3000)
            .map(|_| {
                let mut candidate = || std::array::from_fn(|_| random());
                let candidates: Vec<Features> = (0..20).map(|_| candidate()).collect();
                let shares: Vec<f32> =
                    candidates.iter().map(|one| blend(one, &weights).exp()).collect();
                let mut left = random() * shares.iter().sum::<f32>();
                let answer = shares.iter().position(|share| {
                    left -= share;
                    left <= 0.0
                });
                let is_answer = (0..20).map(|one| Some(one) == answer).collect();
                Example { candidates, is_answer }
            })
            .collect();
        let found = fit(examples.iter());
        for (found, weight) in found.iter().zip(weights) {
            assert!((found - weight).abs() < 0.35, "{found} for {weight}");
        }
    }

    #[test]
    fn the_odds_that_decided_are_found_again() {
        let mut seed = 3_u64;
        let mut random = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as f64 / (1_u64 << 31) as f64
        };
        let cases: Vec<Case<2>> = (0..4_000)
            .map(|_| {
                let x = random() * 8.0 - 4.0;
                let likely = 1.0 / (1.0 + (1.0 - 1.5 * x).exp());
                Case { known: [x, 1.0], happened: random() < likely }
            })
            .collect();
        let [slope, offset] = logistic(&cases);
        assert!((slope - 1.5).abs() < 0.2 && (offset + 1.0).abs() < 0.2, "{slope} {offset}");
    }
}
