//! llama.cpp#21831 and its kin: with sliding-window attention or recurrent state every request read
//! the whole prompt again, because a part of such a cache can't be taken back.
//!
//! A prompt that goes on from the one before reads only what is new. That logits are right after a
//! deep rollback is tested in `llm-local/tests/runtime_swa.rs`.

use garret_llm::ChatOptions;
use garret_tests::models::GEMMA;

use crate::{answer, chat, tokens};

#[test]
fn a_sliding_window_reads_only_what_is_new() {
    let options = ChatOptions { n_ctx: 2_048, ..ChatOptions::default() };
    let Some(chat) = chat(GEMMA, options) else { return };
    let window = chat.model().swa().expect("the file names its window").tokens as usize;
    let words = "the garret holds a lamp, a chair, three letters and one old map of the river; ";
    let words = tokens(&chat, &words.repeat(100));
    let first = answer(&chat, &words[..window + 100], 1, None);
    assert_eq!((first.reused, first.prefilled as usize), (0, window + 100));
    let second = answer(&chat, &words[..window + 180], 1, None);
    assert_eq!((second.reused + second.prefilled) as usize, window + 180);
    assert!(second.prefilled <= 81, "{} tokens were read where 80 are new", second.prefilled);
}
