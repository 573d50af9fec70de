//! What a store should hold of summaries, states and traces, kept in plain collections.

use std::collections::BTreeMap;

use garret_core::time::{Confidence, WallTime};
use garret_storage::{
    NewReply, NewSummary, Selection, StateKind, Store, StoredFinish, SummaryId, SummaryMethod,
    WriteError,
};

use crate::model::id;

/// One call. Sessions are named by small numbers, so that they often meet.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Accept(u8),
    /// The reply to the session's last turn, with what the model saw.
    Reply {
        session: u8,
        trace: u8,
    },
    Compact {
        session: u8,
        plans: Vec<Plan>,
        context: Option<u8>,
    },
    SetState {
        session: u8,
        kind: usize,
        bytes: u8,
    },
    ForgetTurn {
        session: u8,
        turn: usize,
    },
    Delete(u8),
    Rename {
        session: u8,
        to: u8,
    },
    Fold,
    Rewrite,
    Reopen,
}

/// What a summary is of. It is chosen by what is there, so that most can be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Plan {
    /// The first turns that no summary covers, so many.
    Next { turns: u64, words: usize },
    /// Any turns.
    Run { from: u64, turns: u64 },
    /// So many roots of one depth, from one of them on.
    Roots { depth: u8, skip: usize, count: usize },
    /// Any two.
    Two { first: u64, second: u64 },
}

/// A summary that was chosen.
struct Chosen {
    depth: u8,
    from: u64,
    to: u64,
    sources: Vec<SummaryId>,
    words: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Session {
    turns: Vec<Turn>,
    pub(crate) summaries: BTreeMap<u64, Node>,
    given: u64,
    states: BTreeMap<StateKind, Vec<u8>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Turn {
    answered: bool,
    forgotten: bool,
    trace: Option<Vec<u8>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) depth: u8,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) sources: Vec<u64>,
    pub(crate) parent: Option<u64>,
    words: usize,
}

/// All of it, as it can be read.
pub(crate) type Dump = BTreeMap<u8, SessionDump>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionDump {
    pub(crate) summaries: BTreeMap<u64, Node>,
    /// In the order of their turns.
    roots: Vec<u64>,
    pub(crate) frontier: u64,
    states: BTreeMap<StateKind, Vec<u8>>,
    turns: Vec<Option<Vec<u8>>>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) sessions: BTreeMap<u8, Session>,
}

const MODEL: [u8; 32] = [7; 32];
const KINDS: [StateKind; 4] =
    [StateKind::Context, StateKind::Carry, StateKind::Gate, StateKind::Work];
pub(crate) const AT: WallTime = WallTime { unix_ms: 5, confidence: Confidence::Good };

impl Session {
    /// The leaf that covers a turn.
    pub(crate) fn leaf_of(&self, turn: u64) -> Vec<u64> {
        let covers = |node: &Node| node.depth == 0 && (node.from..=node.to).contains(&turn);
        self.summaries.iter().filter(|(_, node)| covers(node)).map(|(id, _)| *id).collect()
    }

    fn is_forgotten(&self, turn: u64) -> bool {
        self.turns[turn as usize - 1].forgotten
    }

    fn frontier(&self) -> u64 {
        let covered = |turn: &u64| !self.leaf_of(*turn).is_empty() || self.is_forgotten(*turn);
        (1..=self.turns.len() as u64).take_while(covered).count() as u64
    }

    fn roots(&self) -> Vec<u64> {
        let mut roots: Vec<_> =
            self.summaries.iter().filter(|(_, node)| node.parent.is_none()).collect();
        roots.sort_by_key(|(_, node)| node.from);
        roots.into_iter().map(|(id, _)| *id).collect()
    }

    fn choose(&self, plan: Plan) -> Chosen {
        let leaf = |from, to, words| Chosen { depth: 0, from, to, sources: Vec::new(), words };
        match plan {
            Plan::Next { turns, words } => {
                let from = self.frontier() + 1;
                leaf(from, from + turns - 1, words)
            }
            Plan::Run { from, turns } => leaf(from, from + turns - 1, 1),
            Plan::Roots { depth, skip, count } => {
                let roots = self.roots().into_iter();
                let fits = roots.filter(|id| self.summaries[id].depth == depth);
                self.condense(fits.skip(skip).take(count).collect())
            }
            Plan::Two { first, second } => self.condense(vec![first, second]),
        }
    }

    /// What sources would come to, as far as they are there.
    fn condense(&self, sources: Vec<u64>) -> Chosen {
        let found: Vec<_> = sources.iter().filter_map(|id| self.summaries.get(id)).collect();
        Chosen {
            depth: found.first().map_or(0, |node| node.depth) + 1,
            from: found.first().map_or(1, |node| node.from),
            to: found.last().map_or(1, |node| node.to),
            sources: sources.into_iter().map(SummaryId).collect(),
            words: 1,
        }
    }

    /// Whether it can be, by what the rules say.
    fn allows(&self, chosen: &Chosen) -> bool {
        let turns = self.turns.len() as u64;
        let run = chosen.from..=chosen.to;
        if chosen.sources.is_empty() {
            let there = chosen.depth == 0 && chosen.from >= 1 && chosen.from <= chosen.to;
            return there
                && chosen.to <= turns
                && run.clone().all(|turn| self.leaf_of(turn).is_empty())
                && !run.clone().all(|turn| self.is_forgotten(turn))
                && (chosen.to < turns
                    || self.is_forgotten(turns)
                    || self.turns[turns as usize - 1].answered);
        }
        let found: Vec<_> =
            chosen.sources.iter().filter_map(|id| self.summaries.get(&id.0)).collect();
        let follows = |pair: &[&Node]| {
            pair[0].to < pair[1].from
                && (pair[0].to + 1..pair[1].from).all(|turn| self.is_forgotten(turn))
        };
        found.len() >= 2
            && found.len() == chosen.sources.len()
            && found.iter().all(|node| node.parent.is_none() && node.depth == found[0].depth)
            && found.windows(2).all(follows)
    }

    fn store(&mut self, chosen: &Chosen) -> u64 {
        self.given += 1;
        let id = self.given;
        for source in &chosen.sources {
            self.summaries.get_mut(&source.0).unwrap().parent = Some(id);
        }
        let node = Node {
            depth: chosen.depth,
            from: chosen.from,
            to: chosen.to,
            sources: chosen.sources.iter().map(|source| source.0).collect(),
            parent: None,
            words: chosen.words,
        };
        self.summaries.insert(id, node);
        id
    }

    fn forget(&mut self, turn: u64) {
        self.turns[turn as usize - 1] = Turn { forgotten: true, ..Turn::default() };
        let mut gone = self.leaf_of(turn);
        while let Some(id) = gone.pop() {
            let Some(node) = self.summaries.remove(&id) else { continue };
            gone.extend(node.parent);
            for other in self.summaries.values_mut().filter(|other| other.parent == Some(id)) {
                other.parent = None;
            }
        }
    }

    fn dump(&self) -> SessionDump {
        SessionDump {
            summaries: self.summaries.clone(),
            roots: self.roots(),
            frontier: self.frontier(),
            states: self.states.clone(),
            turns: self.turns.iter().map(|turn| turn.trace.clone()).collect(),
        }
    }
}

impl Model {
    /// What the model saw may quote what is gone.
    fn drop_traces(&mut self) {
        let turns = self.sessions.values_mut().flat_map(|session| &mut session.turns);
        turns.for_each(|turn| turn.trace = None);
    }

    pub(crate) fn dump(&self) -> Dump {
        self.sessions.iter().map(|(name, session)| (*name, session.dump())).collect()
    }
}

/// All that can be read, in every way there is.
pub(crate) fn dump(store: &Store) -> Dump {
    let mut found = Dump::new();
    for name in 0..crate::model::NAMES {
        let session = id(name);
        let all = store.summaries(&session).unwrap();
        for summary in &all {
            assert_eq!(store.summary(&session, summary.id).unwrap().as_ref(), Some(summary));
            assert_eq!(summary.tokens + 1, summary.source_tokens);
        }
        assert!(all.is_sorted_by_key(|summary| (summary.from, summary.depth)));
        let Some(info) = store.session(&session).unwrap() else {
            assert_eq!((all.len(), store.frontier(&session).unwrap()), (0, 0));
            continue;
        };
        let node = |summary: &garret_storage::Summary| Node {
            depth: summary.depth,
            from: summary.from,
            to: summary.to,
            sources: summary.sources.iter().map(|source| source.0).collect(),
            parent: summary.parent.map(|parent| parent.0),
            words: summary.text.len() / WORD.len(),
        };
        let roots = store.roots(&session).unwrap();
        let states = KINDS.map(|kind| (kind, store.state(&session, kind).unwrap()));
        let dump = SessionDump {
            summaries: all.iter().map(|summary| (summary.id.0, node(summary))).collect(),
            roots: roots.iter().map(|root| root.id.0).collect(),
            frontier: store.frontier(&session).unwrap(),
            states: states.into_iter().filter_map(|(kind, state)| Some((kind, state?))).collect(),
            turns: (1..=info.turns).map(|turn| store.trace(&session, turn).unwrap()).collect(),
        };
        found.insert(name, dump);
    }
    found
}

const WORD: &str = "word!";

fn bytes(of: u8) -> Vec<u8> {
    vec![of; usize::from(of)]
}

/// Performs `op` on both; where one refuses what the other allows, they differ.
pub(crate) fn apply(store: &Store, model: &mut Model, op: &Op) {
    match op {
        Op::Accept(session) => {
            let turns = &mut model.sessions.entry(*session).or_default().turns;
            turns.push(Turn::default());
            assert_eq!(store.accept(&id(*session), "words", AT).unwrap(), turns.len() as u64);
        }
        Op::Reply { session, trace } => reply(store, model, *session, *trace),
        Op::Compact { session, plans, context } => compact(store, model, *session, plans, *context),
        Op::SetState { session, kind, bytes: of } => {
            let kind = KINDS[*kind];
            let done = store.set_state(&id(*session), kind, &bytes(*of));
            let found = model.sessions.get_mut(session);
            assert_eq!(done.is_ok(), found.is_some());
            if let Some(found) = found {
                set(found, kind, *of);
            }
        }
        Op::ForgetTurn { session, turn } => {
            let Some(found) = model.sessions.get_mut(session) else { return };
            let turn = (turn % found.turns.len()) as u64 + 1;
            if found.is_forgotten(turn) {
                return;
            }
            let turns = [(id(*session), turn)];
            let selection = Selection { turns: &turns, ..Selection::default() };
            assert!(store.erase(&selection, AT, false).unwrap().unfinished.is_none());
            found.forget(turn);
            for session in model.sessions.values_mut() {
                session.states.retain(|kind, _| *kind == StateKind::Gate);
            }
            model.drop_traces();
        }
        Op::Delete(session) => {
            let there = model.sessions.remove(session).is_some();
            assert_eq!(store.delete(&id(*session)).is_ok(), there);
            if there {
                model.drop_traces();
            }
        }
        Op::Rename { session, to } => {
            let can = model.sessions.contains_key(session) && !model.sessions.contains_key(to);
            assert_eq!(store.rename(&id(*session), &id(*to)).is_ok(), can);
            if can && let Some(found) = model.sessions.remove(session) {
                model.sessions.insert(*to, found);
            }
        }
        Op::Fold => store.fold().unwrap(),
        Op::Rewrite => drop(store.vacuum().unwrap()),
        Op::Reopen => unreachable!("whoever has the store reopens it"),
    }
}

fn set(session: &mut Session, kind: StateKind, of: u8) {
    match of {
        0 => drop(session.states.remove(&kind)),
        of => drop(session.states.insert(kind, bytes(of))),
    }
}

fn reply(store: &Store, model: &mut Model, session: u8, trace: u8) {
    let Some(found) = model.sessions.get_mut(&session) else { return };
    let turn = found.turns.len() as u64;
    let can = found.turns.last().is_some_and(|turn| !turn.answered && !turn.forgotten);
    let new = NewReply {
        text: "noted",
        tokens: &[],
        model_fingerprint: &MODEL,
        finish: StoredFinish::Stop,
        at: AT,
        receipt: b"",
        trace: &bytes(trace),
    };
    assert_eq!(store.reply(&id(session), turn, new).is_ok(), can);
    if let Some(turn) = found.turns.last_mut().filter(|_| can) {
        turn.answered = true;
        turn.trace = Some(bytes(trace)).filter(|trace| !trace.is_empty());
    }
}

fn compact(store: &Store, model: &mut Model, name: u8, plans: &[Plan], context: Option<u8>) {
    // Each is chosen by what those before it leave, as if they could be.
    let mut after = model.sessions.get(&name).cloned().unwrap_or_default();
    let (mut chosen, mut ids) = (Vec::new(), Vec::new());
    let mut can = model.sessions.contains_key(&name);
    for plan in plans {
        let one = after.choose(*plan);
        can &= after.allows(&one);
        if can {
            ids.push(after.store(&one));
        }
        chosen.push(one);
    }
    let texts: Vec<_> = chosen.iter().map(|one| WORD.repeat(one.words)).collect();
    let new: Vec<_> = chosen
        .iter()
        .zip(&texts)
        .map(|(one, text)| NewSummary {
            depth: one.depth,
            from: one.from,
            to: one.to,
            sources: &one.sources,
            text,
            tokens: one.words as u32,
            source_tokens: one.words as u32 + 1,
            method: SummaryMethod::Model,
            model_fingerprint: &MODEL,
        })
        .collect();
    let bytes = context.map(bytes);
    match store.compact_session(&id(name), &new, bytes.as_deref(), AT) {
        Ok(given) => {
            // Without anything to store nothing is asked for.
            let idle = plans.is_empty() && context.is_none();
            assert!(can || idle, "{plans:?}");
            assert_eq!(given, ids.into_iter().map(SummaryId).collect::<Vec<_>>());
            if let Some(of) = context {
                set(&mut after, StateKind::Context, of);
            }
            if !idle {
                model.sessions.insert(name, after);
            }
        }
        Err(WriteError::Summary(_) | WriteError::UnknownSession { .. }) => {
            assert!(!can, "{plans:?}");
        }
        Err(error) => panic!("{error}"),
    }
}
