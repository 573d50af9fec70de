//! The tools on the store's search: `lookup`, and `grep` for words.

use std::collections::HashSet;

use garret_core::id::SessionId;
use garret_language::casefold;
use garret_storage::search::{Hit, Kind, Search};

use super::answer::{Answer, Entry, date};
use super::call::{Call, Page, Place};
use super::context::{Context, ToolError};
use super::grep::{self, Range};
use crate::embed;

/// Finds what answers `words` best, messages and facts, of every conversation.
pub(super) fn lookup(
    context: &Context<'_>,
    call: &Call,
    words: &str,
    page: Page,
) -> Result<Answer, ToolError> {
    let vector = context.embedder.and_then(|embedder| embed::query(context.store, embedder, words));
    let search =
        Search { now: context.now, vector: vector.as_deref(), ..Search::new(words, wanted(page)) };
    let found = hits(context, &search)?;
    Ok(listed(call, page, found.iter().map(entry).collect(), "Nothing that is remembered answers"))
}

/// Finds where `words` stand: what the search finds by its words, then what has them letter by
/// letter.
pub(super) fn words(
    context: &Context<'_>,
    call: &Call,
    words: &str,
    place: &Place,
    page: Page,
) -> Result<Answer, ToolError> {
    let session = context.place(place)?;
    let search = Search {
        session,
        kinds: &[Kind::Message],
        now: context.now,
        ..Search::new(words, wanted(page))
    };
    let mut entries: Vec<Entry> = hits(context, &search)?.iter().map(entry).collect();
    if entries.len() < page.skip.saturating_add(page.k) {
        let known: HashSet<String> = entries.iter().map(|entry| entry.id.clone()).collect();
        let range = Range { place, page: Page { k: page.k, skip: 0 }, before: None };
        let needle = casefold(words).into_owned();
        let literal = grep::scan(context, &range, |text| {
            let folded = casefold(text);
            let at = folded.find(&needle)?;
            let (before, found) = folded.split_at(at);
            let found = found.get(..needle.len()).unwrap_or_default();
            // Folding keeps the number of characters, but for a few letters.
            Some((before.chars().count(), found.chars().count()))
        })?;
        entries.extend(literal.entries.into_iter().filter(|entry| !known.contains(&entry.id)));
    }
    Ok(listed(call, page, entries, "Nothing that was said has"))
}

/// Finds hits of an earlier time than the turn that is being answered.
fn hits(context: &Context<'_>, search: &Search<'_>) -> Result<Vec<Hit>, ToolError> {
    let mut found = context.store.find(search)?.hits;
    found.retain(|hit| match (&hit.session, hit.turn) {
        (Some(session), Some(turn)) => !context.is_current(session, turn),
        _ => true,
    });
    Ok(found)
}

/// Returns the number of hits to ask for: one more than is shown, so that it is known whether there
/// are more, and the message and reply of the turn that is being answered.
fn wanted(page: Page) -> usize {
    page.skip.saturating_add(page.k).saturating_add(3).min(DEEPEST)
}

/// Returns the page of `entries` that was asked for.
fn listed(call: &Call, page: Page, entries: Vec<Entry>, nothing: &str) -> Answer {
    let total = entries.len();
    let shown = entries.into_iter().enumerate().skip(page.skip).take(page.k);
    let resumed = shown.map(|(at, entry)| Entry { resume: call.skipping(at), ..entry });
    let entries: Vec<_> = resumed.collect();
    if entries.is_empty() && total > 0 {
        return Answer::note(call, format!("There are only {total}."));
    }
    if entries.is_empty() {
        return Answer::note(call, format!("{nothing} this. Other words may."));
    }
    let seen = page.skip.saturating_add(page.k);
    let next = (total > seen).then(|| call.skipping(seen));
    Answer { call: call.to_string(), entries, next, ..Answer::default() }
}

fn entry(hit: &Hit) -> Entry {
    let mut about = Vec::new();
    if let Some(end) = hit.valid_to {
        about.push(format!("true until {}", date(end)));
    }
    if !matches!(hit.kind, Kind::Message) {
        about.insert(0, "fact".to_owned());
    }
    Entry {
        id: hit.id.clone(),
        session: hit.session.as_ref().map(|id| SessionId::as_str(id).to_owned()),
        turn: hit.turn,
        source: Some(hit.source.clone()),
        date: hit.at_ms.map(date),
        about: about.join(", "),
        text: hit.text.trim().to_owned(),
        cut_before: hit.cut_before,
        cut_after: hit.cut_after,
        ..Entry::default()
    }
}

/// Most hits that are ever asked for: nobody pages through more.
const DEEPEST: usize = 500;
