//! The memory estimate against figures worked out by hand and measured on llama.cpp.

use garret_core::model::KvType;
use garret_llm::estimate::MemoryEstimate;
use garret_llm::gguf::Gguf;

use crate::support::gguf::{Writer, test_model};

fn estimate(file: &Writer, n_ctx: u32, kv: KvType) -> MemoryEstimate {
    let dir = tempfile::tempdir().unwrap();
    let gguf = Gguf::open(&file.write(&dir.path().join("m.gguf"))).unwrap();
    MemoryEstimate::of(&gguf, n_ctx, kv, 64)
}

#[test]
fn counts_weights_and_cells() {
    // 2 layers, 2 KV heads of 16 numbers for keys and as many for values, 2 bytes each.
    let need = estimate(&Writer::chat(), 1_024, KvType::F16);
    assert_eq!(need.weights, 64 * 3 * 4 + 64 * 4);
    assert_eq!(need.kv, 1_024 * 2 * 2 * (16 + 16) * 2);
    let quantised = estimate(&Writer::chat(), 1_024, KvType::Q8_0);
    assert_eq!(quantised.kv * 64, need.kv * 34);
    let rounded = estimate(&Writer::chat(), 1_000, KvType::F16);
    assert_eq!(rounded.kv, need.kv);
}

#[test]
fn layers_can_differ() {
    let file = Writer::chat()
        .u32s("llama.attention.head_count", &[4, 4])
        .u32s("llama.attention.head_count_kv", &[2, 0])
        .u32("llama.attention.key_length", 8)
        .u32("llama.attention.value_length", 24);
    assert_eq!(estimate(&file, 256, KvType::F16).kv, 256 * 2 * (8 + 24) * 2);
}

/// Logits are computed for one token of each sequence, not for a whole batch.
#[test]
fn a_large_vocabulary_costs_four_rows_of_logits() {
    let words: Vec<String> = (0..10_000).map(|word| word.to_string()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let large = Writer::chat().texts("tokenizer.ggml.tokens", &words);
    let [small, large] =
        [Writer::chat(), large].map(|file| estimate(&file, 1_024, KvType::F16).compute);
    assert_eq!(large - small, (10_000 - 3) * 4 * 2 * 4);
}

#[test]
fn fits_means_all_of_it() {
    let need = estimate(&Writer::chat(), 1_024, KvType::F16);
    assert!(need.compute > 0);
    assert!(need.fits(need.weights + need.kv + need.compute));
    assert!(!need.fits(need.total() - 1));
}

#[test]
fn absurd_headers_give_large_figures_not_overflow() {
    let file = Writer::chat()
        .u32("llama.block_count", u32::MAX)
        .u32("llama.embedding_length", u32::MAX)
        .u32("llama.feed_forward_length", u32::MAX)
        .u32("llama.attention.head_count", 1)
        .u32("llama.attention.head_count_kv", u32::MAX);
    assert!(!estimate(&file, u32::MAX, KvType::F16).fits(1 << 40));
}

/// Measured: the saved state of one sequence is 23 MB for 1,024 tokens, nearly all of it the cache.
#[test]
fn agrees_with_the_measured_state_of_the_starter_model() {
    let Some(path) = test_model("SmolLM2-135M-Instruct-Q4_1.gguf") else { return };
    let gguf = Gguf::open(&path).unwrap();
    let kv = MemoryEstimate::of(&gguf, 1_024, KvType::F16, 128).kv;
    let measured = 23_000_000_f64;
    let off = (kv as f64 - measured).abs() / measured;
    assert!(off < 0.05, "{kv} bytes");
}
