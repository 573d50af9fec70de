//! What a store should hold, kept in plain collections, and how to compare.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use garret_core::id::SessionId;
use garret_core::medium::{Medium, MediumError};
use garret_core::time::{Confidence, WallTime};
use garret_core::token::Token;
use garret_hal::media::RamMedium;
use garret_storage::search::Speaker;
use garret_storage::{
    Imported, ImportedTurn, NewReply, OpenError, Part, ReadError, Store, StoredFinish, WriteError,
};

pub(crate) const NAMESPACE: &str = "Caf\u{e9}/1";

/// One call. Sessions are named by small numbers, so that they often meet.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Accept {
        session: u8,
        text: String,
        ms: i64,
    },
    Reply {
        session: u8,
        seq: u64,
        text: String,
    },
    Rename {
        session: u8,
        to: u8,
    },
    Title {
        session: u8,
        title: String,
    },
    Delete {
        session: u8,
    },
    /// Takes in what was said elsewhere.
    Import(Vec<Said>),
    /// Closes the store and opens it again.
    Reopen,
    /// Folds the journal, which nobody can see.
    Fold,
}

/// One utterance of an import.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) session: u8,
    /// 0 is the user, 1 the assistant; others have names.
    pub(crate) speaker: u8,
    pub(crate) text: String,
    pub(crate) id: Option<u8>,
}

/// What a call answered, without the words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Accepted(u64),
    Imported(usize),
    Done,
    UnknownSession,
    SessionExists,
    UnknownTurn,
    AlreadyReplied,
}

/// All that can be read from a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dump {
    /// In the order of the listing.
    pub(crate) sessions: Vec<SessionDump>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionDump {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) created_ms: i64,
    pub(crate) updated_ms: i64,
    pub(crate) turns: Vec<TurnDump>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TurnDump {
    pub(crate) user: String,
    pub(crate) speaker: Option<String>,
    pub(crate) at: WallTime,
    pub(crate) reply: Option<ReplyDump>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReplyDump {
    pub(crate) text: String,
    pub(crate) tokens: Vec<Token>,
    pub(crate) model_fingerprint: [u8; 32],
    pub(crate) finish: StoredFinish,
    pub(crate) at: WallTime,
    pub(crate) receipt: Vec<u8>,
}

/// The reference.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    /// With the rank of the newest turn.
    sessions: BTreeMap<String, (u64, SessionDump)>,
    /// What was imported, by the names that it had.
    imported: BTreeSet<(String, u8)>,
    rank: u64,
}

impl Model {
    pub(crate) fn apply(&mut self, op: &Op) -> Answer {
        match op {
            Op::Accept { session, text, ms } => self.accept(*session, text, *ms),
            Op::Reply { session, seq, text } => {
                let Some((_, found)) = self.sessions.get_mut(&name(*session)) else {
                    return Answer::UnknownSession;
                };
                let index = usize::try_from(*seq).unwrap().wrapping_sub(1);
                match found.turns.get_mut(index) {
                    None => Answer::UnknownTurn,
                    Some(turn) if turn.reply.is_some() => Answer::AlreadyReplied,
                    Some(turn) => {
                        turn.reply = Some(reply_to(*seq, text));
                        Answer::Done
                    }
                }
            }
            Op::Rename { session, to } => {
                if !self.sessions.contains_key(&name(*session)) {
                    return Answer::UnknownSession;
                }
                if self.sessions.contains_key(&name(*to)) {
                    return Answer::SessionExists;
                }
                let (rank, mut found) = self.sessions.remove(&name(*session)).unwrap();
                for id in self.forget_imports(*session) {
                    self.imported.insert((name(*to), id));
                }
                found.id = name(*to);
                self.sessions.insert(name(*to), (rank, found));
                Answer::Done
            }
            Op::Title { session, title } => match self.sessions.get_mut(&name(*session)) {
                None => Answer::UnknownSession,
                Some((_, found)) => {
                    found.title = title.clone();
                    Answer::Done
                }
            },
            Op::Delete { session } => match self.sessions.remove(&name(*session)) {
                None => Answer::UnknownSession,
                Some(_) => {
                    self.forget_imports(*session);
                    Answer::Done
                }
            },
            Op::Import(all) => Answer::Imported(all.iter().filter(|said| self.take(said)).count()),
            Op::Reopen | Op::Fold => Answer::Done,
        }
    }

    fn accept(&mut self, session: u8, text: &str, ms: i64) -> Answer {
        self.rank += 1;
        let at = wall(ms);
        let new = || SessionDump {
            id: name(session),
            title: String::new(),
            created_ms: ms,
            updated_ms: ms,
            turns: Vec::new(),
        };
        let (rank, found) = self.sessions.entry(name(session)).or_insert_with(|| (0, new()));
        *rank = self.rank;
        found.updated_ms = ms;
        found.turns.push(TurnDump { user: text.to_owned(), speaker: None, at, reply: None });
        Answer::Accepted(found.turns.len() as u64)
    }

    fn forget_imports(&mut self, session: u8) -> Vec<u8> {
        let session = name(session);
        let of: Vec<_> = self.imported.extract_if(.., |(found, _)| *found == session).collect();
        of.into_iter().map(|(_, id)| id).collect()
    }

    /// Whether it is new.
    fn take(&mut self, said: &Said) -> bool {
        if said.id.is_some_and(|id| !self.imported.insert((name(said.session), id))) {
            return false;
        }
        let assistant = said.speaker == 1;
        let last = self.sessions.get_mut(&name(said.session));
        let last = last.and_then(|(_, session)| session.turns.last_mut());
        let answered = |turn: &&mut TurnDump| {
            turn.reply.is_none() && turn.speaker.as_deref() != Some("assistant")
        };
        match last.filter(answered) {
            Some(turn) if assistant => {
                turn.reply = Some(ReplyDump {
                    text: said.text.clone(),
                    tokens: Vec::new(),
                    model_fingerprint: [0; 32],
                    finish: StoredFinish::Stop,
                    at: said.at(),
                    receipt: Vec::new(),
                });
            }
            _ => {
                self.accept(said.session, &said.text, said.at().unix_ms);
                let (_, session) = self.sessions.get_mut(&name(said.session)).unwrap();
                session.turns.last_mut().unwrap().speaker = said.name();
            }
        }
        true
    }

    pub(crate) fn dump(&self) -> Dump {
        let mut ranked: Vec<_> = self.sessions.values().collect();
        ranked.sort_by_key(|(rank, _)| std::cmp::Reverse(*rank));
        Dump { sessions: ranked.into_iter().map(|(_, session)| session.clone()).collect() }
    }
}

impl Said {
    fn at(&self) -> WallTime {
        wall(i64::from(self.speaker) * 86_400_000)
    }

    /// As a turn of the session names its speaker.
    fn name(&self) -> Option<String> {
        match self.speaker {
            0 => None,
            1 => Some("assistant".to_owned()),
            other => Some(format!("speaker {other}")),
        }
    }
}

/// Opens a store on a handle of `medium`.
pub(crate) fn open(medium: &(impl Medium + Clone + 'static)) -> Store {
    Store::on_medium(NAMESPACE, Box::new(medium.clone())).unwrap()
}

/// A file of records and a journal, in whatever holds bytes. A clone is another handle.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pair<M> {
    pub(crate) records: M,
    pub(crate) journal: M,
}

impl<M: Medium + Clone + 'static> Pair<M> {
    pub(crate) fn try_open(&self) -> Result<Store, OpenError> {
        let pair = self.clone();
        Store::on_media(NAMESPACE, move |part| match part {
            Part::Records => Ok(Box::new(pair.records.clone())),
            Part::Journal => Ok(Box::new(pair.journal.clone())),
            _ => Err(MediumError::Denied),
        })
    }

    pub(crate) fn open(&self) -> Store {
        self.try_open().unwrap()
    }
}

impl Pair<RamMedium> {
    /// What both hold, the records first.
    pub(crate) fn bytes(&self) -> [Vec<u8>; 2] {
        [self.records.snapshot(), self.journal.snapshot()]
    }

    pub(crate) fn of([records, journal]: [Vec<u8>; 2]) -> Self {
        Self { records: RamMedium::from_bytes(records), journal: RamMedium::from_bytes(journal) }
    }
}

/// Performs `op`; a refusal the model knows is an answer, anything else an error.
pub(crate) fn apply(store: &Store, op: &Op) -> Result<Answer, WriteError> {
    let done = match op {
        Op::Accept { session, text, ms } => {
            store.accept(&id(*session), text, wall(*ms)).map(Answer::Accepted)
        }
        Op::Reply { session, seq, text } => {
            let reply = reply_to(*seq, text);
            let new = NewReply {
                text,
                tokens: &reply.tokens,
                model_fingerprint: &reply.model_fingerprint,
                finish: reply.finish,
                at: reply.at,
                receipt: &reply.receipt,
                trace: &[],
            };
            store.reply(&id(*session), *seq, new).map(|()| Answer::Done)
        }
        Op::Rename { session, to } => store.rename(&id(*session), &id(*to)).map(|()| Answer::Done),
        Op::Title { session, title } => {
            store.set_title(&id(*session), title).map(|()| Answer::Done)
        }
        Op::Delete { session } => store.delete(&id(*session)).map(|()| Answer::Done),
        Op::Import(all) => import(store, all).map(|imported| Answer::Imported(imported.added)),
        Op::Fold => store.fold().map(|()| Answer::Done),
        Op::Reopen => unreachable!("the caller owns the store"),
    };
    match done {
        Err(WriteError::UnknownSession { .. }) => Ok(Answer::UnknownSession),
        Err(WriteError::SessionExists { .. }) => Ok(Answer::SessionExists),
        Err(WriteError::UnknownTurn { .. }) => Ok(Answer::UnknownTurn),
        Err(WriteError::AlreadyReplied { .. }) => Ok(Answer::AlreadyReplied),
        other => other,
    }
}

fn import(store: &Store, all: &[Said]) -> Result<Imported, WriteError> {
    let sessions: Vec<_> = all.iter().map(|said| id(said.session)).collect();
    let ids: Vec<_> = all.iter().map(|said| said.id.map(|id| format!("id {id}"))).collect();
    let names: Vec<_> = all.iter().map(Said::name).collect();
    let turn = |(at, said): (usize, &'_ Said)| ImportedTurn {
        session: &sessions[at],
        speaker: match (said.speaker, &names[at]) {
            (1, _) => Speaker::Assistant,
            (_, Some(name)) => Speaker::Named(name),
            (_, None) => Speaker::User,
        },
        text: &all[at].text,
        at: said.at(),
        id: ids[at].as_deref(),
    };
    let turns: Vec<_> = all.iter().enumerate().map(turn).collect();
    store.import_turns(&turns)
}

/// Reads everything, in every way there is, and checks that the ways agree.
pub(crate) fn dump(store: &Store) -> Result<Dump, ReadError> {
    let infos = store.sessions()?;
    assert_eq!(store.latest_session()?.as_ref(), infos.first());
    let mut sessions = Vec::new();
    for info in infos {
        assert_eq!(store.session(&info.id)?.as_ref(), Some(&info));
        let turns = turns(store, &info.id)?;
        assert_eq!(info.turns, turns.len() as u64);
        let newest = turns
            .iter()
            .zip(1..)
            .filter_map(|(turn, seq)| turn.reply.as_ref().map(|reply| (seq, reply.receipt.clone())))
            .last();
        assert_eq!(store.last_receipt(&info.id)?, newest);
        let last = store.with_turns(&info.id, info.turns, |views| {
            views.iter().map(|view| (view.seq, view.user.to_owned())).collect::<Vec<_>>()
        })?;
        assert_eq!(last, [(info.turns, turns.last().unwrap().user.clone())]);
        sessions.push(SessionDump {
            id: info.id.to_string(),
            title: info.title,
            created_ms: info.created_ms,
            updated_ms: info.updated_ms,
            turns,
        });
    }
    Ok(Dump { sessions })
}

fn turns(store: &Store, id: &SessionId) -> Result<Vec<TurnDump>, ReadError> {
    let without_receipts = store.with_turns(id, 1, |views| {
        let read = |(view, seq): (&garret_storage::TurnView<'_>, u64)| {
            assert_eq!(view.seq, seq);
            TurnDump {
                user: view.user.to_owned(),
                speaker: view.speaker.map(str::to_owned),
                at: WallTime { unix_ms: view.accepted_ms, confidence: view.clock },
                reply: view.reply.map(|reply| ReplyDump {
                    text: reply.text.to_owned(),
                    tokens: reply.tokens.iter().collect(),
                    model_fingerprint: *reply.model_fingerprint,
                    finish: reply.finish,
                    at: WallTime { unix_ms: reply.finished_ms, confidence: reply.clock },
                    receipt: Vec::new(),
                }),
            }
        };
        views.iter().zip(1..).map(read).collect::<Vec<_>>()
    })?;
    let with_receipt = |(mut turn, seq): (TurnDump, u64)| {
        match (&mut turn.reply, store.receipt(id, seq)?) {
            (Some(reply), Some(receipt)) => reply.receipt = receipt,
            (None, None) => {}
            other => panic!("reply and receipt must come together: {other:?}"),
        }
        Ok(turn)
    };
    without_receipts.into_iter().zip(1..).map(with_receipt).collect()
}

/// Ids of which some are prefixes of others and some aren't ASCII.
pub(crate) fn name(session: u8) -> String {
    ["a", "a b", "ab", "\u{e9}t\u{e9}", "0"][usize::from(session)].to_owned()
}

pub(crate) const NAMES: u8 = 5;

pub(crate) fn id(session: u8) -> SessionId {
    name(session).parse().unwrap()
}

fn wall(ms: i64) -> WallTime {
    let confidence = match ms.rem_euclid(3) {
        0 => Confidence::Wrong,
        1 => Confidence::Unsure,
        _ => Confidence::Good,
    };
    WallTime { unix_ms: ms, confidence }
}

/// A reply whose every field follows from its number and text.
fn reply_to(seq: u64, text: &str) -> ReplyDump {
    let seed = u8::try_from(seq % 251).unwrap();
    let finishes =
        [StoredFinish::Stop, StoredFinish::Length, StoredFinish::Cancelled, StoredFinish::Failed];
    ReplyDump {
        text: text.to_owned(),
        tokens: text.bytes().map(|byte| Token(i32::from(byte) * 517 - 9)).collect(),
        model_fingerprint: [seed; 32],
        finish: finishes[text.len() % finishes.len()],
        at: wall(i64::from(seed) * 1_000_003),
        receipt: format!("{{\"turn\":{seq}}}").into_bytes(),
    }
}

/// A fixed conversation that meets every kind of operation, small and large texts, and a clean
/// restart in the middle.
pub(crate) fn workload() -> Vec<Op> {
    let accept = |session, text: &str, ms| Op::Accept { session, text: text.to_owned(), ms };
    let reply = |session, seq, text: &str| Op::Reply { session, seq, text: text.to_owned() };
    vec![
        accept(0, "My name is Ada and I keep bees.", 1_767_225_600_000),
        reply(0, 1, "Hello, Ada. How many hives?"),
        accept(1, "", -5),
        accept(0, &"\u{1f41d} seven hives ".repeat(400), 1_767_225_660_001),
        reply(0, 2, &"Noted. ".repeat(900)),
        Op::Title { session: 0, title: "Bees".to_owned() },
        Op::Rename { session: 0, to: 3 },
        accept(0, "<|im_start|>system", 86_400_000),
        Op::Reopen,
        reply(1, 1, ""),
        accept(3, "And the queen?", 1_767_225_700_001),
        Op::Delete { session: 1 },
        accept(1, "again", 7),
        reply(3, 3, "She is well."),
        Op::Delete { session: 0 },
    ]
}

/// The dumps of a model before the first and after each operation.
pub(crate) fn history(ops: &[Op]) -> Vec<Dump> {
    let mut model = Model::default();
    let mut dumps = vec![model.dump()];
    for op in ops {
        model.apply(op);
        dumps.push(model.dump());
    }
    dumps
}
