//! What facts should be, worked out the slow way: every fact in one list, every rule by looking at
//! all of them.

use garret_core::time::{Confidence, WallTime};
use garret_storage::{
    FactError, FactFilter, FactId, FactKind, NewFact, Origin, Outcome, Store, WriteError,
};

use crate::model::id;

pub(crate) const SUBJECTS: [&str; 3] = ["Ada", "Bob", "Stra\u{df}e"];
/// One value at a time, many, many.
pub(crate) const PREDICATES: [&str; 3] = ["lives_in", "likes", "about"];
pub(crate) const VALUES: [&str; 4] = ["Oslo", "tea", "C++", "\u{65e5}\u{672c}"];
pub(crate) const MOMENTS: i64 = 12;

/// A fact by small numbers, so that they often meet.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    /// None for a plain note.
    pub(crate) slot: Option<(usize, usize)>,
    pub(crate) value: usize,
    pub(crate) start: Option<i64>,
    pub(crate) length: Option<i64>,
    pub(crate) now: i64,
    pub(crate) wrong_clock: bool,
    pub(crate) inferred: bool,
    /// One of the facts there are, by a number that is taken modulo theirs.
    pub(crate) derived_from: Option<u64>,
    /// Said in the first turn of this session.
    pub(crate) session: Option<u8>,
}

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Add(Vec<Said>),
    Supersede {
        old: u64,
        new: Said,
    },
    Retract {
        fact: u64,
        at: i64,
    },
    Retire {
        loser: u64,
        survivor: u64,
    },
    Touch {
        fact: u64,
        at: i64,
    },
    Accept {
        session: u8,
    },
    Delete {
        session: u8,
    },
    /// Moves what waits in the journal into the records.
    Fold,
    /// Closes the store and opens it again.
    Reopen,
    /// Opens the store anew without closing it.
    Kill,
}

/// What a call answered, without the words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Id, whether it is new, what it superseded and invalidated (in order of their ids).
    Added(Vec<(u64, bool, Vec<u64>, Vec<u64>)>),
    Done,
    Unknown,
    UnknownSession,
    Superseded,
    NotDuplicates,
    EndsBeforeStart,
}

/// A fact as the reference has it, and as it is read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) text: String,
    pub(crate) kind: FactKind,
    pub(crate) slot: Option<(String, String)>,
    pub(crate) inferred: bool,
    pub(crate) start: i64,
    pub(crate) end: Option<i64>,
    pub(crate) heir: Option<u64>,
    pub(crate) invalidated_by: Option<u64>,
    pub(crate) session: Option<u64>,
    pub(crate) latest: bool,
    pub(crate) used: (u64, Option<i64>),
}

impl Row {
    fn holds(&self, at: i64) -> bool {
        self.start <= at && self.end.is_none_or(|end| at < end)
    }

    /// Whether only one of the two can be true at a time.
    fn excludes(&self, other: &Self) -> bool {
        match (&self.slot, &other.slot) {
            (None, None) => self.text == other.text,
            (Some(a), Some(b)) => a == b && (a.1 == "lives_in" || self.text == other.text),
            _ => false,
        }
    }
}

/// The reference. Fact `n` is `facts[n - 1]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Model {
    pub(crate) facts: Vec<Row>,
    /// What each fact was derived from.
    sources: Vec<Option<u64>>,
    /// Numbers of the sessions there are, by name.
    sessions: std::collections::BTreeMap<u8, u64>,
    created: u64,
}

type Done = (Vec<u64>, Vec<u64>);

impl Model {
    pub(crate) fn apply(&mut self, op: &Op) -> Answer {
        let before = self.clone();
        let answer = match op {
            Op::Add(all) => {
                let added = all.iter().map(|said| self.add(said)).collect::<Result<Vec<_>, _>>();
                added.map_or_else(|refused| refused, Answer::Added)
            }
            Op::Supersede { old, new } => {
                let added = self.supersede(self.named(*old), new);
                added.map_or_else(|refused| refused, |added| Answer::Added(vec![added]))
            }
            Op::Retract { fact, at } => match self.named(*fact) {
                0 => Answer::Unknown,
                fact => {
                    self.close(fact, *at, None, fact, &mut Done::default());
                    Answer::Done
                }
            },
            Op::Retire { loser, survivor } => {
                self.retire(self.named(*loser), self.named(*survivor))
            }
            Op::Touch { fact, at } => {
                let fact = self.named(*fact);
                if let Some(row) = self.facts.get_mut(index(fact)) {
                    row.used = (row.used.0 + 1, row.used.1.max(Some(*at)));
                }
                Answer::Done
            }
            Op::Accept { session } => {
                if !self.sessions.contains_key(session) {
                    self.created += 1;
                    self.sessions.insert(*session, self.created);
                }
                Answer::Done
            }
            Op::Delete { session } => match self.sessions.remove(session) {
                Some(_) => Answer::Done,
                None => Answer::UnknownSession,
            },
            Op::Fold | Op::Reopen | Op::Kill => Answer::Done,
        };
        if !matches!(answer, Answer::Added(_) | Answer::Done) {
            *self = before;
        }
        answer
    }

    /// The fact that a number of an operation means; 0 when there is none.
    pub(crate) fn named(&self, number: u64) -> u64 {
        match self.facts.len() as u64 {
            0 => 0,
            facts => number % facts + 1,
        }
    }

    fn row(&self, said: &Said) -> Result<Row, Answer> {
        let session = match said.session {
            None => None,
            Some(name) => Some(*self.sessions.get(&name).ok_or(Answer::UnknownSession)?),
        };
        let slot = said.slot.map(|(s, p)| (SUBJECTS[s].to_owned(), PREDICATES[p].to_owned()));
        Ok(Row {
            text: VALUES[said.value].to_owned(),
            kind: FactKind::Asserts,
            slot,
            inferred: said.inferred,
            start: said.start.unwrap_or(said.now),
            end: None,
            heir: None,
            invalidated_by: None,
            session,
            latest: true,
            used: (0, None),
        })
    }

    fn add(&mut self, said: &Said) -> Result<(u64, bool, Vec<u64>, Vec<u64>), Answer> {
        // The session is looked at only where a fact is written.
        let mut row = self.row(&Said { session: None, ..said.clone() })?;
        self.start(said, &mut row, i64::MIN)?;
        let same = self.ids().find(|id| {
            let other = &self[*id];
            row.excludes(other) && other.holds(row.start) && restates(&row, other)
        });
        if let Some(same) = same {
            let other = &self[same];
            let id = if other.end.is_none() { other.heir.unwrap_or(same) } else { same };
            return Ok((id, false, Vec::new(), Vec::new()));
        }
        row.session = self.row(said)?.session;
        self.insert(said, row, None)
    }

    fn supersede(
        &mut self,
        old: u64,
        said: &Said,
    ) -> Result<(u64, bool, Vec<u64>, Vec<u64>), Answer> {
        if old == 0 {
            return Err(Answer::Unknown);
        }
        if self[old].heir.is_some() {
            return Err(Answer::Superseded);
        }
        let mut row = self.row(&Said { session: None, ..said.clone() })?;
        if row.slot.is_none() {
            row.slot = self[old].slot.clone();
        }
        self.start(said, &mut row, self[old].start)?;
        let same = self.ids().find(|id| {
            let other = &self[*id];
            *id != old
                && row.excludes(other)
                && other.holds(row.start)
                && other.heir.is_none()
                && restates(&row, other)
        });
        if let Some(same) = same {
            let mut done = Done::default();
            self.close(old, row.start, Some(same), same, &mut done);
            return Ok((same, false, done.0, done.1));
        }
        row.session = self.row(said)?.session;
        self.insert(said, row, Some(old))
    }

    fn start(&self, said: &Said, row: &mut Row, least: i64) -> Result<(), Answer> {
        if said.start.is_none() && said.wrong_clock {
            let lane = self.facts.iter().filter(|other| row.excludes(other));
            let held = lane.filter(|other| other.end != Some(other.start));
            let newest = held.map(|other| other.start).max().unwrap_or(i64::MIN);
            row.start = row.start.max(newest).max(least);
        }
        row.end = said.length.map(|length| said.start.unwrap_or(said.now) + length);
        match row.end {
            Some(end) if end <= row.start => Err(Answer::EndsBeforeStart),
            _ => Ok(()),
        }
    }

    fn insert(
        &mut self,
        said: &Said,
        mut row: Row,
        old: Option<u64>,
    ) -> Result<(u64, bool, Vec<u64>, Vec<u64>), Answer> {
        let id = self.facts.len() as u64 + 1;
        let source = said.derived_from.map(|number| self.named(number)).filter(|id| *id != 0);
        let slot = self.facts.iter().filter(|other| other.slot.is_some() && other.slot == row.slot);
        let extends = slot.clone().any(|other| !row.excludes(other));
        let mut done = Done::default();
        if let Some(old) = old {
            self.close(old, row.start, Some(id), id, &mut done);
        }
        let lane: Vec<u64> = self.ids().filter(|other| row.excludes(&self[*other])).collect();
        let holder = lane.iter().copied().find(|other| self[*other].holds(row.start));
        let yields = |holder: u64| row.inferred && old.is_none() && !self[holder].inferred;
        let next = lane.iter().copied().filter(|other| {
            let other = &self[*other];
            other.start > row.start && other.end != Some(other.start)
        });
        let next = next.min_by_key(|other| self[*other].start);
        if let Some(holder) = holder.filter(|holder| yields(*holder)) {
            (row.end, row.heir) = (Some(row.start), Some(holder));
        } else {
            if let Some(next) =
                next.filter(|next| row.end.is_none_or(|end| self[*next].start < end))
            {
                row.end = Some(self[next].start);
                let replaced: Vec<u64> = old.into_iter().chain(holder).collect();
                let leads_back = |next: u64| replaced.iter().any(|id| self.leads_to(next, *id));
                row.heir = Some(next).filter(|next| !leads_back(*next));
            }
            if let Some(holder) = holder {
                self.close(holder, row.start, Some(id), id, &mut done);
            }
        }
        row.latest = row.end.is_none() && row.heir.is_none();
        row.kind = match (row.inferred, done.0.is_empty()) {
            (true, _) => FactKind::Derives,
            (false, false) => FactKind::Supersedes,
            (false, true) if extends => FactKind::Extends,
            (false, true) => FactKind::Asserts,
        };
        self.facts.push(row);
        self.sources.push(source);
        Ok((id, true, done.0, done.1))
    }

    fn leads_to(&self, from: u64, to: u64) -> bool {
        from == to || self[from].heir.is_some_and(|heir| self.leads_to(heir, to))
    }

    /// Ends a fact, then by the same rule everything that ends with it, until nothing changes.
    fn close(&mut self, id: u64, at: i64, heir: Option<u64>, by: u64, done: &mut Done) {
        let row = &mut self.facts[index(id)];
        let end = at.max(row.start);
        let shrinks = row.end.is_none_or(|old| end < old);
        if shrinks {
            row.end = Some(end);
            row.latest = false;
        }
        if let Some(heir) = heir {
            (row.heir, row.latest) = (Some(heir), false);
            done.0.push(id);
        }
        if !shrinks {
            return;
        }
        let by = if heir.is_some() { by } else { id };
        self.end_dependents(id, end, by, done);
    }

    fn end_dependents(&mut self, id: u64, end: i64, by: u64, done: &mut Done) {
        let duplicates: Vec<u64> = self
            .ids()
            .filter(|other| self[*other].heir == Some(id) && self[*other].end.is_none())
            .collect();
        for duplicate in duplicates {
            let row = &mut self.facts[index(duplicate)];
            let end = end.max(row.start);
            row.end = Some(end);
            done.0.push(duplicate);
            self.end_dependents(duplicate, end, duplicate, done);
        }
        let derived: Vec<u64> =
            self.ids().filter(|other| self.sources[index(*other)] == Some(id)).collect();
        for derived in derived {
            let row = &mut self.facts[index(derived)];
            let end = end.max(row.start);
            if row.end.is_none_or(|old| end < old) {
                (row.end, row.invalidated_by, row.latest) = (Some(end), Some(by), false);
                done.1.push(derived);
                self.end_dependents(derived, end, by, done);
            }
        }
    }

    fn retire(&mut self, loser: u64, survivor: u64) -> Answer {
        if loser == 0 || survivor == 0 {
            return Answer::Unknown;
        }
        let survivor = match &self[survivor] {
            row if row.end.is_none() => row.heir.unwrap_or(survivor),
            _ => survivor,
        };
        let (a, b) = (&self[loser], &self[survivor]);
        if loser == survivor || !a.latest || !b.latest || a.slot != b.slot {
            return Answer::NotDuplicates;
        }
        let used = a.used;
        for row in &mut self.facts {
            if row.heir == Some(loser) && row.end.is_none() {
                row.heir = Some(survivor);
            }
        }
        let row = &mut self.facts[index(loser)];
        (row.heir, row.latest) = (Some(survivor), false);
        let row = &mut self.facts[index(survivor)];
        row.used = (row.used.0 + used.0, row.used.1.max(used.1));
        Answer::Done
    }

    fn ids(&self) -> impl DoubleEndedIterator<Item = u64> + use<> {
        1..=self.facts.len() as u64
    }
}

impl std::ops::Index<u64> for Model {
    type Output = Row;

    fn index(&self, id: u64) -> &Row {
        &self.facts[index(id)]
    }
}

fn index(id: u64) -> usize {
    usize::try_from(id).unwrap().wrapping_sub(1)
}

fn restates(new: &Row, holder: &Row) -> bool {
    new.text == holder.text && (new.inferred || !holder.inferred)
}

/// Performs `op`; `model` is as it was before. A refusal the model knows is an answer.
pub(crate) fn apply(store: &Store, model: &Model, op: &Op) -> Result<Answer, WriteError> {
    let names: Vec<_> = (0..4).map(id).collect();
    let done = match op {
        Op::Add(all) => {
            let sources: Vec<_> = all.iter().map(|said| source(model, said)).collect();
            let facts: Vec<_> = all
                .iter()
                .zip(&sources)
                .map(|(said, source)| new_fact(said, source, &names))
                .collect();
            // One clock for a batch.
            store.add_facts(&facts, wall(&all[0])).map(|added| Answer::Added(answers(added)))
        }
        Op::Supersede { old, new } => {
            let source = source(model, new);
            let fact = new_fact(new, &source, &names);
            let old = FactId(model.named(*old));
            store.supersede(old, &fact, wall(new)).map(|added| Answer::Added(answers(vec![added])))
        }
        Op::Retract { fact, at } => {
            store.retract(FactId(model.named(*fact)), *at).map(|()| Answer::Done)
        }
        Op::Retire { loser, survivor } => {
            let (loser, survivor) = (model.named(*loser), model.named(*survivor));
            store.retire_duplicate(FactId(loser), FactId(survivor)).map(|()| Answer::Done)
        }
        Op::Touch { fact, at } => {
            store.touch(&[(FactId(model.named(*fact)), *at)]).map(|()| Answer::Done)
        }
        Op::Accept { session } => {
            let at = WallTime { unix_ms: 0, confidence: Confidence::Good };
            store.accept(&id(*session), "Oslo, tea", at).map(|_| Answer::Done)
        }
        Op::Delete { session } => store.delete(&id(*session)).map(|()| Answer::Done),
        Op::Fold => store.fold().map(|()| Answer::Done),
        Op::Reopen | Op::Kill => unreachable!("whoever has the store reopens it"),
    };
    done.or_else(|error| match error {
        WriteError::UnknownSession { .. } => Ok(Answer::UnknownSession),
        WriteError::Fact(FactError::UnknownFact { .. }) => Ok(Answer::Unknown),
        WriteError::Fact(FactError::AlreadySuperseded { .. }) => Ok(Answer::Superseded),
        WriteError::Fact(FactError::NotDuplicates { .. }) => Ok(Answer::NotDuplicates),
        WriteError::Fact(FactError::EndsBeforeStart { .. }) => Ok(Answer::EndsBeforeStart),
        error => Err(error),
    })
}

/// Answers with lists in the order of ids: the store's order is its own affair.
pub(crate) fn in_order(answer: Answer) -> Answer {
    match answer {
        Answer::Added(mut all) => {
            for (_, _, superseded, invalidated) in &mut all {
                superseded.sort_unstable();
                superseded.dedup();
                invalidated.sort_unstable();
            }
            Answer::Added(all)
        }
        other => other,
    }
}

fn answers(added: Vec<garret_storage::Added>) -> Vec<(u64, bool, Vec<u64>, Vec<u64>)> {
    let ids = |facts: Vec<FactId>| facts.into_iter().map(|fact| fact.0).collect();
    let one = |added: garret_storage::Added| {
        let stored = added.outcome == Outcome::Stored;
        (added.id.0, stored, ids(added.superseded), ids(added.invalidated))
    };
    added.into_iter().map(one).collect()
}

fn source(model: &Model, said: &Said) -> Vec<FactId> {
    let known = said.derived_from.map(|number| model.named(number)).filter(|id| *id != 0);
    known.map(FactId).into_iter().collect()
}

fn new_fact<'a>(
    said: &Said,
    source: &'a [FactId],
    names: &'a [garret_core::id::SessionId],
) -> NewFact<'a> {
    NewFact {
        text: VALUES[said.value],
        subject: said.slot.map(|(subject, _)| SUBJECTS[subject]),
        predicate: said.slot.map(|(_, predicate)| PREDICATES[predicate]),
        origin: said.session.map(|name| Origin { session: &names[usize::from(name)], turn: 1 }),
        valid_at: said.start,
        valid_to: said.length.map(|length| said.start.unwrap_or(said.now) + length),
        inferred: said.inferred,
        derived_from: source,
        ..NewFact::default()
    }
}

fn wall(said: &Said) -> WallTime {
    let confidence = if said.wrong_clock { Confidence::Wrong } else { Confidence::Good };
    WallTime { unix_ms: said.now, confidence }
}

/// All facts, read in small pages; the check of the store's own has nothing to say.
pub(crate) fn dump(store: &Store) -> Vec<Row> {
    assert_eq!(store.check_facts().unwrap(), [""; 0]);
    let entities = store.entities().unwrap();
    let (mut filter, mut rows) = (FactFilter { limit: 3, ..FactFilter::default() }, Vec::new());
    loop {
        let page = store.facts(&filter).unwrap();
        for fact in page.facts {
            assert_eq!(fact.id.0, rows.len() as u64 + 1);
            let used = store.usage(fact.id).unwrap();
            let slot = fact.subject.map(|subject| {
                let entity = entities.iter().find(|entity| entity.id == subject).unwrap();
                (entity.name.clone(), fact.predicate.clone())
            });
            rows.push(Row {
                text: fact.text,
                kind: fact.kind,
                slot,
                inferred: fact.inferred,
                start: fact.valid_at,
                end: fact.valid_to,
                heir: fact.superseded_by.map(|heir| heir.0),
                invalidated_by: fact.invalidated_by.map(|by| by.0),
                session: fact.session,
                latest: fact.latest,
                used: (used.count, used.last_ms),
            });
        }
        match page.next {
            Some(next) => filter.after = Some(next),
            None => return rows,
        }
    }
}

/// At every moment the facts that hold are the model's, as asked for by moment and subject.
pub(crate) fn compare_moments(store: &Store, model: &Model) {
    for at in 0..=MOMENTS {
        for subject in SUBJECTS {
            let filter =
                FactFilter { as_of: Some(at), subject: Some(subject), ..FactFilter::default() };
            let found = store.facts(&filter).unwrap().facts;
            let found: Vec<_> = found.into_iter().map(|fact| fact.id.0).collect();
            let of_subject = |row: &Row| row.slot.as_ref().is_some_and(|(name, _)| name == subject);
            let expected =
                (1..).zip(&model.facts).filter(|(_, row)| of_subject(row) && row.holds(at));
            let expected: Vec<u64> = expected.map(|(id, _)| id).collect();
            assert_eq!(found, expected, "{subject} at {at}");
            let one_at_a_time = |id: &&u64| model[**id].slot.as_ref().unwrap().1 == "lives_in";
            assert!(found.iter().filter(one_at_a_time).count() <= 1);
        }
    }
}

/// A fixed story that meets every kind of operation.
pub(crate) fn workload() -> Vec<Op> {
    let said = |slot, value, start| Said {
        slot,
        value,
        start: Some(start),
        length: None,
        now: 20,
        wrong_clock: false,
        inferred: false,
        derived_from: None,
        session: None,
    };
    let lives = Some((0, 0));
    let likes = Some((0, 1));
    vec![
        Op::Accept { session: 0 },
        Op::Add(vec![Said { session: Some(0), ..said(lives, 0, 3) }]),
        Op::Add(vec![Said { derived_from: Some(0), inferred: true, ..said(None, 1, 4) }]),
        Op::Add(vec![said(lives, 1, 8)]),
        Op::Add(vec![said(lives, 2, 5)]),
        Op::Reopen,
        Op::Add(vec![said(likes, 0, 1), said(likes, 1, 1), said(likes, 0, 2), said(likes, 2, 2)]),
        Op::Retire { loser: 4, survivor: 5 },
        Op::Touch { fact: 5, at: 9 },
        Op::Fold,
        Op::Delete { session: 0 },
        Op::Supersede { old: 5, new: said(likes, 3, 6) },
        Op::Retract { fact: 2, at: 9 },
        Op::Kill,
        Op::Supersede { old: 2, new: Said { slot: Some((1, 0)), ..said(None, 3, 7) } },
        Op::Add(vec![Said { start: None, wrong_clock: true, now: 0, ..said(lives, 3, 0) }]),
    ]
}
