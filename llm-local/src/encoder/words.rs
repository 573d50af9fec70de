//! Cuts of a text whose parts have the tokens of the whole, and the tokens of parts that were there
//! before.
//!
//! llama.cpp takes microseconds a token, most of them for words it has seen a thousand times. Its
//! byte-pair tokenizers first split a text by patterns, and no token reaches across a split. The
//! patterns that are named here all split before a space that stands between a letter, a digit or
//! one of a few marks and another letter or digit, and after the end of a line between such
//! characters; all in ASCII.
//!
//! Limits: other tokenizers get the whole text, since theirs may join words (SuperBPE, EXAONE,
//! those in the manner of SentencePiece); so does one with a special token that has a space in it,
//! or that swallows the space beside it.

use std::sync::Arc;

use garret_core::token::Token;

use super::cache::Cache;
use crate::vocab::{SpecialKind, SpecialToken, TextTooLong, Vocabulary};

/// Tokens of words.
#[derive(Debug)]
pub(super) struct Words {
    /// True if texts may be cut at all.
    cuts: bool,
    cache: Cache,
}

impl Words {
    pub(super) fn new(vocab: &impl Vocabulary) -> Self {
        let known = vocab.splits_by().is_some_and(|name| SPLITTING.contains(&name.as_str()));
        let cuts = known && !vocab.specials().tokens.iter().any(is_spaced);
        Self { cuts, cache: Cache::new(CACHE_BYTES) }
    }

    /// Appends the tokens of `text`, which are those of [`Vocabulary::tokenize`].
    pub(super) fn tokenize(
        &mut self,
        vocab: &impl Vocabulary,
        text: &str,
        out: &mut Vec<Token>,
    ) -> Result<(), TextTooLong> {
        if !self.cuts {
            return vocab.tokenize(text, out);
        }
        let mut rest = text;
        while !rest.is_empty() {
            let (word, after) = rest.split_at(word_len(rest));
            self.word(vocab, word, out)?;
            rest = after;
        }
        Ok(())
    }

    fn word(
        &mut self,
        vocab: &impl Vocabulary,
        word: &str,
        out: &mut Vec<Token>,
    ) -> Result<(), TextTooLong> {
        if word.len() > LONGEST_WORD {
            return vocab.tokenize(word, out);
        }
        if let Some(tokens) = self.cache.get(word) {
            out.extend_from_slice(&tokens);
            return Ok(());
        }
        let start = out.len();
        vocab.tokenize(word, out)?;
        let tokens: Arc<[Token]> = out.get(start..).unwrap_or_default().into();
        self.cache.insert(word, tokens);
        Ok(())
    }
}

/// Returns whether a special token may take part in what stands on both sides of a cut.
fn is_spaced(token: &SpecialToken) -> bool {
    let swallows = token.strips_left || token.strips_right;
    token.text.contains([' ', '\n']) || (token.kind == SpecialKind::UserDefined && swallows)
}

/// Returns the bytes up to the first cut, or of the whole text.
fn word_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let cut = bytes.windows(3).enumerate().find_map(|(at, window)| match *window {
        [before, b' ', after] if ends(before) && after.is_ascii_alphanumeric() => Some(at + 1),
        [before, b'\n', after] if ends(before) && after.is_ascii_alphanumeric() => Some(at + 2),
        _ => None,
    });
    // A cut stands beside an ASCII character, so it is between two characters.
    cut.unwrap_or(text.len())
}

/// Returns whether a split follows this character before white space.
const fn ends(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b',' | b';' | b':' | b'?' | b'!')
}

/// Names of the patterns of such tokenizers in a model file (`tokenizer.ggml.pre`).
const SPLITTING: [&str; 13] = [
    "command-r",
    "deepseek-r1-qwen",
    "falcon3",
    "gpt-2",
    "lfm2",
    "llama-bpe",
    "llama-v3",
    "llama3",
    "olmo",
    "phi-2",
    "qwen2",
    "smollm",
    "starcoder",
];
/// Bytes of one generation of cached words.
const CACHE_BYTES: usize = 1 << 20;
/// Longest word that is kept, in bytes; a longer one hardly comes twice.
const LONGEST_WORD: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<&str> {
        let mut words = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (word, after) = rest.split_at(word_len(rest));
            words.push(word);
            rest = after;
        }
        words
    }

    #[test]
    fn texts_are_cut_between_words_and_lines_alone() {
        assert_eq!(cut("Two bees, 7 hives.\nDone"), ["Two", " bees,", " 7", " hives.\n", "Done"]);
        for whole in
            ["", "a  b", "a -b", "a- b", "a \nb", "a\n\nb", "a\n b", "\u{e9} b", "a \u{e9}"]
        {
            assert!(cut(whole).len() <= 1, "{:?}", cut(whole));
        }
    }
}
