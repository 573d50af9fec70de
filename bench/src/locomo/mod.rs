//! `locomo`: how often search finds the turns that answer a question, in data of LoCoMo's format.
//!
//! The data isn't part of the project (LoCoMo is CC BY-NC 4.0: evaluate, don't ship). A folder
//! holds `locomo_turns.jsonl` (`conv`, `dia_id`, `session`, `timestamp`, `speaker`, `text`,
//! `caption`) and `locomo_questions.jsonl` (`conv`, `id`, `question`, `evidence`). A question's
//! history is its own conversation; the weights that rank it were fitted on the others. With
//! `--peers` others are asked the same.

mod calibrate;
pub(crate) mod data;
mod links;
mod peers;

use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};

use clap::Args;
use garret_language::without_names;
use garret_storage::search::{
    Ask, Features, Index, LEXICAL, NAMES, Speaker, Unit, WEIGHTS, WEIGHTS_WITH_VECTORS, blend,
};
use serde::Serialize;

use data::{Question, Turn};

use crate::fit::{Example, fit};
use crate::lines;
use crate::vectors::Vectors;

#[derive(Args)]
pub(crate) struct Options {
    /// Folder with `locomo_turns.jsonl` and `locomo_questions.jsonl`
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Write what was found, one JSON object for each question: `{"id":...,"ranked":[...]}`
    #[arg(long, value_name = "FILE")]
    run: Option<PathBuf>,
    /// Rank by meaning as well, with this embedder
    #[arg(long, value_name = "GGUF")]
    embedder: Option<PathBuf>,
    /// Keep the vectors in this file, for the next run
    #[arg(long, value_name = "FILE", requires = "embedder")]
    vectors: Option<PathBuf>,
    /// Fit how likely an answer is, too, among as many turns as small and large stores have
    #[arg(long)]
    calibrate: bool,
    /// Store the turns as facts, too, and link each to those beside it
    #[arg(long)]
    links: bool,
    /// Ask peers, too; the first run installs them with pip, which needs a network
    #[arg(long)]
    peers: bool,
}

#[derive(Serialize)]
struct FoundTurns<'a> {
    id: &'a str,
    ranked: Vec<&'a str>,
}

/// A question with everything that could answer it.
struct AskedQuestion<'a> {
    question: &'a Question,
    /// The turn of each candidate.
    turns: Vec<&'a str>,
    example: Example,
}

/// Prints how often the evidence is found.
pub(crate) fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let turns = data::turns(&options.data)?;
    let mut questions = data::questions(&options.data)?;
    for question in &mut questions {
        question.evidence.sort_unstable();
        question.evidence.dedup();
    }
    let mut histories = histories(&turns)?;
    let cache = options.vectors.as_ref();
    let embed = |embedder: &PathBuf| embed(embedder, cache, &mut histories, &mut questions);
    let vectors = options.embedder.as_ref().map(embed).transpose()?;
    let in_code = if options.embedder.is_some() { &WEIGHTS_WITH_VECTORS } else { &WEIGHTS };
    let asked: Vec<_> = questions.iter().map(|question| ask(&histories, question)).collect();
    let mut conversations: Vec<_> = asked.iter().map(|one| &one.question.conv).collect();
    conversations.sort_unstable();
    conversations.dedup();
    let mut fitted = HashMap::new();
    for held_out in &conversations {
        let others = asked.iter().filter(|one| one.question.conv != **held_out);
        fitted.insert(held_out.as_str(), fit(others.map(|one| &one.example)));
    }
    let of_others =
        |one: &AskedQuestion<'_>| fitted.get(one.question.conv.as_str()).unwrap_or(in_code);
    let count = conversations.len();
    println!(
        "{} questions with evidence, {count} conversations, {} turns",
        asked.len(),
        turns.len()
    );
    report("weights fitted on the other conversations", &asked, of_others);
    report("weights in the code", &asked, |_| in_code);
    let all = fit(asked.iter().map(|one| &one.example));
    report("weights fitted on all (not comparable: they have seen the answers)", &asked, |_| &all);
    let known = if options.embedder.is_some() { NAMES.len() } else { LEXICAL };
    for (name, (fitted, code)) in NAMES.iter().zip(all.iter().zip(in_code)).take(known) {
        println!("{name:>14}  fitted on all {fitted:6.2}, in the code {code:6.2}");
    }
    if let Some(path) = &options.run {
        write(path, &asked, of_others)?;
    }
    if options.calibrate {
        calibrate::run(&histories, &questions, vectors.as_ref())?;
    }
    if options.links {
        links::run(&histories, &questions)?;
    }
    if options.peers {
        peers::run(options, &turns, &questions)?;
    }
    Ok(())
}

/// A conversation.
#[derive(Default)]
struct History<'a> {
    index: Index,
    /// Turns by the number of the document.
    said: Vec<&'a Turn>,
    /// The text of each that is embedded.
    texts: Vec<String>,
}

/// Indexes each conversation by itself.
fn histories(turns: &[Turn]) -> Result<HashMap<&str, History<'_>>, Box<dyn Error>> {
    let mut histories: HashMap<&str, History<'_>> = HashMap::new();
    for turn in turns {
        let history = histories.entry(&turn.conv).or_default();
        history.index.add(&Unit {
            session: turn.session,
            turn: history.said.len() as u64,
            speaker: Speaker::Named(&turn.speaker),
            at_ms: Some(turn.at_ms()?),
            text: &turn.whole(),
        });
        history.said.push(turn);
    }
    Ok(histories)
}

/// Embeds turns and questions, all without the names of those who speak.
fn embed(
    embedder: &Path,
    cache: Option<&PathBuf>,
    histories: &mut HashMap<&str, History<'_>>,
    questions: &mut [Question],
) -> Result<Vectors, Box<dyn Error>> {
    for history in histories.values_mut() {
        let mut names: Vec<_> = history.said.iter().map(|turn| &turn.speaker).collect();
        names.sort_unstable();
        names.dedup();
        let texts = history.said.iter().map(|turn| without_names(&turn.whole(), &names));
        history.texts = texts.collect();
        for question in questions.iter_mut() {
            if history.said.first().is_some_and(|turn| turn.conv == question.conv) {
                question.text = without_names(&question.question, &names);
            }
        }
    }
    let texts = histories.values().flat_map(|history| &history.texts);
    let texts = texts.chain(questions.iter().map(|question| &question.text));
    let vectors = Vectors::of(embedder, cache, texts.map(String::as_str))?;
    for question in questions {
        let Some(history) = histories.get(question.conv.as_str()) else { continue };
        let cosines = history.texts.iter().map(|text| vectors.cosine(&question.text, text));
        question.cosines = Some(cosines.collect());
    }
    Ok(vectors)
}

/// Collects the candidates of a question.
fn ask<'a>(histories: &HashMap<&str, History<'a>>, question: &'a Question) -> AskedQuestion<'a> {
    let mut asked = AskedQuestion {
        question,
        turns: Vec::new(),
        example: Example { candidates: Vec::new(), is_answer: Vec::new() },
    };
    let Some(history) = histories.get(question.conv.as_str()) else { return asked };
    let ask = Ask { cosines: question.cosines.as_deref(), ..Ask::new(&question.question, KEPT) };
    history.index.features(&ask, &mut |unit| {
        let Some(turn) = history.said.get(unit.turn as usize) else { return };
        asked.turns.push(&turn.dia_id);
        asked.example.candidates.push(unit.parts);
        asked.example.is_answer.push(question.evidence.contains(&turn.dia_id));
    });
    asked
}

/// Turns of a question that are written to a run.
const KEPT: usize = 100;

/// The turns of a question, the best first.
fn ranked<'a>(asked: &AskedQuestion<'a>, weights: &Features) -> Vec<&'a str> {
    let scores = asked.example.candidates.iter().map(|one| blend(one, weights));
    let mut all: Vec<_> = scores.zip(&asked.turns).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    all.into_iter().map(|(_, turn)| *turn).collect()
}

fn report<'w>(
    title: &str,
    asked: &[AskedQuestion<'_>],
    weights: impl Fn(&AskedQuestion<'_>) -> &'w Features,
) {
    let found = asked.iter().map(|one| (one.question, ranked(one, weights(one))));
    print(title, found);
}

/// Prints how well questions were answered: by turns, the best first.
fn print<'a>(title: &str, found: impl Iterator<Item = (&'a Question, Vec<&'a str>)>) {
    let mut sums = [0.0_f64; 3];
    let mut count = 0_u32;
    for (question, ranked) in found {
        let scores = scores(&question.evidence, &ranked);
        sums.iter_mut().zip(scores).for_each(|(sum, one)| *sum += one);
        count += 1;
    }
    let [ten, five, reciprocal] = sums.map(|sum| sum / f64::from(count.max(1)));
    println!("R@10 {ten:.4}  R@5 {five:.4}  MRR {reciprocal:.4}  {title}");
}

/// Returns the recall among the first ten and five, and the reciprocal of the rank of the first
/// answer.
fn scores(evidence: &[String], ranked: &[&str]) -> [f64; 3] {
    let recall = |k: usize| {
        let found = evidence.iter().filter(|turn| ranked.iter().take(k).any(|one| one == turn));
        found.count() as f64 / evidence.len() as f64
    };
    let first = ranked.iter().position(|turn| evidence.iter().any(|one| one == turn));
    [recall(10), recall(5), first.map_or(0.0, |at| 1.0 / (at as f64 + 1.0))]
}

fn write<'w>(
    path: &Path,
    asked: &[AskedQuestion<'_>],
    weights: impl Fn(&AskedQuestion<'_>) -> &'w Features,
) -> Result<(), Box<dyn Error>> {
    let found = asked.iter().map(|one| {
        let mut ranked = ranked(one, weights(one));
        ranked.truncate(KEPT);
        FoundTurns { id: &one.question.id, ranked }
    });
    lines::write(path, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_scored_by_where_its_evidence_stands() {
        let evidence = ["a", "b"].map(str::to_owned);
        assert_eq!(scores(&evidence, &["x", "a", "y", "z", "w", "b"]), [1.0, 0.5, 0.5]);
        assert_eq!(scores(&evidence, &["x"]), [0.0; 3]);
        let late: Vec<&str> = ["x"; 10].into_iter().chain(["a"]).collect();
        assert_eq!(scores(&evidence, &late), [0.0, 0.0, 1.0 / 11.0]);
    }
}
