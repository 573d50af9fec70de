//! What a query asks for. Any text is a query: it has no syntax.

use crate::search::entities::Entities;
use garret_language::time_query::{TimeQuery, asks_when, is_date_word, is_weekday};
use garret_language::tokens::{Token, TokenKind, depends_on_language, is_common, terms, tokens};
use garret_language::{Language, casefold};

/// A query, taken apart.
#[derive(Debug, Default)]
pub(crate) struct Query {
    /// Each word with the terms it may be indexed under.
    pub(crate) words: Vec<Vec<String>>,
    /// Each of these as it is, folded; empty for what is to be found letter by letter, whose words
    /// are there as well.
    pub(crate) spelt: Vec<String>,
    /// Its words as they are, folded, common ones too.
    pub(crate) folded: Vec<String>,
    /// Those of them that may be a name: not a common word, unless it is written as a name where
    /// no sentence begins.
    pub(crate) names: Vec<String>,
    /// Its words that name somebody or something: those that are written so, and the names of what
    /// facts are about, however they are written.
    pub(crate) entities: Vec<String>,
    /// It wants to know a time.
    pub(crate) asks_when: bool,
    /// The time it names.
    pub(crate) asked: TimeQuery,
}

impl Query {
    /// Reads `text`, for an index of texts in `languages`, as asked at `now`.
    pub(crate) fn new(text: &str, languages: &[Language], now: Option<i64>) -> Self {
        let text = &text[..text.floor_char_boundary(QUERY_BYTES)];
        let mut query = Self::default();
        let spoken = Language::detect(text);
        let writing = Writing { text, tells: tells_names(text, spoken) };
        tokens(text, &mut |token| {
            if matches!(token.kind, TokenKind::Word | TokenKind::Exact) {
                let word = casefold(token.text).into_owned();
                let capital = token.text.starts_with(char::is_uppercase);
                if !is_common(&token, spoken) || (capital && !query.folded.is_empty()) {
                    query.names.push(word.clone());
                }
                if writing.is_name(&token, &word) {
                    query.entities.push(word.clone());
                }
                query.folded.push(word);
            }
            let empty = token.kind == TokenKind::Inner || is_common(&token, spoken);
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
                let exact = token.kind == TokenKind::Exact;
                query.spelt.push(if exact {
                    String::new()
                } else {
                    casefold(token.text).into_owned()
                });
            }
        });
        query.asks_when = asks_when(&query.folded);
        query.asked = TimeQuery::of(&query.folded, now);
        if query.asked.is_bound() {
            let kept: Vec<bool> = query.spelt.iter().map(|word| !is_date_word(word)).collect();
            let mut keep = kept.iter();
            query.words.retain(|_| keep.next() == Some(&true));
            let mut keep = kept.iter();
            query.spelt.retain(|_| keep.next() == Some(&true));
        }
        query
    }

    /// Takes the names in it for what they are, however they are written.
    pub(crate) fn know(&mut self, entities: &Entities) {
        let Self { folded, entities: known, .. } = self;
        entities.each_in(folded, &mut |name| known.extend_from_slice(name));
    }

    /// Tells whether it has one of these words.
    pub(crate) fn has(&self, words: &[&str]) -> bool {
        self.folded.iter().any(|word| words.contains(&&**word))
    }
}

/// The writing of a query.
struct Writing<'a> {
    text: &'a str,
    /// Capitals tell names from other words.
    tells: bool,
}

impl Writing<'_> {
    /// Whether a word, which is given folded as well, is written as a name: with a capital where no
    /// sentence begins, and not the name of a month or a day.
    fn is_name(&self, token: &Token<'_>, word: &str) -> bool {
        let before = self.text.get(..token.start).unwrap_or_default().trim_end();
        let inside = before.chars().next_back().is_some_and(|last| !ENDS.contains(&last));
        let capital = token.text.starts_with(char::is_uppercase);
        self.tells && capital && inside && !is_date_word(word) && !is_weekday(word)
    }
}

/// Characters that a sentence may begin after.
const ENDS: [char; 8] = ['.', '?', '!', ':', '"', '\u{201c}', '\u{ab}', '\u{bf}'];

/// Tells whether capitals tell names from other words: not where all is in capitals, and not in German.
fn tells_names(text: &str, spoken: Language) -> bool {
    spoken != Language::German && text.chars().any(char::is_lowercase)
}

/// The words of a text as those of a query are kept: as they are, folded.
pub(crate) fn words_of(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    tokens(text, &mut |token| {
        if matches!(token.kind, TokenKind::Word | TokenKind::Exact) {
            words.push(casefold(token.text).into_owned());
        }
    });
    words
}

/// Bytes of a query that are read.
const QUERY_BYTES: usize = 4096;
/// Most words of a query that are looked for.
const QUERY_WORDS: usize = 128;
