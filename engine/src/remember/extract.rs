//! Facts from what users say of themselves.
//!
//! Rules decide that there is a statement and what it is about; the value is a copy of the user's
//! words. What was said before isn't stored again, what changed takes the place of what it changes,
//! and what is no more is ended.

use std::fmt::Write as _;

use garret_core::id::{SessionId, TurnSeq};
use garret_core::time::WallTime;
use garret_storage::facts::is_multi_valued;
use garret_storage::{
    Fact, FactFilter, FactId, FactSource, NewFact, Origin, Outcome, ReadError, Since, Store,
    WriteError,
};

use garret_language::grounding::is_grounded;

use super::cues::{KnownFact, Statement, alike, contradicted};

/// A statement, with the turn and the message in which it was made.
#[derive(Clone, Copy, Debug)]
pub struct HeardStatement<'a> {
    /// The session.
    pub session: &'a SessionId,
    /// The turn.
    pub turn: TurnSeq,
    /// The user's message.
    pub message: &'a str,
    /// Time at which the message was accepted.
    pub accepted: WallTime,
    /// The statement.
    pub statement: &'a Statement,
    /// The message shows that the user is unsure.
    pub hedged: bool,
}

/// The outcome of keeping a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepOutcome {
    /// The statement is this new fact.
    New(FactId),
    /// This fact, said before, says the same.
    Known(FactId),
    /// This fact was kept from the same turn before, which was read in part.
    Already(FactId),
    /// The statement ended so many facts.
    Ended(usize),
}

/// The error of keeping a statement.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeepError {
    /// The store can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The fact can't be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl HeardStatement<'_> {
    /// Returns the words of the message that make the statement.
    pub fn quote(&self) -> &str {
        self.message.get(self.statement.quote_at.clone()).unwrap_or_default()
    }

    /// Keeps the statement with this value, which `sure` says is copied right, unless something was
    /// erased since the message was read.
    ///
    /// # Errors
    /// [`KeepError`].
    pub fn keep(
        &self,
        since: Since<'_>,
        object: &str,
        sure: bool,
    ) -> Result<KeepOutcome, KeepError> {
        let statement = self.statement;
        let store = since.store();
        let known = latest(store, &statement.subject)?;
        let same = |fact: &&Fact| {
            let value = fact.object.as_deref().unwrap_or(&fact.text);
            fact.predicate == statement.relation && !fact.inferred && alike(value, object)
        };
        let ended = self.end(store, &known, object)?;
        if statement.ended {
            return Ok(KeepOutcome::Ended(ended));
        }
        // A value with more words says more: it is kept.
        let words = |text: &str| text.split_whitespace().count();
        let said = known
            .iter()
            .filter(same)
            .find(|fact| words(fact.object.as_deref().unwrap_or(&fact.text)) >= words(object));
        if let Some(fact) = said {
            return self.known(store, fact);
        }
        let added = since.add_fact(&self.fact(object, sure), self.accepted)?;
        match store.fact(added.id)?.filter(|_| added.outcome == Outcome::Restated) {
            Some(fact) => self.known(store, &fact),
            None => Ok(KeepOutcome::New(added.id)),
        }
    }

    /// Tells a fact that was said before from one of this very turn, which was read in part.
    fn known(&self, store: &Store, fact: &Fact) -> Result<KeepOutcome, KeepError> {
        let session = fact.session.map(|number| store.session_of_number(number)).transpose()?;
        let here = session.flatten().as_ref() == Some(self.session);
        let same = here && fact.turn == Some(self.turn);
        Ok(if same { KeepOutcome::Already(fact.id) } else { KeepOutcome::Known(fact.id) })
    }

    /// Ends the facts that the statement denies; returns how many.
    fn end(&self, store: &Store, known: &[Fact], object: &str) -> Result<usize, KeepError> {
        let statement = Statement { object: object.to_owned(), ..self.statement.clone() };
        let mut ended = 0;
        for fact in known.iter().filter(|fact| fact.valid_at <= self.accepted.unix_ms) {
            let value = fact.object.as_deref().unwrap_or(&fact.text);
            let relation = &*fact.predicate;
            // Of other values where there can be one only, the new fact takes care.
            let replaced =
                !statement.ended && relation == statement.relation && !is_multi_valued(relation);
            let fact_is = KnownFact { subject: &statement.subject, relation, object: value };
            if !replaced && contradicted(&statement, &[fact_is]).is_some() {
                store.retract(fact.id, self.accepted.unix_ms)?;
                ended += 1;
            }
        }
        Ok(ended)
    }

    fn fact<'f>(&'f self, object: &'f str, sure: bool) -> NewFact<'f> {
        let confidence = confidence(is_grounded_part(object, self.quote()), sure, self.hedged);
        NewFact {
            text: self.quote(),
            source: FactSource::User,
            origin: Some(Origin { session: self.session, turn: self.turn }),
            quote: Some(self.quote()),
            subject: Some(&self.statement.subject),
            predicate: Some(&self.statement.relation),
            object: Some(object),
            confidence: Some(confidence),
            ..NewFact::default()
        }
    }
}

/// Returns the confidence of a fact, 0 to 1: at most 0.5 unless its value is in the words that it rests on.
pub fn confidence(grounded: bool, sure: bool, hedged: bool) -> f32 {
    let most = if sure { 0.95 } else { 0.7 };
    let most = if hedged { most - 0.25 } else { most };
    if grounded { most } else { UNGROUNDED.min(most) }
}

/// Most confidence of a fact whose words nobody said.
pub const UNGROUNDED: f32 = 0.5;

/// A value may be a number of two digits, which is no quote by itself.
fn is_grounded_part(object: &str, quote: &str) -> bool {
    quote.contains(object) || is_grounded(object, &[quote])
}

/// Reads the facts about a subject that hold.
///
/// # Errors
/// [`ReadError`].
pub fn latest(store: &Store, subject: &str) -> Result<Vec<Fact>, ReadError> {
    let filter = FactFilter {
        subject: Some(subject),
        latest: true,
        limit: MAX_KNOWN,
        ..FactFilter::default()
    };
    Ok(store.facts(&filter)?.facts)
}

/// Returns the instruction by which a model copies a value out of a message.
pub fn copy_instruction(told: &HeardStatement<'_>) -> String {
    let relation = told.statement.relation.replace('_', " ");
    format!(
        "I said: {}\nWhich of these words are the value of \"{relation}\"? Copy only them, in the form \
         value: words",
        told.quote()
    )
}

/// Returns a grammar that allows, after `value: `, any run of words of `text` that begins with one of its
/// first [`MAX_STARTS`], and nothing else.
pub fn copy_grammar(text: &str) -> String {
    let words: Vec<&str> = text.split_inclusive(char::is_whitespace).collect();
    let starts = words.len().clamp(1, MAX_STARTS);
    let choices: Vec<String> = (0..starts).map(|at| format!("w{at}")).collect();
    let mut grammar = format!("root ::= \"{VALUE}\" ({}) \"\\n\"\n", choices.join(" | "));
    let mut space = "";
    for (at, word) in words.iter().enumerate() {
        let bare = word.trim_end_matches(char::is_whitespace);
        let last = at + 1 == words.len();
        let next = if last { String::new() } else { format!(" (s{} w{})?", at + 1, at + 1) };
        // A String takes whatever is written to it.
        let _ = writeln!(grammar, "w{at} ::= {}{next}", literal(bare));
        if at > 0 {
            let _ = writeln!(grammar, "s{at} ::= {}", literal(space));
        }
        space = word.get(bare.len()..).unwrap_or_default();
    }
    grammar
}

/// Returns the value in an answer, if it is a part of `text`.
pub fn copied<'t>(answer: &str, text: &'t str) -> Option<&'t str> {
    let value = answer.strip_prefix(VALUE)?.trim();
    let value = value.trim_end_matches(['.', ',', ';', '!']);
    let at = text.find(value).filter(|_| !value.is_empty())?;
    text.get(at..at + value.len())
}

fn literal(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Begins an answer.
const VALUE: &str = "value: ";
/// Words with which a copied value may begin.
pub const MAX_STARTS: usize = 3;
/// Most tokens of a copied value.
pub const COPY_TOKENS: u32 = 48;
/// Most facts about one subject that are looked at.
const MAX_KNOWN: usize = 500;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_runs_of_the_words_can_be_copied() {
        let grammar = copy_grammar("a \"big\" firm\nin Oslo");
        assert!(grammar.starts_with("root ::= \"value: \" (w0 | w1 | w2) \"\\n\"\n"), "{grammar}");
        assert!(grammar.contains("w1 ::= \"\\\"big\\\"\" (s2 w2)?\n"), "{grammar}");
        assert!(grammar.contains("s3 ::= \"\\n\"\n"), "{grammar}");
        assert!(grammar.ends_with("w4 ::= \"Oslo\"\ns4 ::= \" \"\n"), "{grammar}");
    }

    #[test]
    fn what_was_copied_must_be_there() {
        let text = "Acme in Oslo since May";
        assert_eq!(copied("value: Acme in Oslo\n", text), Some("Acme in Oslo"));
        for answer in ["value: \n", "value: Bergen\n", "Acme\n", ""] {
            assert_eq!(copied(answer, text), None, "{answer}");
        }
    }

    #[test]
    fn ungrounded_values_are_never_sure() {
        assert!(confidence(true, true, false) > 0.9);
        for (sure, hedged) in [(true, false), (false, false), (true, true), (false, true)] {
            assert!(confidence(false, sure, hedged) <= UNGROUNDED);
        }
    }

    proptest! {
        #[test]
        fn any_text_gives_a_grammar_of_bounded_size(text in any::<String>()) {
            let grammar = copy_grammar(&text);
            prop_assert!(grammar.len() <= 60 + 40 * (text.len() + 1));
            let words = text.split_inclusive(char::is_whitespace).count().max(1);
            prop_assert!(grammar.lines().count() <= 2 * words + 1);
        }
    }
}
