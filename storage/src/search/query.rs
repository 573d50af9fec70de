//! What a query asks for. Any text is a query: it has no syntax.

use super::dates::{Asked, asks_when, is_date_word};
use crate::text::{Kind, Language, depends_on_language, fold, is_common, terms, tokens};

/// A query, taken apart.
#[derive(Debug, Default)]
pub(super) struct Query {
    /// Each word with the terms it may be indexed under.
    pub(super) words: Vec<Vec<String>>,
    /// Each of these as it is, folded; empty for what is to be found letter by letter, whose words
    /// are there as well.
    pub(super) spelt: Vec<String>,
    /// Its words as they are, folded, common ones too.
    pub(super) folded: Vec<String>,
    /// Those of them that may be a name: not a common word, unless it is written as a name where
    /// no sentence begins.
    pub(super) names: Vec<String>,
    /// It wants to know a time.
    pub(super) asks_when: bool,
    /// The time it names.
    pub(super) asked: Asked,
}

impl Query {
    /// Reads `text`, for an index of texts in `languages`, as asked at `now`.
    pub(super) fn new(text: &str, languages: &[Language], now: Option<i64>) -> Self {
        let text = &text[..text.floor_char_boundary(QUERY_BYTES)];
        let mut query = Self::default();
        let spoken = Language::detect(text);
        tokens(text, &mut |token| {
            if matches!(token.kind, Kind::Word | Kind::Exact) {
                let word = fold(token.text).into_owned();
                let capital = token.text.starts_with(char::is_uppercase);
                if !is_common(&token, spoken) || (capital && !query.folded.is_empty()) {
                    query.names.push(word.clone());
                }
                query.folded.push(word);
            }
            let empty = token.kind == Kind::Inner || is_common(&token, spoken);
            if empty || query.words.len() == QUERY_WORDS {
                return;
            }
            let mut word = Vec::new();
            let alone = [Language::English];
            let languages = if depends_on_language(&token) { languages } else { &alone };
            for language in languages {
                terms(&token, *language, &mut |term| {
                    if !word.iter().any(|known| known == term) {
                        word.push(term.to_owned());
                    }
                });
            }
            if !word.is_empty() && !query.words.contains(&word) {
                query.words.push(word);
                let exact = token.kind == Kind::Exact;
                query.spelt.push(if exact { String::new() } else { fold(token.text).into_owned() });
            }
        });
        query.asks_when = asks_when(&query.folded);
        query.asked = Asked::of(&query.folded, now);
        if query.asked.is_bound() {
            let kept: Vec<bool> = query.spelt.iter().map(|word| !is_date_word(word)).collect();
            let mut keep = kept.iter();
            query.words.retain(|_| keep.next() == Some(&true));
            let mut keep = kept.iter();
            query.spelt.retain(|_| keep.next() == Some(&true));
        }
        query
    }

    /// Whether it has one of these words.
    pub(super) fn has(&self, words: &[&str]) -> bool {
        self.folded.iter().any(|word| words.contains(&&**word))
    }
}

/// How much of a query is read, in bytes.
const QUERY_BYTES: usize = 4096;
/// Most words of a query that are looked for.
const QUERY_WORDS: usize = 128;
