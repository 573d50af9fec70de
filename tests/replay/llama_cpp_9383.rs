//! llama.cpp#9383: with a quantised KV cache a shift of the context ended the whole process by an
//! assertion.
//!
//! On a cache of 8-bit numbers the beginning of history gives way again and again, and every prompt is
//! answered.

use garret_core::model::KvType;
use garret_llm::ChatOptions;
use garret_tests::models::STARTER;

use crate::{answer, chat, tokens};

#[test]
fn history_gives_way_on_a_quantised_cache() {
    let options = ChatOptions { n_ctx: 256, kv: KvType::Q8_0, ..ChatOptions::default() };
    let Some(chat) = chat(STARTER, options) else { return };
    let words = tokens(&chat, &"the roses in the garden need water again, ".repeat(80));
    let system = tokens(&chat, "You are a gardener.");
    for turn in 0..3 {
        let from = turn * 60;
        let prompt = [&system, &words[from..from + 180]].concat();
        let answer = answer(&chat, &prompt, 4, None);
        assert!(answer.tokens > 0, "turn {turn}");
        assert!(answer.reused as usize >= system.len() || turn == 0, "turn {turn}");
        assert_eq!((answer.reused + answer.prefilled) as usize, prompt.len());
    }
}
