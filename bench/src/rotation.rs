//! `rotation`: learns the basis in which the first dimensions of an embedder's vectors say most.
//!
//! Texts come from a JSON Lines file with a `text` in each line; every fifth is held back. What is
//! printed is how many of the exact ten nearest of a held-back text, among all held-back ones, the
//! two-stage search finds, beside the first dimensions as they are.

use std::collections::HashSet;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use garret_core::medium::Medium;
use garret_hal::kernels;
use garret_hal::media::RamMedium;
use garret_storage::vectors::{Rotation, Side, Spec, UnitKey, VectorStore};
use serde::Deserialize;

use crate::vectors::Vectors;

#[derive(Args)]
pub(crate) struct Options {
    /// Embedder whose vectors are to be turned
    #[arg(long, value_name = "GGUF")]
    embedder: PathBuf,
    /// Diverse texts, at least 2,000: JSON Lines with a `text` each
    #[arg(long, value_name = "FILE")]
    texts: PathBuf,
    /// Keep the texts' vectors in this file between runs
    #[arg(long, value_name = "FILE")]
    vectors: Option<PathBuf>,
    /// Dimensions to keep
    #[arg(long, value_name = "N", default_value_t = 128)]
    dims: usize,
    /// File for the rotation
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Line {
    text: String,
}

/// Learns, prints what it is worth, and writes the rotation where it is asked for.
pub(crate) fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let texts = texts(&options.texts)?;
    let all = texts.iter().map(String::as_str);
    let vectors = Vectors::of(&options.embedder, options.vectors.as_ref(), all)?;
    let mut sample = Vec::new();
    let mut held_back = Vec::new();
    for (number, text) in texts.iter().enumerate() {
        let Some(vector) = vectors.of_text(text) else { continue };
        if number % 5 == 4 { &mut held_back } else { &mut sample }.push(vector.to_vec());
    }
    if sample.len() < LEAST {
        let found = sample.len();
        return Err(format!("{found} texts to learn from, at least {LEAST} are needed").into());
    }
    let learned = Rotation::learn(&sample, options.dims).ok_or("the vectors aren't usable")?;
    let prefix = Rotation::prefix(learned.dims(), options.dims);
    println!("learned from {} texts, tried with {} others", sample.len(), held_back.len());
    for (name, rotation) in [("learned", &learned), ("first dimensions", &prefix)] {
        for candidates in [20, 50, 100] {
            let found = recall(&held_back, rotation, candidates)?;
            println!("recall@10 {found:.4}, {candidates:3} candidates, {name}");
        }
    }
    if let Some(out) = &options.out {
        fs::write(out, learned.to_bytes())?;
    }
    Ok(())
}

fn texts(path: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let lines = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut seen = HashSet::new();
    let mut texts = Vec::new();
    for (line, number) in lines.lines().zip(1..) {
        let Line { text } = serde_json::from_str(line)
            .map_err(|error| format!("{}, line {number}: {error}", path.display()))?;
        if seen.insert(text.clone()) {
            texts.push(text);
        }
    }
    Ok(texts)
}

/// Returns the share of the exact ten nearest that a search finds with a close look at
/// `candidates`.
fn recall(
    rows: &[Vec<f32>],
    rotation: &Rotation,
    candidates: usize,
) -> Result<f64, Box<dyn Error>> {
    let spec =
        Spec { fingerprint: [1; 32], dims: rotation.dims(), rotation: Some(rotation.clone()) };
    let [coarse, whole] = [(); 2].map(|()| Arc::new(RamMedium::new()) as Arc<dyn Medium>);
    let files = move |side, _| {
        Ok(Some(match side {
            Side::Coarse => coarse.clone(),
            Side::Whole => whole.clone(),
        }))
    };
    let mut store = VectorStore::open(files, kernels::detect(), Some(spec))?;
    let units: Vec<_> =
        (0..).map(|id| UnitKey::Fact { id }).zip(rows.iter().map(Vec::as_slice)).collect();
    store.insert(&units)?;
    let mut found = 0;
    let mut wanted = 0;
    for query in rows {
        let exact = store.search_among(query, K, rows.len(), &|_| true)?;
        let near = store.search_among(query, K, candidates, &|_| true)?;
        wanted += exact.len();
        found += exact.iter().filter(|hit| near.iter().any(|other| other.key == hit.key)).count();
    }
    Ok(f64::from(found as u32) / f64::from(wanted.max(1) as u32))
}

/// Fewest texts to learn from.
const LEAST: usize = 2_000;
/// Nearest that are looked for.
const K: usize = 10;
