//! What a memory should hold, and what of it is true when, worked out the slow way.

use std::collections::BTreeMap;

use garret_core::id::SessionId;
use garret_storage::search::{Kind, Speaker};
use garret_storage::{
    FactError, FactId, FactKind, FactSource, ImportedTurn, NewFact, NewReply, NewSummary, Origin,
    Pin, Selection, StateKind, Store, StoredFinish, WriteError,
};

use crate::everything::wall;
use crate::model::id;
use crate::summaries::leaf;

pub(crate) const DAY: i64 = 86_400_000;
/// Sessions, by small numbers, so that they often meet; the last one is the crowd's.
pub(crate) const SESSIONS: u8 = 4;
const CROWD: u8 = 4;
/// The user, the assistant, and two with names.
pub(crate) const SPEAKERS: u8 = 4;
/// Of facts.
pub(crate) const SOURCES: [&str; 4] = ["user", "assistant", "tool", "Ada"];
const SUBJECTS: [&str; 2] = ["Ada", "Bob"];

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Accept {
        session: u8,
        form: u8,
        day: Option<i64>,
    },
    Reply {
        session: u8,
        turn: usize,
        form: u8,
        day: Option<i64>,
    },
    /// Each with session, speaker, form and day.
    Import(Vec<(u8, u8, u8, Option<i64>)>),
    Add(Vec<Told>),
    Supersede {
        old: usize,
        told: Told,
    },
    Retract {
        fact: usize,
        day: i64,
    },
    ForgetTurn {
        session: u8,
        turn: usize,
    },
    ForgetFact {
        fact: usize,
    },
    /// The first turns that aren't summed up are.
    SumUp {
        session: u8,
        turns: u64,
        form: u8,
    },
    Pin {
        fact: usize,
        pin: Pin,
    },
    Delete(u8),
    Rename {
        session: u8,
        to: u8,
    },
    Fold,
    Compact,
    /// Writes the index to its file.
    Tend,
    /// Closes the store and opens it again.
    Reopen,
    /// Opens the store anew without closing it.
    Kill,
}

/// A fact, with others and turns by numbers that are taken modulo how many there are.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) form: u8,
    /// Where whom lives; else a note.
    pub(crate) slot: Option<u8>,
    pub(crate) day: i64,
    pub(crate) length: Option<i64>,
    pub(crate) source: usize,
    pub(crate) derived_from: Option<usize>,
    pub(crate) origin: Option<(u8, usize)>,
}

/// Something that can be found.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) id: String,
    pub(crate) kind: Kind,
    pub(crate) session: Option<u8>,
    pub(crate) source: String,
    pub(crate) text: String,
    pub(crate) at: Option<i64>,
    pub(crate) end: Option<i64>,
    /// Found where no moment is named.
    pub(crate) latest: bool,
}

#[derive(Clone, Debug)]
struct Said {
    source: String,
    text: String,
    at: Option<i64>,
}

/// Words of a turn and the reply; both are gone where it was forgotten.
#[derive(Clone, Debug, Default)]
struct Turn {
    words: Option<Said>,
    reply: Option<Said>,
}

#[derive(Clone, Debug, Default)]
struct Session {
    /// Never used again.
    number: u64,
    turns: Vec<Turn>,
    /// What leaves cover.
    covered: Vec<(u64, u64)>,
    /// What its prompts begin with.
    context: Option<Vec<u8>>,
}

#[derive(Clone, Debug)]
struct Fact {
    text: String,
    source: &'static str,
    kind: FactKind,
    slot: Option<u8>,
    start: i64,
    end: Option<i64>,
    latest: bool,
    derived_from: Option<u64>,
    origin: Option<(u64, u64)>,
}

/// The reference.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    sessions: BTreeMap<u8, Session>,
    facts: BTreeMap<u64, Fact>,
    created: u64,
    /// Words and facts given out so far.
    words: u32,
    told: u64,
}

impl Model {
    pub(crate) fn has(&self, session: u8) -> bool {
        self.sessions.contains_key(&session)
    }

    /// Every word that any unit ever had to itself.
    pub(crate) fn words(&self) -> Vec<String> {
        (0..self.words).map(word).collect()
    }

    /// Everything that can be found.
    pub(crate) fn units(&self) -> Vec<Seen> {
        let mut all = Vec::new();
        for (name, session) in &self.sessions {
            for (seq, turn) in (1..).zip(&session.turns) {
                for (place, said) in [("user", &turn.words), ("assistant", &turn.reply)] {
                    all.extend(said.as_ref().map(|said| Seen {
                        id: format!("{}/{seq}/{place}", id(*name)),
                        kind: Kind::Message,
                        session: Some(*name),
                        source: said.source.clone(),
                        text: said.text.clone(),
                        at: said.at,
                        end: None,
                        latest: true,
                    }));
                }
            }
        }
        let named = |number| self.sessions.iter().find(|(_, session)| session.number == number);
        all.extend(self.facts.iter().map(|(number, fact)| Seen {
            id: format!("f{number}"),
            kind: Kind::Fact(fact.kind),
            session: fact.origin.and_then(|(session, _)| named(session)).map(|(name, _)| *name),
            source: fact.source.to_owned(),
            text: fact.text.clone(),
            at: Some(fact.start),
            end: fact.end,
            latest: fact.latest,
        }));
        all
    }

    /// A text with a word of its own, and with one that all have.
    fn text(&mut self, form: u8) -> String {
        let word = word(self.words);
        self.words += 1;
        match form % 8 {
            0 => format!("The garden has a {word} now."),
            1 => format!("Is there a {word} in the garden?"),
            2 => format!("Ich habe gestern {word} im Garten gesehen, im garden."),
            3 => format!("Nous avons mang\u{e9} ({word}) dans le jardin, the garden!"),
            4 => format!("\u{6211}\u{559c}\u{6b22}\u{8702}\u{871c} {word} garden"),
            5 => format!("{word}. Garden."),
            6 => {
                let filler = "Nothing was to be seen there. ".repeat(40);
                format!("{filler}Only {word} stood in the garden. {filler}The end.")
            }
            _ => format!("\u{1f41d} <garden>\"{word}\"\n\n\t'--; DROP TABLE"),
        }
    }

    fn session(&mut self, name: u8) -> &mut Session {
        self.sessions.entry(name).or_insert_with(|| {
            self.created += 1;
            Session { number: self.created, ..Session::default() }
        })
    }

    fn say(&mut self, session: u8, said: Said) {
        self.session(session).turns.push(Turn { words: Some(said), reply: None });
    }

    /// The number of one of the facts there are, if there is any.
    fn fact(&self, number: usize) -> Option<u64> {
        let at = number.checked_rem(self.facts.len())?;
        self.facts.keys().nth(at).copied()
    }

    /// One of the turns of a session.
    fn turn(&self, session: u8, number: usize) -> Option<u64> {
        let turns = self.sessions.get(&session)?.turns.len();
        Some(number.checked_rem(turns)? as u64 + 1)
    }

    fn there(&self, session: u8, turn: u64) -> Option<&Turn> {
        let turn = self.sessions.get(&session)?.turns.get(turn as usize - 1)?;
        turn.words.is_some().then_some(turn)
    }

    /// Takes in more than are needed to know what is usual.
    pub(crate) fn crowd(&mut self, store: &Store) {
        let session = id(CROWD);
        let text = |number| format!("Row {number} of the garden is like all others.");
        for number in 0..230 {
            let said = Said { source: "user".to_owned(), text: text(number), at: Some(0) };
            self.say(CROWD, said);
        }
        let texts: Vec<_> = (0..230).map(text).collect();
        let turn = |text| ImportedTurn {
            session: &session,
            speaker: Speaker::User,
            text,
            at: wall(Some(0)),
            id: None,
        };
        let turns: Vec<_> = texts.iter().map(|text| turn(text)).collect();
        assert_eq!(store.import_turns(&turns).unwrap().added, 230);
    }

    fn tell(&mut self, told: &Told, given: Given, old: Option<u64>) {
        self.told += 1;
        let start = told.day * DAY;
        let slot = told.slot.or_else(|| self.facts.get(&old?)?.slot);
        if let Some(old) = old {
            self.close(old, start, true);
        }
        let mut end = told.length.map(|length| start + length * DAY);
        let (mut latest, mut replaced) = (true, old.is_some());
        let inferred = told.derived_from.is_some();
        let lane = self.lane(slot);
        let holds = |fact: &Fact| fact.start <= start && fact.end.is_none_or(|end| start < end);
        let holder = lane.iter().copied().find(|other| holds(&self.facts[other]));
        let is_said = |other: u64| self.facts[&other].kind != FactKind::Derives;
        if inferred && old.is_none() && holder.is_some_and(is_said) {
            // What was said counts for more than what was inferred.
            (end, latest) = (Some(start), false);
        } else {
            let later = lane.iter().map(|other| &self.facts[other]);
            let later = later.filter(|other| other.start > start && other.end != Some(other.start));
            end = later.map(|other| other.start).chain(end).min();
            if let Some(holder) = holder {
                self.close(holder, start, true);
                replaced = true;
            }
        }
        let kind = match (inferred, replaced) {
            (true, _) => FactKind::Derives,
            (false, true) => FactKind::Supersedes,
            (false, false) => FactKind::Asserts,
        };
        let fact = Fact {
            text: given.text,
            source: SOURCES[told.source],
            kind,
            slot,
            start,
            end,
            latest: latest && end.is_none(),
            derived_from: given.derived_from.first().map(|fact| fact.0),
            origin: told.origin.map(|(session, _)| (self.sessions[&session].number, given.turn)),
        };
        self.facts.insert(self.told, fact);
    }

    /// Any forgetting takes all of them.
    fn forget_contexts(&mut self) {
        self.sessions.values_mut().for_each(|session| session.context = None);
    }

    /// The facts of which one is true at a time.
    fn lane(&self, slot: Option<u8>) -> Vec<u64> {
        let same = |fact: &Fact| slot.is_some() && fact.slot == slot;
        self.facts.iter().filter(|(_, fact)| same(fact)).map(|(number, _)| *number).collect()
    }

    /// Ends a fact, and what was derived from it.
    fn close(&mut self, number: u64, at: i64, replaced: bool) {
        let fact = self.facts.get_mut(&number).unwrap();
        let end = at.max(fact.start);
        let shrinks = fact.end.is_none_or(|old| end < old);
        if shrinks {
            fact.end = Some(end);
        }
        fact.latest &= !shrinks && !replaced;
        if shrinks {
            for derived in self.derived(number) {
                self.close(derived, end, false);
            }
        }
    }

    fn derived(&self, number: u64) -> Vec<u64> {
        let derived = |fact: &Fact| fact.derived_from == Some(number);
        self.facts.iter().filter(|(_, fact)| derived(fact)).map(|(number, _)| *number).collect()
    }

    fn forget(&mut self, number: u64) {
        if self.facts.remove(&number).is_some() {
            for derived in self.derived(number) {
                self.forget(derived);
            }
        }
    }
}

/// Word `number`: nothing else looks like it, in any language.
fn word(number: u32) -> String {
    let syllable = |at: u32| {
        let at = number / 60_u32.pow(at) % 60;
        let pick = |all: &str, at: u32| all.chars().nth(at as usize).unwrap();
        [pick("bcdfghklmprt", at / 5), pick("aeiou", at % 5)].iter().collect::<String>()
    };
    format!("z{}{}x", syllable(1), syllable(0)).replacen('z', "zu", 1)
}

/// Performs `op` on both; where one refuses what the other allows, they differ.
pub(crate) fn apply(store: &Store, model: &mut Model, op: &Op) {
    match op {
        Op::Accept { session, form, day } => {
            let text = model.text(*form);
            let turn = store.accept(&id(*session), &text, wall(*day)).unwrap();
            model.say(*session, said("user", text, *day));
            assert_eq!(turn, model.session(*session).turns.len() as u64);
        }
        Op::Reply { session, turn, form, day } => {
            reply(store, model, (*session, *turn), *form, *day);
        }
        Op::Import(all) => import(store, model, all),
        Op::Add(all) => add(store, model, all),
        Op::Supersede { old, told } => supersede(store, model, *old, told),
        Op::Retract { fact, day } => {
            if let Some(fact) = model.fact(*fact) {
                store.retract(FactId(fact), day * DAY).unwrap();
                model.close(fact, day * DAY, false);
            }
        }
        Op::ForgetTurn { session, turn } => forget_turn(store, model, *session, *turn),
        Op::ForgetFact { fact } => {
            if let Some(fact) = model.fact(*fact) {
                forget(store, &Selection { facts: &[FactId(fact)], ..Selection::default() });
                model.forget(fact);
                model.forget_contexts();
            }
        }
        Op::SumUp { session, turns, form } => sum_up(store, model, *session, *turns, *form),
        Op::Pin { fact, pin } => {
            if let Some(fact) = model.fact(*fact) {
                let replaced = store.fact(FactId(fact)).unwrap().unwrap().superseded_by.is_some();
                let done = store.pin(FactId(fact), *pin);
                assert_eq!(done.is_err(), replaced && *pin != Pin::None);
            }
        }
        Op::Delete(session) => {
            let there = model.sessions.remove(session).is_some();
            assert_eq!(store.delete(&id(*session)).is_ok(), there);
        }
        Op::Rename { session, to } => {
            let can = model.has(*session) && !model.has(*to);
            assert_eq!(store.rename(&id(*session), &id(*to)).is_ok(), can);
            if can && let Some(found) = model.sessions.remove(session) {
                model.sessions.insert(*to, found);
            }
        }
        Op::Fold => store.fold().unwrap(),
        Op::Compact => drop(store.vacuum().unwrap()),
        Op::Tend => drop(store.tend_index(1).unwrap()),
        Op::Reopen | Op::Kill => unreachable!("whoever has the store reopens it"),
    }
}

fn said(source: &str, text: String, day: Option<i64>) -> Said {
    Said { source: source.to_owned(), text, at: day.map(|day| day * DAY) }
}

fn reply(store: &Store, model: &mut Model, at: (u8, usize), form: u8, day: Option<i64>) {
    let Some(turn) = model.turn(at.0, at.1) else { return };
    let can = model.there(at.0, turn).is_some_and(|turn| turn.reply.is_none());
    let text = model.text(form);
    let new = NewReply {
        text: &text,
        tokens: &[],
        model_fingerprint: &[0; 32],
        finish: StoredFinish::Stop,
        at: wall(day),
        receipt: b"",
        trace: &[],
    };
    assert_eq!(store.reply(&id(at.0), turn, new).is_ok(), can);
    if can {
        let place = turn as usize - 1;
        model.session(at.0).turns[place].reply = Some(said("assistant", text, day));
    }
}

type Line = (u8, u8, u8, Option<i64>);

fn import(store: &Store, model: &mut Model, all: &[Line]) {
    let lines: Vec<_> =
        all.iter().map(|line| (id(line.0), model.text(line.2), line.1, line.3)).collect();
    let turns: Vec<_> = lines
        .iter()
        .map(|(session, text, speaker, day)| ImportedTurn {
            session,
            speaker: match speaker {
                0 => Speaker::User,
                1 => Speaker::Assistant,
                _ => Speaker::Named(name(*speaker)),
            },
            text,
            at: wall(*day),
            id: None,
        })
        .collect();
    assert_eq!(store.import_turns(&turns).unwrap().added, all.len());
    for ((session, ..), (_, text, speaker, day)) in all.iter().zip(lines) {
        let said = said(name(speaker), text, day);
        let last = model.session(*session).turns.last_mut();
        let waits = |turn: &&mut Turn| {
            let asked = turn.words.as_ref().is_some_and(|said| said.source != "assistant");
            asked && turn.reply.is_none()
        };
        match last.filter(waits) {
            Some(turn) if speaker == 1 => turn.reply = Some(said),
            _ => model.say(*session, said),
        }
    }
}

fn name(speaker: u8) -> &'static str {
    ["user", "assistant", "Ada", "Bob Cole"][usize::from(speaker)]
}

/// What a fact is made of beside what was told.
struct Given {
    text: String,
    session: Option<SessionId>,
    turn: u64,
    derived_from: Vec<FactId>,
}

impl Given {
    /// `None` where it was said in a turn that isn't there.
    fn new(model: &mut Model, told: &Told) -> Option<Self> {
        let turn = match told.origin {
            Some((session, turn)) => {
                let turn = model.turn(session, turn)?;
                model.there(session, turn)?;
                turn
            }
            None => 0,
        };
        let source = told.derived_from.and_then(|number| model.fact(number));
        Some(Self {
            text: model.text(told.form),
            session: told.origin.map(|(session, _)| id(session)),
            turn,
            derived_from: source.map(FactId).into_iter().collect(),
        })
    }

    fn fact(&self, told: &Told) -> NewFact<'_> {
        NewFact {
            text: &self.text,
            source: match SOURCES[told.source] {
                "user" => FactSource::User,
                "assistant" => FactSource::Assistant,
                "tool" => FactSource::Tool,
                name => FactSource::from_name(name),
            },
            origin: self.session.as_ref().map(|session| Origin { session, turn: self.turn }),
            subject: told.slot.map(|slot| SUBJECTS[usize::from(slot)]),
            predicate: told.slot.map(|_| "lives_in"),
            valid_at: Some(told.day * DAY),
            valid_to: told.length.map(|length| (told.day + length) * DAY),
            inferred: told.derived_from.is_some(),
            derived_from: &self.derived_from,
            ..NewFact::default()
        }
    }
}

fn add(store: &Store, model: &mut Model, all: &[Told]) {
    let given: Vec<_> =
        all.iter().filter_map(|told| Some((told, Given::new(model, told)?))).collect();
    let facts: Vec<_> = given.iter().map(|(told, given)| given.fact(told)).collect();
    let added = store.add_facts(&facts, wall(Some(0))).unwrap();
    let ids: Vec<_> = added.iter().map(|added| added.id.0).collect();
    assert_eq!(ids, (model.told + 1..).take(given.len()).collect::<Vec<_>>());
    for (told, given) in given {
        model.tell(told, given, None);
    }
}

fn supersede(store: &Store, model: &mut Model, old: usize, told: &Told) {
    let Some(old) = model.fact(old) else { return };
    let Some(given) = Given::new(model, told) else { return };
    match store.supersede(FactId(old), &given.fact(told), wall(Some(0))) {
        Ok(added) => {
            assert_eq!(added.id.0, model.told + 1);
            model.tell(told, given, Some(old));
        }
        Err(WriteError::Fact(FactError::AlreadySuperseded { .. })) => {
            assert!(!model.facts[&old].latest);
        }
        Err(error) => panic!("{error}"),
    }
}

fn forget(store: &Store, selection: &Selection<'_>) {
    let forgotten = store.erase(selection, wall(Some(0)), false).unwrap();
    assert!(forgotten.unfinished.is_none(), "{forgotten:?}");
}

/// With the turn go its reply and the facts that were said in it.
fn forget_turn(store: &Store, model: &mut Model, session: u8, turn: usize) {
    let Some(turn) = model.turn(session, turn) else { return };
    forget(store, &Selection { turns: &[(id(session), turn)], ..Selection::default() });
    if model.there(session, turn).is_some() {
        model.forget_contexts();
    }
    let found = model.session(session);
    let number = found.number;
    found.turns[turn as usize - 1] = Turn::default();
    found.covered.retain(|(from, to)| !(*from..=*to).contains(&turn));
    let there = |fact: &Fact| fact.origin == Some((number, turn));
    let said: Vec<u64> =
        model.facts.iter().filter(|(_, fact)| there(fact)).map(|(number, _)| *number).collect();
    said.into_iter().for_each(|fact| model.forget(fact));
}

impl Session {
    fn frontier(&self) -> u64 {
        let covered =
            |turn: u64| self.covered.iter().any(|(from, to)| (*from..=*to).contains(&turn));
        let done = |turn: &u64| covered(*turn) || self.turns[*turn as usize - 1].words.is_none();
        (1..=self.turns.len() as u64).take_while(done).count() as u64
    }

    /// The first of the turns that aren't summed up, so many at most, unless another leaf follows.
    fn next(&self, turns: u64) -> Option<(u64, u64)> {
        let from = self.frontier() + 1;
        let after = self.covered.iter().map(|(start, _)| *start).filter(|start| *start > from);
        let end = after.min().unwrap_or(self.turns.len() as u64 + 1);
        let to = (from + turns).min(end) - 1;
        let last = self.turns.last()?;
        let waits = to == self.turns.len() as u64 && last.words.is_some() && last.reply.is_none();
        (from <= to && !waits).then_some((from, to))
    }
}

/// Words of a summary aren't found by a search.
fn sum_up(store: &Store, model: &mut Model, session: u8, turns: u64, form: u8) {
    let text = model.text(form);
    let Some(found) = model.sessions.get_mut(&session) else { return };
    let Some((from, to)) = found.next(turns) else { return };
    let summary = NewSummary { text: &text, ..leaf(from, to) };
    let context = text.as_bytes();
    store.compact_session(&id(session), &[summary], Some(context), wall(Some(0))).unwrap();
    found.covered.push((from, to));
    found.context = Some(context.to_vec());
}

/// Compares what is summed up.
pub(crate) fn compare_summaries(store: &Store, model: &Model) {
    for (name, session) in &model.sessions {
        let name = id(*name);
        assert_eq!(store.frontier(&name).unwrap(), session.frontier());
        let roots = store.roots(&name).unwrap();
        let roots: Vec<_> = roots.iter().map(|root| (root.from, root.to)).collect();
        let mut covered = session.covered.clone();
        covered.sort_unstable();
        assert_eq!(roots, covered);
        assert_eq!(store.state(&name, StateKind::Context).unwrap(), session.context);
    }
}
