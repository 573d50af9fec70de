//! The calibration of likelihoods: how likely a hit is an answer.
//!
//! Every question is asked of its own conversation and of another one, of so many turns in a row as
//! [`SIZES`] says (those of its own around its evidence): as it is, with names that nobody there
//! has and, where there are vectors, with all its telling words made unknown, so that it is found
//! by its meaning alone. Whether one of the first [`LOOKED_AT`] turns answers is then a logistic
//! function of the sum of its features, the logarithm of the number of turns, how much of the
//! question is found close together, and whether it names a speaker.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;

use garret_storage::search::{
    Ask, CALIBRATION, CALIBRATION_WITH_VECTORS, Calibration, Index, NAMES, Speaker, Unit, WEIGHTS,
    WEIGHTS_WITH_VECTORS, blend,
};

use super::History;
use super::data::Question;
use crate::fit::{Case, logistic};
use crate::vectors::Vectors;

/// Turns that a question is asked of; all where the conversation has fewer.
const SIZES: [usize; 4] = [20, 60, 200, 1_000];
/// The best turns of a question, which the calibration is fitted to.
const LOOKED_AT: usize = 5;
const KNOWN: [KnownParts; 4] = [
    KnownParts { words: true, names: true },
    KnownParts { words: true, names: false },
    KnownParts { words: false, names: true },
    KnownParts { words: false, names: false },
];
/// Likelihoods that it is told of how many questions find anything above them.
const FLOORS: [f32; 5] = [0.01, 0.02, 0.03, 0.05, 0.1];

/// The parts of a question that are left as they are.
#[derive(Clone, Copy, PartialEq, Eq)]
struct KnownParts {
    words: bool,
    names: bool,
}

/// A question asked of some turns.
struct AskedQuestion<'a> {
    question: &'a Question,
    turns: usize,
    own: bool,
    known: KnownParts,
    /// The share of the question's words that are found close together.
    near: f32,
    /// 1 where the question names a speaker.
    speaker: f32,
    /// Sums of the best, the best first, and whether they answer.
    best: Vec<(f32, bool)>,
}

impl AskedQuestion<'_> {
    /// Returns the numbers that likelihood depends on: the sum, one, the logarithm of the turns,
    /// `near`, `speaker`.
    fn case(&self, sum: f32, answers: bool) -> Case<5> {
        let known = [sum, 1.0, (self.turns as f32).ln(), self.near, self.speaker];
        Case { known: known.map(f64::from), happened: answers }
    }
}

/// Fits a calibration and prints it beside the one in the code, and what floors let through.
pub(super) fn run(
    histories: &HashMap<&str, History<'_>>,
    questions: &[Question],
    vectors: Option<&Vectors>,
) -> Result<(), Box<dyn Error>> {
    let in_code = if vectors.is_some() { CALIBRATION_WITH_VECTORS } else { CALIBRATION };
    let ordered: BTreeMap<_, _> = histories.iter().collect();
    let ordered: Vec<_> = ordered.into_values().collect();
    let mut asked = Vec::new();
    for (number, question) in questions.iter().enumerate() {
        let (own, others): (Vec<_>, Vec<_>) =
            ordered.iter().copied().partition(|history| is_own(history, question));
        let other = others.get(number % others.len().max(1)).copied();
        for history in own.into_iter().chain(other) {
            for size in SIZES {
                let some = Part::new(history, question, number, size)?;
                for known in KNOWN.into_iter().filter(|known| known.words || vectors.is_some()) {
                    asked.push(some.ask(question, vectors, known));
                }
            }
        }
    }
    println!("calibration on {} searches, half of them of another conversation", asked.len());
    for (name, one) in [("fitted on all", fit(asked.iter())), ("in the code", in_code)] {
        let Calibration { middle, per_e_fold, with_words, with_speaker, width } = one;
        println!(
            "{name:>14}  middle {middle:.2} + {per_e_fold:.2} ln(turns) + {with_words:.2} near + \
             {with_speaker:.2} speaker, width {width:.2}"
        );
    }
    report(&asked);
    Ok(())
}

fn is_own(history: &History<'_>, question: &Question) -> bool {
    history.said.first().is_some_and(|turn| turn.conv == question.conv)
}

/// Turns in a row of a conversation, in an index of their own.
struct Part<'a> {
    history: &'a History<'a>,
    from: usize,
    index: Index,
}

impl<'a> Part<'a> {
    /// About `size` turns, the question's evidence among them if it is their own; `number` decides
    /// which.
    fn new(
        history: &'a History<'_>,
        question: &Question,
        number: usize,
        size: usize,
    ) -> Result<Self, Box<dyn Error>> {
        let size = size.min(history.said.len());
        let last = history.said.len() - size;
        let evidence =
            history.said.iter().position(|turn| question.evidence.contains(&turn.dia_id));
        let from = match evidence.filter(|_| is_own(history, question)) {
            Some(at) => at.saturating_sub(number * 7 % size.max(1)).min(last),
            None => number * 131 % (last + 1),
        };
        let mut index = Index::default();
        for (place, turn) in history.said.iter().enumerate().skip(from).take(size) {
            index.add(&Unit {
                session: turn.session,
                turn: place as u64,
                speaker: Speaker::Named(&turn.speaker),
                at_ms: Some(turn.at_ms()?),
                text: &turn.whole(),
            });
        }
        Ok(Self { history, from, index })
    }

    fn ask<'q>(
        &self,
        question: &'q Question,
        vectors: Option<&Vectors>,
        known: KnownParts,
    ) -> AskedQuestion<'q> {
        let texts = self.history.texts.iter().skip(self.from).take(self.index.len());
        let cosines: Option<Vec<f32>> =
            vectors.map(|vectors| texts.map(|text| vectors.cosine(&question.text, text)).collect());
        let text = left(&question.question, known);
        let ask = Ask { cosines: cosines.as_deref(), ..Ask::new(&text, LOOKED_AT) };
        let own = is_own(self.history, question);
        let weights = if vectors.is_some() { &WEIGHTS_WITH_VECTORS } else { &WEIGHTS };
        let mut near = 0.0_f32;
        let mut speaker = 0.0_f32;
        let mut best = Vec::new();
        self.index.features(&ask, &mut |unit| {
            for (name, value) in NAMES.iter().zip(unit.parts) {
                match *name {
                    "near" => near = near.max(value),
                    "speaker" => speaker = speaker.max(value),
                    _ => {}
                }
            }
            let turn = self.history.said.get(unit.turn as usize);
            let answers = turn.is_some_and(|turn| question.evidence.contains(&turn.dia_id));
            best.push((blend(&unit.parts, weights), own && answers));
        });
        best.sort_by(|a, b| b.0.total_cmp(&a.0));
        best.truncate(LOOKED_AT);
        AskedQuestion { question, turns: self.index.len(), own, known, near, speaker, best }
    }
}

/// A question whose telling words, or names, which begin with a capital, are in no text.
fn left(question: &str, known: KnownParts) -> String {
    let words = question.split(' ').enumerate().map(|(at, word)| {
        let name = at > 0 && word.starts_with(char::is_uppercase);
        let short = word.chars().filter(|c| c.is_alphabetic()).count() < 4;
        let asks =
            at == 0 || ["when", "does", "many", "long", "with", "from", "have"].contains(&word);
        let kept = if name { known.names } else { known.words || short || asks };
        if kept { word.to_owned() } else { format!("zq{}", word.to_lowercase()) }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn fit<'a>(asked: impl Iterator<Item = &'a AskedQuestion<'a>>) -> Calibration {
    let cases: Vec<_> = asked
        .flat_map(|one| one.best.iter().map(|(sum, answers)| one.case(*sum, *answers)))
        .collect();
    let [sum, one, turns, near, speaker] = logistic(&cases);
    let part = |weight: f64| (-weight / sum) as f32;
    Calibration {
        middle: part(one),
        per_e_fold: part(turns),
        with_words: part(near),
        with_speaker: part(speaker),
        width: (1.0 / sum) as f32,
    }
}

/// Prints how likely the best turn is by a calibration that was fitted on the other conversations.
fn report(asked: &[AskedQuestion<'_>]) {
    let mut fitted: HashMap<&str, Calibration> = HashMap::new();
    for one in asked {
        let held_out = one.question.conv.as_str();
        fitted
            .entry(held_out)
            .or_insert_with(|| fit(asked.iter().filter(|one| one.question.conv != held_out)));
    }
    let likely = |one: &AskedQuestion<'_>| {
        let best = one.best.first().map_or(f32::NEG_INFINITY, |(sum, _)| *sum);
        let Some(by) = fitted.get(one.question.conv.as_str()) else { return 0.0 };
        let named = by.with_speaker * one.speaker;
        let by_words = by.with_words * one.near + named;
        let middle = by.middle + by.per_e_fold * (one.turns as f32).ln() + by_words;
        1.0 / (1.0 + ((middle - best) / by.width).exp())
    };
    let floors = FLOORS.map(|floor| format!("{floor:>6}")).join(" ");
    println!("  share of questions whose best turn is at least so likely {floors}");
    for (from, size) in [0].into_iter().chain(SIZES).zip(SIZES) {
        for known in KNOWN {
            let some = asked
                .iter()
                .filter(|one| one.turns > from && one.turns <= size && one.known == known);
            let some: Vec<_> = some.map(|one| (one, likely(one))).collect();
            let of = |what: &str, which: &dyn Fn(&AskedQuestion<'_>) -> bool| {
                let some: Vec<f32> =
                    some.iter().filter(|(one, _)| which(one)).map(|(_, likely)| *likely).collect();
                let above = |floor: f32| some.iter().filter(|likely| **likely >= floor).count();
                let shares =
                    FLOORS.map(|floor| format!("{:>6.3}", above(floor) as f64 / some.len() as f64));
                let known = match (known.words, known.names) {
                    (true, true) => "as it is",
                    (true, false) => "no names",
                    (false, true) => "no words",
                    (false, false) => "neither",
                };
                println!("  {size:>5} turns, {known:<9} {what:<36} {}", shares.join(" "));
            };
            if some.is_empty() {
                continue;
            }
            let answered =
                |one: &AskedQuestion<'_>| one.best.first().is_some_and(|(_, answers)| *answers);
            of("own conversation, the best answers", &answered);
            of("own conversation, all", &|one| one.own);
            of("another conversation", &|one| !one.own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_without_its_words_keeps_what_it_asks_for_and_whom_it_names() {
        let question = "When did Ada harvest the honey?";
        let left = |words, names| left(question, KnownParts { words, names });
        assert_eq!(left(true, true), question);
        assert_eq!(left(false, true), "When did Ada zqharvest the zqhoney?");
        assert_eq!(left(true, false), "When did zqada harvest the honey?");
    }
}
