//! The persona: a record of what is known of the user, made of facts and remade when they change.

use garret_core::time::WallTime;
use garret_storage::{Fact, FactId, FactSource, NewFact, Store};

use super::extract::{KeepError, latest};

/// The subject of what users say of themselves.
pub const USER: &str = "user";
/// The predicate of the record.
pub const PERSONA: &str = "persona";
/// Most words of the record.
pub const MAX_WORDS: usize = 200;

/// Writes the record anew if the facts about the user changed; returns the new one.
///
/// # Errors
/// [`KeepError`], also where something is erased meanwhile.
pub fn refresh(store: &Store, at: WallTime) -> Result<Option<FactId>, KeepError> {
    let since = store.since(store.ticket());
    let facts = latest(store, USER)?;
    let old = facts.iter().find(|fact| fact.predicate == PERSONA);
    let (text, from) = compose(&facts);
    if from.is_empty() || old.is_some_and(|old| old.text == text) {
        return Ok(None);
    }
    let new = NewFact {
        text: &text,
        source: FactSource::Assistant,
        subject: Some(USER),
        predicate: Some(PERSONA),
        inferred: true,
        derived_from: &from,
        ..NewFact::default()
    };
    let added = match old {
        Some(old) => since.supersede(old.id, &new, at)?,
        None => since.add_fact(&new, at)?,
    };
    Ok(Some(added.id))
}

/// The record's text, and the facts that are in it: what the user said of themselves and is sure
/// enough, in the order of [`ORDER`], each whole.
fn compose(facts: &[Fact]) -> (String, Vec<FactId>) {
    let mut text = String::new();
    let mut from = Vec::new();
    for relation in ORDER {
        let told = facts
            .iter()
            .filter(|fact| fact.predicate == relation && !fact.inferred && fact.confidence > SURE);
        let told: Vec<&Fact> = told.collect();
        let values = told.iter().map(|fact| fact.object.as_deref().unwrap_or(&fact.text));
        let values: Vec<&str> = values.collect();
        if values.is_empty() {
            continue;
        }
        let part = format!("{}: {}. ", relation.replace('_', " "), values.join(", "));
        let words = |text: &str| text.split_whitespace().count();
        if words(&text) + words(&part) > MAX_WORDS {
            break;
        }
        text.push_str(&part);
        from.extend(told.iter().map(|fact| fact.id));
    }
    (text.trim_end().to_owned(), from)
}

/// Relations of the record.
const ORDER: [&str; 24] = [
    "name",
    "age",
    "birthday",
    "from",
    "born_in",
    "lives_in",
    "occupation",
    "works_at",
    "studies",
    "about",
    "partner",
    "wife",
    "husband",
    "son",
    "daughter",
    "dog",
    "cat",
    "has",
    "allergic_to",
    "speaks",
    "plays",
    "likes",
    "dislikes",
    "prefers",
];
/// Confidence below which a fact isn't in the record.
const SURE: f32 = 0.5;
