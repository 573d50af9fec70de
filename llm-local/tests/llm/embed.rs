//! Texts as vectors, on a real embedder.
use std::fs;
use std::path::Path;

use crate::support::runtime::*;
use garret_core::model::PoolingError;
use garret_llm::{Backend, Embedder, LoadError, PoolingOptions};

fn load(path: &Path) -> Result<Embedder, LoadError> {
    let options = PoolingOptions { threads: 1, ..PoolingOptions::default() };
    Embedder::load(Backend::start().unwrap(), path, options)
}

fn embedder() -> Option<Embedder> {
    Some(load(&find(EMBEDDER)?).expect("embedder"))
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn apart(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn paraphrases_are_closer_than_strangers() {
    let Some(embedder) = embedder() else { return };
    let texts = [
        "The cat sleeps on the warm roof.",
        "A kitten is napping on top of the sunny house.",
        "Interest rates were raised by the central bank.",
        "The bank made borrowing money more expensive.",
    ];
    let vectors = embedder.embed(&texts).unwrap();
    for vector in &vectors {
        assert_eq!(vector.len(), embedder.dimensions());
        assert!((cosine(vector, vector) - 1.0).abs() < 1e-4);
    }
    let between = |a: usize, b: usize| cosine(&vectors[a], &vectors[b]);
    let strangers = [between(0, 2), between(0, 3), between(1, 2), between(1, 3)];
    let closest = strangers.into_iter().fold(f32::MIN, f32::max);
    assert!(between(0, 1) > closest + 0.1 && between(2, 3) > closest + 0.1);
}

#[test]
fn a_batch_gives_what_single_texts_give() {
    let Some(embedder) = embedder() else { return };
    let words = ["garret", "lamp", "river", "letter", "map", "chair"];
    let texts: Vec<String> = (1..40)
        .map(|n| words.iter().cycle().take(n).copied().collect::<Vec<_>>().join(" "))
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let together = embedder.embed(&texts).unwrap();
    assert_eq!(together.len(), texts.len());
    for (text, vector) in texts.iter().zip(&together) {
        let alone = embedder.embed(&[text]).unwrap();
        assert!(apart(&alone[0], vector) < 1e-3, "{text}");
    }
}

#[test]
fn a_text_of_any_length_has_a_vector() {
    let Some(embedder) = embedder() else { return };
    let bees = "Bees live in hives and make honey from the nectar of flowers. ".repeat(40);
    let rocks = "Granite is an igneous rock of quartz, feldspar and mica. ".repeat(40);
    let mixed = format!("{bees}{rocks}");
    let hostile = "<".repeat(2_000);
    let word = "x".repeat(20_000);
    let signs = "\u{1f98a}\u{4e2d}\u{ac00}\u{0301}\u{0}\u{feff} \u{202e}".repeat(120);
    let texts = [bees.as_str(), &rocks, &mixed, &hostile, &word, &signs];
    let vectors = embedder.embed(&texts).unwrap();
    let sentence = embedder.embed(&["How do bees make honey?"]).unwrap();
    assert!(cosine(&sentence[0], &vectors[0]) > cosine(&sentence[0], &vectors[1]) + 0.2);
    // All parts of a long text count, not just the first.
    assert!(cosine(&vectors[2], &vectors[1]) > cosine(&vectors[0], &vectors[1]) + 0.2);
    for vector in &vectors {
        assert!((cosine(vector, vector) - 1.0).abs() < 1e-4);
    }
}

#[test]
fn a_text_without_tokens_is_similar_to_nothing() {
    let Some(embedder) = embedder() else { return };
    let vectors = embedder.embed(&["", "something", " \n\t "]).unwrap();
    assert!(vectors[0].iter().all(|value| *value == 0.0));
    assert_eq!(vectors[0].len(), embedder.dimensions());
    assert_eq!(vectors[2], vectors[0]);
    assert!((cosine(&vectors[1], &vectors[1]) - 1.0).abs() < 1e-4);
    assert_eq!(embedder.embed(&[]).unwrap(), Vec::<Vec<f32>>::new());
}

/// A text that just fills one part isn't cut, one token more is.
#[test]
fn the_edge_of_a_part_is_smooth() {
    let Some(path) = find(EMBEDDER) else { return };
    let options = PoolingOptions { threads: 1, max_tokens: 48, ..PoolingOptions::default() };
    let embedder = Embedder::load(Backend::start().unwrap(), &path, options).unwrap();
    let text = |words| "river ".repeat(words);
    let most = embedder.max_tokens();
    let texts = [text(most - 1), text(most), text(most + 1)];
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let vectors = embedder.embed(&texts).unwrap();
    assert!(cosine(&vectors[0], &vectors[1]) > 0.99);
    assert!(cosine(&vectors[1], &vectors[2]) > 0.99);
}

#[test]
fn handles_share_one_embedder_between_threads() {
    let Some(embedder) = embedder() else { return };
    let alone = embedder.embed(&["a lamp"]).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let (handle, alone) = (embedder.clone(), &alone);
            scope.spawn(move || {
                let vectors = handle.embed(&["a lamp", "a chair"]).unwrap();
                assert!(apart(&vectors[0], &alone[0]) < 1e-3);
            });
        }
    });
}

#[test]
fn files_that_are_no_embedders_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let missing = load(&dir.path().join("missing.gguf")).unwrap_err();
    assert!(matches!(missing, LoadError::Missing { .. }), "{missing}");
    let noise = dir.path().join("noise.gguf");
    fs::write(&noise, [0x5a; 10_000]).unwrap();
    assert!(matches!(load(&noise).unwrap_err(), LoadError::Unreadable { .. }));
    let Some(path) = find(EMBEDDER) else { return };
    let bytes = fs::read(&path).unwrap();
    let cut = dir.path().join("cut.gguf");
    fs::write(&cut, &bytes[..bytes.len() * 2 / 3]).unwrap();
    assert!(matches!(load(&cut).unwrap_err(), LoadError::Unreadable { .. }));
    for (threads, max_tokens) in [(0, 512), (1, 0), (1, 2)] {
        let options = PoolingOptions { threads, max_tokens, ..PoolingOptions::default() };
        let error = Embedder::load(Backend::start().unwrap(), &path, options).unwrap_err();
        assert!(matches!(error, LoadError::BadOption { .. }), "{error}");
    }
}

/// Flipped bytes in the weights are an error or a worse vector, never a crash.
#[test]
fn weights_that_are_no_numbers_are_an_error() {
    let Some(path) = find(EMBEDDER) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() * 3 / 4;
    bytes[middle..middle + 200_000].fill(0xff);
    let spoilt = dir.path().join("spoilt.gguf");
    fs::write(&spoilt, &bytes).unwrap();
    let embedder = load(&spoilt).unwrap();
    for _ in 0..2 {
        assert_eq!(embedder.embed(&["a lamp"]), Err(PoolingError::NotFinite));
    }
}
