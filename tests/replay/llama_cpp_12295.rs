//! llama.cpp#12295: a text longer than the batch made the embedding request fail, so long messages
//! had no vector and were found by nobody.
//!
//! A text of any length has a vector, and what stands at its far end is found by meaning.

use garret_llm::{Backend, Embedder, PoolingOptions};
use garret_tests::models::{EMBEDDER, find};

#[test]
fn a_text_of_any_length_has_a_vector() {
    let Some(path) = find(EMBEDDER) else { return };
    let options = PoolingOptions { threads: 1, ..PoolingOptions::default() };
    let embedder = Embedder::load(Backend::start().unwrap(), &path, options).unwrap();
    let long = "The garret holds a lamp and a chair. ".repeat(100) + "The bees live in the shed.";
    let vectors = embedder.embed(&[&long, "a chair and a lamp in the attic", "!"]).unwrap();
    for vector in &vectors {
        let length: f32 = vector.iter().map(|x| x * x).sum();
        assert!((length - 1.0).abs() < 1e-3, "{length}");
    }
    let close: f32 = vectors[0].iter().zip(&vectors[1]).map(|(a, b)| a * b).sum();
    assert!(close > 0.3, "{close}");
}
