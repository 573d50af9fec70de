//! Cues: what rules notice in a user's words, before any model is asked.
//!
//! ```
//! use garret::remember::cues;
//!
//! let seen = cues::read("I moved to Bergen. Is the 2026-12-24 concert still on?");
//! assert_eq!(seen.statements[0].relation, "lives_in");
//! assert_eq!(seen.statements[0].object, "Bergen");
//! assert_eq!(seen.dates.len(), 1);
//! ```
//!
//! Each sensor reads the text by itself and finds something or nothing; none of them fails, and none
//! reads a clock. Words that the user quotes (in code, after `>`, between quotation marks) aren't
//! the user's, so nothing is told by them.
//!
//! Limits: English first; German, French, Spanish, Korean and Japanese where a phrase is common. Of a
//! long message only the first [`MAX_BYTES`] are read.

mod contradict;
mod phrases;
mod signals;
mod statements;
mod topic;

pub use contradict::{KnownFact, alike, contradicted};
pub use statements::{Statement, is_trait};
pub use topic::topic_changed;

use garret_core::gate::Signals;
use garret_language::dates::{self, DateMention};
use garret_language::sentences::Text;
use garret_language::spans::{self, Span, SpanKind};

/// The cues in a message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cues {
    /// Number of its words.
    pub words: u32,
    /// The message asks for what is new.
    pub freshness: bool,
    /// Certainty that something is meant that isn't named, 0 to 1.
    pub anaphora: f32,
    /// Certainty that the user is unsure, 0 to 1.
    pub hedge: f32,
    /// Certainty that more is wanted than is said, 0 to 1.
    pub oblique: f32,
    /// The message takes something back or denies something.
    pub negation: bool,
    /// Dates in it.
    pub dates: Vec<DateMention>,
    /// Addresses and identifiers in it.
    pub spans: Vec<Span>,
    /// Statements of the user about themselves or something of theirs.
    pub statements: Vec<Statement>,
}

/// Reads the cues in `text`.
pub fn read(text: &str) -> Cues {
    let text = head(text);
    let own = Text::new(text);
    let dates = dates::find(text);
    let statements = statements::find(&own);
    Cues {
        words: u32::try_from(own.count()).unwrap_or(u32::MAX),
        freshness: signals::freshness(&own),
        anaphora: signals::anaphora(&own),
        hedge: signals::hedge(&own),
        oblique: signals::oblique(&own, !statements.is_empty()),
        negation: signals::negation(&own),
        spans: spans::find(text),
        statements,
        dates,
    }
}

impl Cues {
    /// Returns the signals for the gate. The window's fill, the topic, a contradiction and the model's
    /// tags are the caller's to add.
    pub fn signals(&self) -> Signals {
        let spans = self.dates.len().saturating_add(self.spans.len());
        let is_web = |span: &Span| span.kind == SpanKind::Url;
        Signals {
            words: self.words,
            freshness: self.freshness,
            anaphora: self.anaphora,
            hedge: self.hedge,
            oblique: self.oblique,
            anchored: !self.dates.is_empty() || self.spans.iter().any(is_web),
            spans: u8::try_from(spans).unwrap_or(u8::MAX),
            personal: !self.statements.is_empty(),
            ..Signals::default()
        }
    }
}

/// Returns the part of a message that is read.
fn head(text: &str) -> &str {
    let end = (0..=MAX_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or(0)).unwrap_or(text)
}

/// Bytes of a message that are read.
pub const MAX_BYTES: usize = 4_096;

#[cfg(test)]
mod tests;
