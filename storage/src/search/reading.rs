//! What the index needs to know of a text.

use std::collections::HashMap;

use garret_language::Language;
use garret_language::calendar::day_in_words;
use garret_language::time_query::is_time_word;
use garret_language::tokens::{TokenKind, terms, tokens};

use crate::search::index::{QUESTION, TELLS_TIME};
use crate::search::unit::{Speaker, Unit};

/// A unit, read.
pub(crate) struct Reading {
    pub(crate) counts: HashMap<String, u32>,
    /// Terms, those aside that are there for exact queries alone.
    pub(crate) length: u32,
    pub(crate) language: u8,
    /// Ends with a question mark.
    pub(crate) question: bool,
    /// Tells a time.
    pub(crate) tells_time: bool,
}

impl Reading {
    pub(crate) fn of(unit: &Unit<'_>) -> Self {
        let language = Language::detect(unit.text);
        let mut reading = Self {
            counts: HashMap::new(),
            length: 0,
            language: language as u8,
            question: unit.text.trim_end().ends_with(['?', '\u{ff1f}', '\u{61f}', '\u{37e}']),
            tells_time: false,
        };
        if let Some(day) = unit.at_ms.and_then(day_in_words) {
            reading.take(&day, Language::English);
        }
        if let Speaker::Named(name) = unit.speaker {
            reading.take(name, language);
        }
        // A date before the text tells no time of what the text is about.
        reading.tells_time = false;
        reading.take(unit.text, language);
        reading
    }

    /// As an [`Entry`](super::index::Entry) has them.
    pub(crate) const fn flags(&self) -> u8 {
        (if self.question { QUESTION } else { 0 }) | (if self.tells_time { TELLS_TIME } else { 0 })
    }

    fn take(&mut self, text: &str, language: Language) {
        tokens(text, &mut |token| {
            self.tells_time = self.tells_time || is_time_word(&token);
            let counted =
                matches!(token.kind, TokenKind::Word | TokenKind::Gram | TokenKind::Number);
            terms(&token, language, &mut |term| {
                self.length = self.length.saturating_add(u32::from(counted));
                match self.counts.get_mut(term) {
                    Some(count) => *count = count.saturating_add(1),
                    None => drop(self.counts.insert(term.to_owned(), 1)),
                }
            });
        });
    }
}
