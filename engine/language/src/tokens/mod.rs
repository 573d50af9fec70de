//! Tokens of a text, and the terms it can be found by, in any language and without a dictionary.
//!
//! A text is cut at white space and then by Unicode's rules into words, each of which is folded
//! (case, accents, width) and stemmed by Snowball. What a user would look for letter by letter
//! (`C++`, `a-b`, paths, addresses, dates, numbers, emoji) is a term as a whole beside that, after
//! a `=`. Scripts without spaces between words (and Hangul, which glues particles to them) become
//! pairs of neighbouring characters; single ones are terms too, for a query of one character.
//!
//! Words are stemmed as they are written, accents included, since Snowball's rules want them, and
//! folded after; a word with accents is also indexed as if it had been typed without.
//!
//! Limits: compound words aren't taken apart; Thai, Khmer and their like are pairs of characters,
//! not words; one text is taken to be in one language, save that a word's script overrules it.

use unicode_segmentation::UnicodeSegmentation as _;

use crate::scripts::is_unspaced;
use crate::{Language, casefold};

/// A word, sign or number of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// The token as it stands in the text.
    pub text: &'a str,
    /// The byte of the text where it begins.
    pub start: usize,
    /// The kind, which decides the terms.
    pub kind: TokenKind,
}

/// The kind of a [`Token`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A word of letters and digits.
    Word,
    /// A sign, or a word with signs, to be found letter by letter.
    Exact,
    /// Two neighbouring characters of a script without spaces, or one that stands alone.
    Gram,
    /// A number of digits in groups of three, to be found without the marks between them.
    Number,
    /// One character of a longer run: found by a query of just that.
    Inner,
}

/// Hands the tokens of `text` to `take`, in order of their beginnings but for inner ones.
///
/// ```
/// use garret_language::Language;
/// use garret_language::tokens::{terms, tokens};
///
/// let mut found = Vec::new();
/// tokens("The bees were swarming.", &mut |token| {
///     terms(&token, Language::English, &mut |term| found.push(term.to_owned()));
/// });
/// assert_eq!(found, ["bee", "swarm"]);
/// ```
pub fn tokens<'a>(text: &'a str, take: &mut dyn FnMut(Token<'a>)) {
    let mut offset = 0;
    for chunk in text.split(char::is_whitespace) {
        if !chunk.is_empty() {
            chunk_tokens(Piece { text: chunk, start: offset }, take);
        }
        offset +=
            chunk.len() + text[offset + chunk.len()..].chars().next().map_or(0, char::len_utf8);
    }
}

/// Hands the terms of a token of a text in `language` to `take`.
pub fn terms(token: &Token<'_>, language: Language, take: &mut dyn FnMut(&str)) {
    // A diacritic by itself folds to nothing.
    let take = &mut |term: &str| {
        if !term.is_empty() {
            take(term);
        }
    };
    match token.kind {
        TokenKind::Word => word_terms(token.text, language.of_word(token.text), take),
        TokenKind::Exact => take(&format!("={}", casefold(token.text))),
        TokenKind::Gram | TokenKind::Inner => take(&casefold(token.text)),
        TokenKind::Number => take(&token.text.replace(|c: char| !c.is_ascii_digit(), "")),
    }
}

/// Returns true for a token whose terms depend on the language of the text.
pub fn depends_on_language(token: &Token<'_>) -> bool {
    token.kind == TokenKind::Word && crate::language::by_script(token.text).is_none()
}

/// Returns true for a stop word in a text of this language.
pub fn is_common(token: &Token<'_>, language: Language) -> bool {
    token.kind == TokenKind::Word
        && language.of_word(token.text).is_stop_word(&casefold(token.text))
}

fn word_terms(word: &str, language: Language, take: &mut dyn FnMut(&str)) {
    if word.is_ascii() {
        let lower = casefold(word);
        if !language.is_stop_word(&lower) {
            take(&language.stem(&lower));
        }
        return;
    }
    let folded = casefold(word);
    if folded.is_empty() || language.is_stop_word(&folded) {
        return;
    }
    let lower = word.to_lowercase();
    let stem = language.stem(&lower);
    let accented = casefold(&stem);
    take(&accented);
    let plain = language.stem(&folded);
    let plain = casefold(&plain);
    if plain != accented {
        take(&plain);
    }
}

/// A part of a text and its first byte there.
#[derive(Clone, Copy)]
struct Piece<'a> {
    text: &'a str,
    start: usize,
}

impl<'a> Piece<'a> {
    fn part(self, start: usize, end: usize) -> Self {
        Self { text: &self.text[start..end], start: self.start + start }
    }

    fn token(self, kind: TokenKind) -> Token<'a> {
        Token { text: self.text, start: self.start, kind }
    }
}

fn chunk_tokens<'a>(chunk: Piece<'a>, take: &mut dyn FnMut(Token<'a>)) {
    match plain(chunk) {
        Some(word) => take(word.token(TokenKind::Word)),
        None => tokens_by_unicode(chunk, take),
    }
}

/// Returns the one word of a chunk that is made of ASCII letters and digits, save for marks around them: most
/// are, and the general way takes ten times as long.
fn plain(chunk: Piece<'_>) -> Option<Piece<'_>> {
    let ends = |byte: &u8| b"\"'()[]{}*,:;!?.".contains(byte);
    let begins = |byte: &u8| ends(byte) && *byte != b'.';
    let bytes = chunk.text.as_bytes();
    let start = bytes.iter().position(u8::is_ascii_alphanumeric)?;
    let len = bytes[start..].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let (before, after) = (&bytes[..start], &bytes[start + len..]);
    let alone = before.iter().all(begins) && after.iter().all(ends);
    alone.then(|| chunk.part(start, start + len))
}

fn tokens_by_unicode<'a>(chunk: Piece<'a>, take: &mut dyn FnMut(Token<'a>)) {
    let core = trimmed(chunk);
    let exact = is_exact(core.text);
    if exact {
        take(core.token(TokenKind::Exact));
    }
    let mut run = Run::default();
    for (at, word) in chunk.text.unicode_word_indices() {
        if word.chars().next().is_some_and(is_unspaced) {
            run.push(chunk, at, word, take);
            continue;
        }
        run.flush(chunk, take);
        let word = chunk.part(at, at + word.len());
        if word.text != core.text && is_exact(word.text) {
            take(word.token(TokenKind::Exact));
        }
        word_tokens(word, exact, take);
    }
    run.flush(chunk, take);
    for (at, symbol) in chunk.text.char_indices().filter(|(_, c)| is_symbol(*c)) {
        take(chunk.part(at, at + symbol.len_utf8()).token(TokenKind::Exact));
    }
}

/// Hands on the parts of a word, which by Unicode's rules can have points, apostrophes and the like
/// in it.
fn word_tokens<'a>(word: Piece<'a>, exact: bool, take: &mut dyn FnMut(Token<'a>)) {
    if !word.text.contains(joins) {
        if !exact || word.text.len() > 1 {
            take(word.token(TokenKind::Word));
        }
        return;
    }
    if is_grouped(word.text) {
        return take(word.token(TokenKind::Number));
    }
    let mut start = 0;
    let last = word.text.split(joins).count().saturating_sub(1);
    for (number, part) in word.text.split(joins).enumerate() {
        let end = start + part.len();
        let gap = word.text[end..].chars().next();
        let elided = (number == 0 && gap.is_some_and(is_apostrophe) && part.len() <= 2)
            || (number == last && number > 0 && part.len() <= 2 && {
                word.text[..start].chars().next_back().is_some_and(is_apostrophe)
            });
        if !part.is_empty() && !elided && (!exact || part.len() > 1) {
            take(word.part(start, end).token(TokenKind::Word));
        }
        start = end + gap.map_or(0, char::len_utf8);
    }
}

/// Neighbouring characters of a script without spaces.
#[derive(Default)]
struct Run {
    start: usize,
    end: usize,
}

impl Run {
    fn push<'a>(
        &mut self,
        chunk: Piece<'a>,
        at: usize,
        word: &str,
        take: &mut dyn FnMut(Token<'a>),
    ) {
        if self.end != at || self.start == self.end {
            self.flush(chunk, take);
            self.start = at;
        }
        self.end = at + word.len();
    }

    fn flush<'a>(&mut self, chunk: Piece<'a>, take: &mut dyn FnMut(Token<'a>)) {
        let run = chunk.part(self.start, self.end);
        self.start = self.end;
        let mut before: Option<(usize, usize)> = None;
        let characters: Vec<_> = run.text.grapheme_indices(true).collect();
        for (at, character) in &characters {
            let end = at + character.len();
            if let Some((start, _)) = before {
                take(run.part(start, end).token(TokenKind::Gram));
            }
            before = Some((*at, end));
            let kind = if characters.len() == 1 { TokenKind::Gram } else { TokenKind::Inner };
            take(run.part(*at, end).token(kind));
        }
    }
}

/// Removes quotation marks, brackets and what ends a sentence from both ends; signs that belong to names of
/// things stay (`C++`, `.bashrc`, `/tmp/`, `50%`, `-1`).
fn trimmed(chunk: Piece<'_>) -> Piece<'_> {
    let text = chunk.text;
    let left = text.trim_start_matches(|c: char| !c.is_alphanumeric() && !"+-#@$./~\\".contains(c));
    let right = left.trim_end_matches(|c: char| !c.is_alphanumeric() && !"+#%$/".contains(c));
    let start = text.len() - left.len();
    chunk.part(start, start + right.len())
}

/// Returns true for a chunk that is more than a word.
fn is_exact(text: &str) -> bool {
    text.len() <= EXACT_BYTES
        && text.contains(char::is_alphanumeric)
        && text.chars().any(|c| !c.is_alphanumeric() && !is_apostrophe(c) && !is_mark(c))
}

/// Returns true for a number such as `1,234,567`.
fn is_grouped(word: &str) -> bool {
    let mut groups = word.split([',', '.', '\'', '\u{2019}']);
    let first = groups.next().unwrap_or("");
    let digits = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit());
    (1..=3).contains(&first.len())
        && digits(first)
        && word.len() > first.len()
        && groups.all(|group| group.len() == 3 && digits(group))
}

/// Bytes of the longest chunk that can be found as a whole.
const EXACT_BYTES: usize = 128;

fn joins(c: char) -> bool {
    c.is_ascii_punctuation()
        || matches!(c, '\u{b7}' | '\u{387}' | '\u{2018}' | '\u{2019}' | '\u{2024}' | '\u{2027}')
        || matches!(u32::from(c), 0x203f..=0x2040 | 0xfe13..=0xfe6f | 0xff01..=0xff0f)
}

fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '\u{2018}' | '\u{2019}' | '\u{2bc}' | '\u{ff07}')
}

/// Marks that belong to the letter before them, roughly: enough not to take a word of a script
/// with marks for something exact.
fn is_mark(c: char) -> bool {
    matches!(u32::from(c),
        0x300..=0x36f | 0x591..=0x5c7 | 0x610..=0x61a | 0x64b..=0x65f | 0x900..=0xdff
        | 0xe31..=0xe4e | 0xeb1..=0xece | 0xf18..=0xfbc | 0x102b..=0x103e | 0x17b4..=0x17d3
        | 0x200c..=0x200d | 0x3099..=0x309c | 0xfe00..=0xfe0f)
}

/// Arrows, signs and emoji.
fn is_symbol(c: char) -> bool {
    matches!(u32::from(c), 0x2190..=0x2bff | 0x1f000..=0x1faff) && !c.is_alphanumeric()
}

#[cfg(test)]
mod tests;
