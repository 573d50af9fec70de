//! The tools of facts: `entity`, about somebody or something, and `pinned`, always in the prompt.

use std::collections::HashMap;

use garret_core::id::SessionId;
use garret_core::time::{Confidence, WallTime};
use garret_language::casefold;
use garret_storage::{Fact, FactFilter, FactId};

use super::answer::{Answer, Entry, date};
use super::call::{Call, Page};
use super::context::{Context, ToolError};

/// The facts about whoever is called `name`, those that hold first, the newest of them first.
pub(super) fn entity(
    context: &Context<'_>,
    call: &Call,
    name: &str,
    page: Page,
) -> Result<Answer, ToolError> {
    let filter = FactFilter { subject: Some(name), ..FactFilter::default() };
    let mut facts = all(context, filter)?;
    if facts.is_empty() {
        return unknown(context, call, name);
    }
    facts.sort_by_key(|fact| (fact.valid_to.is_some(), std::cmp::Reverse(fact.valid_at)));
    listed(call, page, facts, &mut Names::new(context))
}

/// The pinned facts, the user's own pins first.
pub(super) fn pinned(context: &Context<'_>, call: &Call, page: Page) -> Result<Answer, ToolError> {
    let confidence = if context.now.is_some() { Confidence::Good } else { Confidence::Wrong };
    let now = WallTime { unix_ms: context.now.unwrap_or(0), confidence };
    match context.store.pinned(now)? {
        facts if facts.is_empty() => Ok(Answer::note(call, "Nothing is pinned.")),
        facts => listed(call, page, facts, &mut Names::new(context)),
    }
}

/// Every fact that `filter` lets through.
fn all(context: &Context<'_>, mut filter: FactFilter<'_>) -> Result<Vec<Fact>, ToolError> {
    let mut facts = Vec::new();
    loop {
        let page = context.store.facts(&filter)?;
        facts.extend(page.facts);
        match page.next {
            Some(after) if facts.len() < MOST => filter.after = Some(after),
            _ => return Ok(facts),
        }
    }
}

/// The page of `facts` that was asked for.
fn listed(
    call: &Call,
    page: Page,
    facts: Vec<Fact>,
    names: &mut Names<'_>,
) -> Result<Answer, ToolError> {
    let total = facts.len();
    let mut entries = Vec::new();
    for (at, fact) in facts.into_iter().enumerate().skip(page.skip).take(page.k) {
        entries.push(Entry { resume: call.skipping(at), ..entry(fact, names)? });
    }
    if entries.is_empty() {
        return Ok(Answer::note(call, format!("There are only {total}.")));
    }
    let seen = page.skip.saturating_add(page.k);
    let next = (total > seen).then(|| call.skipping(seen));
    Ok(Answer { call: call.to_string(), entries, next, ..Answer::default() })
}

/// A fact with when it was true, and what took its place.
fn entry(fact: Fact, names: &mut Names<'_>) -> Result<Entry, ToolError> {
    let mut about = vec![format!("fact since {}", date(fact.valid_at))];
    if fact.inferred {
        about.insert(0, "inferred, not said".to_owned());
    }
    if let Some(end) = fact.valid_to {
        about.push(format!("SUPERSEDED: true until {}", date(end)));
    }
    if let Some(by) = fact.superseded_by {
        about.push(format!("replaced by {}", id(by)));
    }
    let session = fact.session.map(|number| names.of(number)).transpose()?.flatten();
    Ok(Entry {
        id: id(fact.id),
        session: session.map(|id| id.as_str().to_owned()),
        turn: fact.turn,
        source: Some(fact.source.as_str().to_owned()),
        about: about.join(", "),
        text: fact.text,
        ..Entry::default()
    })
}

fn id(fact: FactId) -> String {
    fact.to_string()
}

/// Says whom something is known about that is called like that.
fn unknown(context: &Context<'_>, call: &Call, name: &str) -> Result<Answer, ToolError> {
    let wanted = casefold(name).into_owned();
    let mut near: Vec<String> = context.store.entities()?.into_iter().map(|one| one.name).collect();
    near.retain(|one| {
        let one = casefold(one);
        one.contains(&wanted) || wanted.contains(&*one)
    });
    near.truncate(NEAR);
    let entries = near.into_iter().map(|name| Entry {
        resume: call.to_string(),
        about: "is known".to_owned(),
        text: name,
        ..Entry::default()
    });
    let note = "Nothing is known about that by this name: try `lookup` with other words.";
    Ok(Answer { entries: entries.collect(), ..Answer::note(call, note) })
}

/// Names of sessions by their numbers.
struct Names<'a> {
    context: &'a Context<'a>,
    known: HashMap<u64, Option<SessionId>>,
}

impl<'a> Names<'a> {
    fn new(context: &'a Context<'a>) -> Self {
        Self { context, known: HashMap::new() }
    }

    fn of(&mut self, number: u64) -> Result<Option<SessionId>, ToolError> {
        if let Some(known) = self.known.get(&number) {
            return Ok(known.clone());
        }
        let name = self.context.store.session_of_number(number)?;
        self.known.insert(number, name.clone());
        Ok(name)
    }
}

/// Most facts that are read about one subject.
const MOST: usize = 1_000;
/// Most names that are suggested.
const NEAR: usize = 5;
