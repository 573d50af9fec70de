//! llama.cpp#9383: with a quantised KV cache a shift of the context ended the whole process by an
//! assertion.
//!
//! The conversation outgrows its window again and again on a cache of 8-bit numbers, and every message
//! is answered.

use garret_core::receipt::Omitted;
use garret_tests::talk::say;

use crate::real;

#[test]
fn history_gives_way_on_a_quantised_cache() {
    let folder = tempfile::tempdir().unwrap();
    let settings = [("window", "2048"), ("kv_type", "q8_0"), ("companions", "off")];
    let Some(mut agent) = real(folder.path(), &settings) else { return };
    let mut moves = 0;
    let mut before = None;
    for turn in 0..9 {
        let message = format!("Message {turn}: {}", "the roses need water again, ".repeat(36));
        let receipt = say(&mut agent, &message).receipt;
        assert!(receipt.reply_tokens > 0, "{receipt:?}");
        moves +=
            u32::from(receipt.history_from != before && receipt.left_out(Omitted::OldTurns) > 0);
        before = receipt.history_from;
    }
    assert!(moves > 1, "history gave way {moves} times");
}
