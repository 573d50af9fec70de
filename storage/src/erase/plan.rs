//! What goes when something is forgotten.

use std::collections::{BTreeMap, BTreeSet};

use redb::{ReadTransaction, ReadableTable as _};

use crate::conversations::erased::is_marked;
use crate::conversations::record::{ReplyRecord, SessionRecord, TurnRecord};
use crate::erase::apply::Removal;
use crate::erase::needle::Needle;
use crate::erase::walk::{Spot, state_name, walk};
use crate::erase::{ErasedItem, ErasedKind, Selection};
use crate::facts::erase::{Gone, close_over, said_in};
use crate::facts::table::{ENTITIES, FACTS};
use crate::facts::{EntityId, FactError, FactId, fold_case};
use crate::ground::database::open_if_there as open;
use crate::ground::error::{Abort, Fault, WriteError};
use crate::ground::stamp::Stamp;
use crate::ground::table::{
    RECEIPTS, REPLIES, SESSIONS, SPEAKERS, TURNS, TurnKey, seq_of, session_of, turn_key,
};
use crate::summaries::SummaryId;
use crate::summaries::erase::going;
use crate::summaries::read::for_each;
use crate::summaries::table::{STATES, TRACES, is_wordless};

/// A removal, and the same in words.
#[derive(Default)]
pub(crate) struct Plan {
    pub(crate) removal: Removal,
    pub(crate) items: Vec<ErasedItem>,
    /// Sessions whose names have the pattern in them.
    pub(crate) named: Vec<String>,
}

/// Returns what goes with `selection`.
pub(crate) fn plan(
    transaction: &ReadTransaction,
    selection: &Selection<'_>,
    at: Stamp,
) -> Result<Plan, Abort<WriteError>> {
    let mut planner = Planner {
        transaction,
        sessions: sessions(transaction)?,
        gone: Gone::default(),
        gone_summaries: Vec::new(),
        plan: Plan::default(),
    };
    planner.plan.removal.at = at;
    planner.select(selection)?;
    planner.titles()?;
    planner.facts()?;
    planner.summaries()?;
    planner.list()?;
    Ok(planner.plan)
}

struct Planner<'t> {
    transaction: &'t ReadTransaction,
    /// Sessions that can be read, by number.
    sessions: BTreeMap<u64, SessionRecord>,
    gone: Gone,
    /// Session, number and bytes of each.
    gone_summaries: Vec<(u64, u64, usize)>,
    plan: Plan,
}

impl Planner<'_> {
    fn select(&mut self, selection: &Selection<'_>) -> Result<(), Abort<WriteError>> {
        for session in selection.sessions {
            let number = self.number(session.as_str());
            let unknown = || WriteError::UnknownSession { session: session.clone() };
            self.plan.removal.sessions.insert(number.ok_or_else(unknown)?.0);
        }
        for (session, turn) in selection.turns {
            let Some((number, turns)) = self.number(session.as_str()) else {
                return Err(WriteError::UnknownSession { session: session.clone() }.into());
            };
            if *turn == 0 || *turn > turns {
                let (session, turn) = (session.clone(), *turn);
                return Err(WriteError::UnknownTurn { session, turn }.into());
            }
            if !is_marked(self.transaction, &turn_key(number, *turn))? {
                self.plan.removal.turns.insert((number, *turn));
            }
        }
        for fact in selection.facts {
            let facts = open(self.transaction, FACTS)?;
            let there = facts.map(|facts| facts.get(&fact.0.to_be_bytes()).map(|f| f.is_some()));
            if !there.transpose()?.unwrap_or(false) {
                return Err(FactError::UnknownFact { fact: *fact }.into());
            }
            self.gone.facts.insert(fact.0);
        }
        match selection.pattern {
            None => Ok(()),
            Some(pattern) => self.look_for(pattern),
        }
    }

    fn look_for(&mut self, pattern: &str) -> Result<(), Abort<WriteError>> {
        let needle = Needle::new(pattern.as_bytes()).ok_or(WriteError::BlankPattern)?;
        let (plan, gone) = (&mut self.plan, &mut self.gone);
        walk(self.transaction, &needle, |spot| match spot {
            Spot::Name(name) => plan.named.push(name),
            Spot::Title(session) => drop(plan.removal.titles.insert(session)),
            Spot::Turn(session, turn)
            | Spot::Reply(session, turn)
            | Spot::Receipt(session, turn)
            | Spot::Speaker(session, turn) => drop(plan.removal.turns.insert((session, turn))),
            Spot::Fact(id) => drop(gone.facts.insert(id)),
            Spot::Entity(id) => drop(gone.entities.insert(id)),
            Spot::Summary(session, id) => drop(plan.removal.summaries.insert((session, id))),
            Spot::State(..) | Spot::Trace(..) => plan.removal.quoted = true,
        })?;
        Ok(())
    }

    /// The number of a session, and of its turns.
    fn number(&self, id: &str) -> Option<(u64, u64)> {
        let found = self.sessions.values().find(|session| session.id == id);
        found.map(|session| (session.number, session.turns))
    }

    /// A title that repeats words of a turn goes with it; what goes as a whole isn't named twice.
    fn titles(&mut self) -> Result<(), Abort<WriteError>> {
        let removal = &mut self.plan.removal;
        removal.turns.retain(|(session, _)| !removal.sessions.contains(session));
        for (session, turn) in &removal.turns {
            let Some(record) = self.sessions.get(session) else { continue };
            if !removal.titles.contains(session)
                && repeats(self.transaction, &record.title, (*session, *turn))?
            {
                removal.titles.insert(*session);
            }
        }
        removal.titles.retain(|session| !removal.sessions.contains(session));
        Ok(())
    }

    /// Adds what facts go with the sessions and turns, and what goes with those.
    fn facts(&mut self) -> Result<(), Abort<WriteError>> {
        let removal = &mut self.plan.removal;
        for session in &removal.sessions {
            said_in(self.transaction, *session, 0..=u64::MAX, &mut self.gone)?;
        }
        for (session, turn) in &removal.turns {
            said_in(self.transaction, *session, *turn..=*turn, &mut self.gone)?;
        }
        close_over(self.transaction, &mut self.gone)?;
        let gone = std::mem::take(&mut self.gone);
        (removal.facts, removal.entities) = (gone.facts, gone.entities);
        Ok(())
    }

    /// Adds what summaries go with the turns, and what is above them.
    fn summaries(&mut self) -> Result<(), Abort<WriteError>> {
        let removal = &mut self.plan.removal;
        let (mut turns, mut named) = (BTreeMap::new(), BTreeMap::new());
        for (session, turn) in &removal.turns {
            turns.entry(*session).or_insert_with(BTreeSet::new).insert(*turn);
        }
        for (session, id) in std::mem::take(&mut removal.summaries) {
            named.entry(session).or_insert_with(BTreeSet::new).insert(id);
        }
        let none = BTreeSet::new();
        for session in turns.keys().chain(named.keys()).copied().collect::<BTreeSet<u64>>() {
            if removal.sessions.contains(&session) {
                continue;
            }
            let of =
                |map: &BTreeMap<u64, BTreeSet<u64>>| map.get(&session).unwrap_or(&none).clone();
            for (id, bytes) in going(self.transaction, session, &of(&turns), &of(&named))? {
                removal.summaries.insert((session, id));
                self.gone_summaries.push((session, id, bytes));
            }
        }
        Ok(())
    }

    /// Names everything.
    fn list(&mut self) -> Result<(), Abort<WriteError>> {
        let removal = std::mem::take(&mut self.plan.removal);
        for session in &removal.sessions {
            let name = self.name(*session);
            let bytes = self.transaction.open_table(SESSIONS)?;
            let bytes = bytes.get(name.as_bytes())?.map_or(0, |bytes| bytes.value().len());
            self.item(ErasedKind::Session, name, bytes);
            self.list_turns(*session, 0..=u64::MAX)?;
            for_each(self.transaction, *session, |id, _, bytes| {
                self.gone_summaries.push((*session, id, bytes));
                Ok(())
            })?;
        }
        for session in &removal.titles {
            let title = self.sessions.get(session).map_or(0, |record| record.title.len());
            self.item(ErasedKind::Title, self.name(*session), title);
        }
        for (session, turn) in &removal.turns {
            self.list_turns(*session, *turn..=*turn)?;
        }
        if let Some(facts) = open(self.transaction, FACTS)? {
            for id in &removal.facts {
                let bytes = facts.get(&id.to_be_bytes())?.map_or(0, |bytes| bytes.value().len());
                self.item(ErasedKind::Fact, FactId(*id).to_string(), bytes);
            }
        }
        if let Some(entities) = open(self.transaction, ENTITIES)? {
            for id in &removal.entities {
                let bytes = entities.get(&id.to_be_bytes())?.map_or(0, |bytes| bytes.value().len());
                self.item(ErasedKind::Entity, EntityId(*id).to_string(), bytes);
            }
        }
        for (session, id, bytes) in std::mem::take(&mut self.gone_summaries) {
            let name = format!("{}/{}", self.name(session), SummaryId(id));
            self.item(ErasedKind::Summary, name, bytes);
        }
        if !removal.is_empty() {
            self.list_states()?;
        }
        self.plan.removal = removal;
        self.plan.removal.bytes = self.plan.items.iter().map(|item| item.bytes).sum();
        Ok(())
    }

    fn list_turns(
        &mut self,
        session: u64,
        turns: std::ops::RangeInclusive<u64>,
    ) -> Result<(), Abort<WriteError>> {
        let (first, last) = (turn_key(session, *turns.start()), turn_key(session, *turns.end()));
        let name = self.name(session);
        for (kind, table, end) in [
            (ErasedKind::Turn, TURNS, "/user"),
            (ErasedKind::Reply, REPLIES, "/assistant"),
            (ErasedKind::Receipt, RECEIPTS, ""),
            (ErasedKind::Speaker, SPEAKERS, ""),
        ] {
            for entry in self.transaction.open_table(table)?.range::<&TurnKey>(&first..=&last)? {
                let (key, bytes) = entry?;
                debug_assert_eq!(session_of(key.value()), session);
                let id = format!("{name}/{}{end}", seq_of(key.value()));
                self.item(kind, id, bytes.value().len());
            }
        }
        Ok(())
    }

    /// All traces and states with words: each may quote what goes.
    fn list_states(&mut self) -> Result<(), Abort<WriteError>> {
        if let Some(states) = open(self.transaction, STATES)? {
            for entry in states.iter()? {
                let (key, bytes) = entry?;
                if is_wordless(key.value()) {
                    continue;
                }
                let id = state_name(key.value(), |session| self.name(session));
                self.item(ErasedKind::State, id, bytes.value().len());
            }
        }
        if let Some(traces) = open(self.transaction, TRACES)? {
            for entry in traces.iter()? {
                let (key, bytes) = entry?;
                let (session, turn) = (session_of(key.value()), seq_of(key.value()));
                let id = format!("{}/{turn}/trace", self.name(session));
                self.item(ErasedKind::Trace, id, bytes.value().len());
            }
        }
        Ok(())
    }

    fn item(&mut self, kind: ErasedKind, id: String, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.plan.items.push(ErasedItem { kind, id, bytes });
    }

    /// The name of a session, or its number where that can't be read.
    fn name(&self, session: u64) -> String {
        self.sessions
            .get(&session)
            .map_or_else(|| format!("#{session}"), |record| record.id.clone())
    }
}

fn sessions(
    transaction: &ReadTransaction,
) -> Result<BTreeMap<u64, SessionRecord>, Abort<WriteError>> {
    let mut found = BTreeMap::new();
    for entry in transaction.open_table(SESSIONS)?.iter()? {
        let (id, bytes) = entry?;
        match SessionRecord::read(id.value(), bytes.value()) {
            Ok(record) => drop(found.insert(record.number, record)),
            Err(Fault::Damaged { .. }) => {}
            Err(fault) => return Err(fault.into()),
        }
    }
    Ok(found)
}

/// Tells whether a title says nothing but words of a turn, cut perhaps.
fn repeats(
    transaction: &ReadTransaction,
    title: &str,
    (session, turn): (u64, u64),
) -> Result<bool, Fault> {
    let title = fold_case(title.trim_end_matches(['.', '\u{2026}']).trim());
    if title.is_empty() {
        return Ok(false);
    }
    let key = turn_key(session, turn);
    let (turns, replies) = (transaction.open_table(TURNS)?, transaction.open_table(REPLIES)?);
    let (words, reply) = (turns.get(&key)?, replies.get(&key)?);
    let words = words.as_ref().map(|bytes| TurnRecord::view(session, turn, bytes.value()));
    let reply = reply.as_ref().map(|bytes| ReplyRecord::view(session, turn, bytes.value()));
    // A damaged one has no words to compare.
    let words = words.and_then(Result::ok).map(|turn| fold_case(turn.user));
    let reply = reply.and_then(Result::ok).map(|reply| fold_case(reply.text));
    Ok(words.into_iter().chain(reply).any(|text| text.contains(&title)))
}
