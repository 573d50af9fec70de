//! The same questions asked of what people use today, in the same words.

use std::error::Error;
use std::path::Path;

use serde::Serialize;

use super::data::{Question, Turn};
use super::{KEPT, Options, print};
use crate::lines;
use crate::peers::{Figures, LOCOMO_FTS5, LOCOMO_LEAN_MEMORY, LOCOMO_MEM0, Peers};
use crate::vectors::Vectors;

/// A turn as a peer is told it.
#[derive(Serialize)]
struct PeerTurn {
    conv: String,
    speaker: String,
    at_ms: i64,
    text: String,
}

/// A question as a peer is asked it.
#[derive(Serialize)]
struct PeerQuestion {
    conv: String,
    text: String,
}

/// Asks each peer and prints how often it finds the evidence. Those that rank by meaning get the
/// vectors that the embedder makes of the very texts; without one they are left out.
pub(super) fn run(
    options: &Options,
    turns: &[Turn],
    questions: &[Question],
) -> Result<(), Box<dyn Error>> {
    let peers = Peers::prepare();
    let folder = tempfile::tempdir()?;
    let file = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let history = file("history");
    let asked = file("questions");
    let k = KEPT.to_string();
    let told: Vec<PeerTurn> = turns.iter().map(told).collect::<Result<_, _>>()?;
    lines::write(Path::new(&history), &told)?;
    let ask = |one: &Question| PeerQuestion { conv: one.conv.clone(), text: one.question.clone() };
    lines::write(Path::new(&asked), questions.iter().map(ask))?;
    let mut all = vec![peers.run(LOCOMO_FTS5, &[&history, &asked, &k])];
    if let Some(embedder) = &options.embedder {
        let texts = told.iter().map(|told| &told.text);
        let texts = texts.chain(questions.iter().map(|question| &question.question));
        let texts: Vec<&str> = texts.map(String::as_str).collect();
        let vectors = file("vectors");
        let dims = embed(options, embedder, &texts)?;
        std::fs::write(&vectors, &dims.1)?;
        for peer in [LOCOMO_LEAN_MEMORY, LOCOMO_MEM0] {
            all.push(peers.run(peer, &[&history, &asked, &k, &vectors, &dims.0]));
        }
    } else {
        println!("  (left out: lean-memory and mem0, which need --embedder)");
    }
    for measured in all.into_iter().flatten() {
        report(&measured, turns, questions)?;
    }
    Ok(())
}

/// A turn with its day and its speaker, as Garret indexes it.
fn told(turn: &Turn) -> Result<PeerTurn, Box<dyn Error>> {
    let day: jiff::civil::DateTime = turn.timestamp.parse()?;
    Ok(PeerTurn {
        conv: turn.conv.clone(),
        speaker: turn.speaker.clone(),
        at_ms: turn.at_ms()?,
        text: format!("[{}] {}: {}", day.strftime("%-d %B %Y"), turn.speaker, turn.whole()),
    })
}

/// The numbers of a vector, and all vectors as little-endian f32.
fn embed(
    options: &Options,
    embedder: &Path,
    texts: &[&str],
) -> Result<(String, Vec<u8>), Box<dyn Error>> {
    let vectors = Vectors::of(embedder, options.vectors.as_ref(), texts.iter().copied())?;
    let mut bytes = Vec::new();
    for text in texts {
        let vector = vectors.of_text(text).ok_or("a text has no vector")?;
        bytes.extend(vector.iter().flat_map(|number| number.to_le_bytes()));
    }
    Ok(((bytes.len() / 4 / texts.len().max(1)).to_string(), bytes))
}

fn report(
    measured: &Figures,
    turns: &[Turn],
    questions: &[Question],
) -> Result<(), Box<dyn Error>> {
    if measured.ids.len() != questions.len() {
        return Err(format!("{} answered {} questions", measured.name(), measured.ids.len()).into());
    }
    let turn = |id: &i64| usize::try_from(*id).ok().and_then(|id| turns.get(id));
    let found = questions.iter().zip(&measured.ids).map(|(question, ids)| {
        (question, ids.iter().filter_map(turn).map(|turn| turn.dia_id.as_str()).collect())
    });
    print(&measured.name(), found);
    Ok(())
}
