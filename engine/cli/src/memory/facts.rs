//! Facts: adding, reading, listing, replacing.

use std::error::Error;
use std::io::Read;

use garret::config::Config;
use garret::open;
use garret::remember::fading;
use garret_core::id::{SessionId, TurnSeq};
use garret_core::time::Clock as _;
use garret_hal::clock::SystemClock;
use garret_storage::search::Source;
use garret_storage::{
    Added, Fact, FactFilter, FactId, FactSource, MAX_BYTES, NewFact, Origin, Outcome, Pin, Store,
};
use serde::Serialize;

use super::embed;
use super::id::Id;
use crate::args::memory::{self, Add, Get, List, Statement, Supersede};
use crate::dates::when;
use crate::output;

type Done = Result<(), Box<dyn Error>>;

/// `garret memory add`.
pub(super) fn add(config: &Config, add: &Add) -> Done {
    let text = text(&add.text)?;
    let fact = TypedFact::new(&text, &add.statement)?;
    let store = open::store(config)?;
    let now = SystemClock::new().wall();
    let added = store.add_fact(&fact.new_fact(), now)?;
    if added.outcome == Outcome::Restated {
        // What is said again is as present as what was recalled.
        store.touch(&[(added.id, now.unix_ms)])?;
    }
    tell_added(&added, add.statement.json)?;
    embed::after_add(config, &store);
    Ok(())
}

/// `garret memory supersede`.
pub(super) fn supersede(config: &Config, new: &Supersede) -> Done {
    let old = match new.id.parse()? {
        Id::Fact(id) => id,
        Id::Message { .. } => return Err("a message stays said: only a fact is superseded".into()),
    };
    let text = text(&new.text)?;
    let fact = TypedFact::new(&text, &new.statement)?;
    let store = open::existing_store(config)?;
    let added = store.supersede(old, &fact.new_fact(), SystemClock::new().wall());
    tell_added(&added.map_err(|error| known(error, old))?, new.statement.json)?;
    embed::after_add(config, &store);
    Ok(())
}

/// An error about a fact that isn't there says where to look.
fn known(error: garret_storage::WriteError, id: FactId) -> Box<dyn Error> {
    use garret_storage::{FactError, WriteError};
    match error {
        WriteError::Fact(FactError::UnknownFact { .. }) => unknown(id).into(),
        error => error.into(),
    }
}

fn unknown(id: FactId) -> String {
    format!("there is no fact {id}: see `garret memory list`")
}

/// `garret memory get`.
pub(super) fn get(store: &Store, get: &Get) -> Done {
    match get.id.parse()? {
        Id::Fact(id) => {
            let fact = store.fact(id)?.ok_or_else(|| unknown(id))?;
            show(&ShownFact::of(store, &fact)?, get.json)
        }
        Id::Message { session, turn, source } => message(store, &session, turn, source, get.json),
    }
}

/// `garret memory history`.
pub(super) fn history(store: &Store, get: &Get) -> Done {
    let Id::Fact(id) = get.id.parse()? else {
        return Err("a message has no history: give the id of a fact, such as f12".into());
    };
    let facts = store.history(id)?;
    if facts.is_empty() {
        return Err(unknown(id).into());
    }
    facts.iter().try_for_each(|fact| {
        let shown = ShownFact::of(store, fact)?;
        if get.json { output::say_json(&shown) } else { Ok(output::say(&shown.in_short())?) }
    })
}

/// `garret memory pin` and `unpin`.
pub(super) fn pin(store: &Store, given: &memory::Pin, pin: Pin) -> Done {
    let id = match given.id.parse()? {
        Id::Fact(id) => id,
        Id::Message { .. } => return Err("only facts are pinned: give the id of one".into()),
    };
    store.pin(id, pin).map_err(|error| known(error, id))?;
    let fact = ShownFact::of(store, &store.fact(id)?.ok_or_else(|| unknown(id))?)?;
    if given.json { output::say_json(&fact) } else { Ok(output::say(&fact.in_short())?) }
}

/// The facts that every prompt has, as far as there is room.
fn pinned(store: &Store, json: bool) -> Done {
    let facts = store.pinned(SystemClock::new().wall())?;
    let facts =
        facts.iter().map(|fact| ShownFact::of(store, fact)).collect::<Result<Vec<_>, _>>()?;
    if json {
        return output::say_json(&Page { facts, next: None });
    }
    if facts.is_empty() {
        output::note("No fact is pinned: `garret memory pin` does that.");
    }
    Ok(facts.iter().try_for_each(|fact| output::say(&fact.in_short()))?)
}

/// `garret memory list`.
pub(super) fn list(store: &Store, list: &List) -> Done {
    if list.pinned {
        return pinned(store, list.json);
    }
    let session: Option<SessionId> = list.session.as_deref().map(str::parse).transpose()?;
    if let Some(id) = &session
        && store.session(id)?.is_none()
    {
        return Err(format!("there is no conversation `{id}`: see `garret session list`").into());
    }
    let after = match list.after.as_deref().map(str::parse).transpose()? {
        Some(Id::Message { .. }) => return Err("--after takes the id of a fact".into()),
        Some(Id::Fact(id)) => Some(id),
        None => None,
    };
    let page = store.facts(&FactFilter {
        as_of: list.as_of,
        latest: list.latest,
        kind: list.kind.map(Into::into),
        source: list.source.as_deref().map(FactSource::from_name),
        subject: list.subject.as_deref(),
        predicate: list.predicate.as_deref(),
        session: session.as_ref(),
        after,
        limit: list.limit.into(),
    })?;
    let facts = page.facts.iter().map(|fact| ShownFact::of(store, fact));
    let facts = facts.collect::<Result<Vec<_>, _>>()?;
    if list.json {
        let next = page.next.map(|id| id.to_string());
        return output::say_json(&Page { facts, next });
    }
    if facts.is_empty() {
        output::note("No such facts: `garret memory add` stores one.");
    }
    for fact in &facts {
        output::say(&fact.in_short())?;
    }
    if let Some(next) = page.next {
        output::note(&format!("There are more: --after {next}"));
    }
    Ok(())
}

/// A text as it was given, or standard input for `-`.
fn text(given: &str) -> Result<String, Box<dyn Error>> {
    if given != "-" {
        return Ok(given.to_owned());
    }
    let mut bytes = Vec::new();
    let most = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    std::io::stdin().lock().take(most).read_to_end(&mut bytes)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let byte = error.utf8_error().valid_up_to() + 1;
        format!("standard input isn't UTF-8 (byte {byte}): convert it")
    })?;
    Ok(text.trim().to_owned())
}

/// A fact as it was typed.
struct TypedFact<'a> {
    text: &'a str,
    statement: &'a Statement,
    session: Option<(SessionId, TurnSeq)>,
    derived_from: Vec<FactId>,
}

impl<'a> TypedFact<'a> {
    fn new(text: &'a str, statement: &'a Statement) -> Result<Self, Box<dyn Error>> {
        let session = match (&statement.session, statement.turn) {
            (Some(session), Some(turn)) => Some((session.parse()?, turn)),
            _ => None,
        };
        let derived_from = statement.from.iter().map(|id| match id.parse()? {
            Id::Fact(id) => Ok(id),
            Id::Message { .. } => Err("--from takes the ids of facts".into()),
        });
        let derived_from = derived_from.collect::<Result<_, Box<dyn Error>>>()?;
        Ok(Self { text, statement, session, derived_from })
    }

    fn new_fact(&self) -> NewFact<'_> {
        let statement = self.statement;
        NewFact {
            text: self.text,
            source: FactSource::from_name(statement.source.as_str()),
            origin: self.session.as_ref().map(|(session, turn)| Origin { session, turn: *turn }),
            quote: statement.quote.as_deref(),
            subject: statement.subject.as_deref(),
            predicate: statement.predicate.as_deref(),
            object: statement.object.as_deref(),
            valid_at: statement.valid_at,
            valid_to: statement.valid_to,
            inferred: statement.inferred,
            derived_from: &self.derived_from,
            salience: statement.salience,
            ..NewFact::default()
        }
    }
}

fn tell_added(added: &Added, json: bool) -> Done {
    let stored = added.outcome == Outcome::Stored;
    let ids = |ids: &[FactId]| ids.iter().map(FactId::to_string).collect::<Vec<_>>();
    let superseded = ids(&added.superseded);
    let invalidated = ids(&added.invalidated);
    let id = added.id.to_string();
    if json {
        return output::say_json(&AddedReport { id, stored, superseded, invalidated });
    }
    if !stored {
        output::note("(said before: nothing new was stored)");
    }
    for (what, ids) in [("replaces", superseded), ("ends with it:", invalidated)] {
        if !ids.is_empty() {
            output::note(&format!("({what} {})", ids.join(", ")));
        }
    }
    Ok(output::say(&id)?)
}

/// The fate of an added fact, on the wire.
#[derive(Serialize)]
struct AddedReport {
    id: String,
    stored: bool,
    superseded: Vec<String>,
    invalidated: Vec<String>,
}

#[derive(Serialize)]
struct Page {
    facts: Vec<ShownFact>,
    next: Option<String>,
}

/// A fact on the wire.
#[derive(Serialize)]
struct ShownFact {
    id: String,
    text: String,
    kind: &'static str,
    source: String,
    inferred: bool,
    session: Option<String>,
    turn: Option<TurnSeq>,
    quote: Option<String>,
    grounded: bool,
    subject: Option<String>,
    predicate: Option<String>,
    object: Option<String>,
    valid_at: String,
    valid_to: Option<String>,
    superseded_by: Option<String>,
    invalidated_by: Option<String>,
    latest: bool,
    stage: &'static str,
    recorded_at: String,
    salience: f32,
    confidence: f32,
    pinned: &'static str,
}

impl ShownFact {
    fn of(store: &Store, fact: &Fact) -> Result<Self, Box<dyn Error>> {
        let session = fact.session.map(|number| store.session_of_number(number)).transpose()?;
        let subject = fact.subject.map(|id| store.entity(id)).transpose()?.flatten();
        Ok(Self {
            id: fact.id.to_string(),
            text: fact.text.clone(),
            kind: fact.kind.as_str(),
            source: fact.source.to_string(),
            inferred: fact.inferred,
            session: session.flatten().map(|id| id.to_string()),
            turn: fact.turn,
            quote: fact.quote.clone(),
            grounded: fact.grounded,
            subject: subject.map(|entity| entity.name),
            predicate: Some(fact.predicate.clone()).filter(|predicate| !predicate.is_empty()),
            object: fact.object.clone(),
            valid_at: when(fact.valid_at),
            valid_to: fact.valid_to.map(when),
            superseded_by: fact.superseded_by.map(|id| id.to_string()),
            invalidated_by: fact.invalidated_by.map(|id| id.to_string()),
            latest: fact.latest,
            stage: fading::stage(store, fact, super::search::now())?.as_str(),
            recorded_at: when(fact.recorded_at),
            salience: fact.salience,
            confidence: fact.confidence,
            pinned: fact.pinned.as_str(),
        })
    }

    /// One line: the id, since when and until when it is true, who said it, how present it is,
    /// what.
    fn in_short(&self) -> String {
        let day = |moment: &str| moment.get(..10).unwrap_or(moment).to_owned();
        let until = self.valid_to.as_deref().map_or_else(|| " ".repeat(10), day);
        let text: Vec<_> = self.text.split_whitespace().collect();
        let id = &self.id;
        let from = day(&self.valid_at);
        let source = &self.source;
        let stage = self.stage;
        format!("{id:<6} {from} - {until}  {source:<9}  {stage:<9}  {}", text.join(" "))
    }

    fn pinned_by(&self) -> Option<&'static str> {
        match self.pinned {
            "none" => None,
            "user" => Some("the user"),
            _ => Some("rules and companions"),
        }
    }

    fn in_full(&self) -> String {
        let mut text = format!("{}\n", self.text);
        let mut line = |name: &str, value: Option<&str>| {
            if let Some(value) = value {
                text += &format!("  {name:<14} {value}\n");
            }
        };
        let said = self.session.as_ref().zip(self.turn);
        let said = said.map(|(session, turn)| format!("{session}, turn {turn}"));
        let salience = format!("{} of 10", self.salience);
        line("id", Some(&self.id));
        line("kind", Some(self.kind));
        line("source", Some(&self.source));
        line("said in", said.as_deref());
        line("quote", self.quote.as_deref());
        line("subject", self.subject.as_deref());
        line("predicate", self.predicate.as_deref());
        line("object", self.object.as_deref());
        line("true from", Some(&self.valid_at));
        line("true until", self.valid_to.as_deref());
        line("superseded by", self.superseded_by.as_deref());
        line("ended by", self.invalidated_by.as_deref());
        line("recorded", Some(&self.recorded_at));
        line("presence", Some(self.stage));
        line("salience", Some(&salience));
        line("pinned by", self.pinned_by());
        text.truncate(text.trim_end().len());
        text
    }
}

fn show(fact: &ShownFact, json: bool) -> Done {
    if json { output::say_json(fact) } else { Ok(output::say(&fact.in_full())?) }
}

/// Prints one message of a conversation.
fn message(store: &Store, session: &SessionId, turn: TurnSeq, source: Source, json: bool) -> Done {
    let none = || format!("there is no conversation `{session}`: see `garret session list`");
    store.session(session)?.ok_or_else(none)?;
    let found = store.with_turns(session, turn, |views| {
        let view = views.first().filter(|view| view.seq == turn)?;
        match source {
            Source::User => Some((view.user.to_owned(), view.accepted_ms)),
            _ => view.reply.map(|reply| (reply.text.to_owned(), reply.finished_ms)),
        }
    })?;
    let id = Id::Message { session: session.clone(), turn, source };
    let (text, at_ms) = found
        .ok_or_else(|| format!("there is no message {id}: see `garret session show {session}`"))?;
    if !json {
        return Ok(output::say(&format!("{text}\n  {id}, {}", when(at_ms)))?);
    }
    output::say_json(&Message {
        id: id.to_string(),
        text: &text,
        source: source.as_str(),
        session: session.as_str(),
        turn,
        valid_at: when(at_ms),
    })
}

/// A message on the wire.
#[derive(Serialize)]
struct Message<'a> {
    id: String,
    text: &'a str,
    source: &'static str,
    session: &'a str,
    turn: TurnSeq,
    valid_at: String,
}
