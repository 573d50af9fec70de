//! Sessions, turns, replies and receipts.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use redb::{ReadTransaction, ReadableTable as _};
use sha2::{Digest as _, Sha256};

use crate::conversations::erased::FORGOTTEN;
use crate::conversations::record::{
    ReplyRecord, SessionRecord, TurnRecord, session_name, turn_name,
};
use crate::erase::ledger::{ERASURES, ErasureRecord};
use crate::ground::codec::unseal;
use crate::ground::database::open_if_there as open;
use crate::ground::error::Fault;
use crate::ground::table::{
    IMPORTED, META, RECEIPTS, REPLIES, SESSIONS, SPEAKERS, TURNS, counter, key, seq_of, session_of,
    turn_key,
};
use crate::verify::readable;
use crate::verify::report::{Advice, Report};

/// Every session's record, and the counters behind them.
pub(crate) fn sessions(transaction: &ReadTransaction, report: &mut Report) -> Result<(), Fault> {
    let (mut numbers, mut ranks) = (BTreeMap::new(), BTreeSet::new());
    for entry in transaction.open_table(SESSIONS)?.iter()? {
        let (id, bytes) = entry?;
        report.checked.sessions += 1;
        let record = SessionRecord::read(id.value(), bytes.value());
        let Some(record) = readable(record, Advice::Session, report)? else { continue };
        let name = session_name(&record.id);
        if !ranks.insert(record.activity) {
            report.add("session record (its rank is another's)", &*name, Advice::Restore);
        }
        match numbers.entry(record.number) {
            Entry::Vacant(free) => drop(free.insert(record.id.clone())),
            Entry::Occupied(taken) => {
                let what = format!("session record (it has the number of `{}`)", taken.get());
                report.add(what, name, Advice::Restore);
            }
        }
        readable(record.into_info(), Advice::Session, report)?;
    }
    let highest = |highest: Option<u64>| highest.unwrap_or(0);
    let meta = transaction.open_table(META)?;
    let next = counter(meta.get(key::NEXT_SESSION)?, key::NEXT_SESSION);
    let number = numbers.last_key_value().map(|(number, _)| *number);
    if readable(next, Advice::Restore, report)?.is_some_and(|next| next <= highest(number)) {
        again(key::NEXT_SESSION, report);
    }
    let rank = counter(meta.get(key::ACTIVITY)?, key::ACTIVITY);
    if readable(rank, Advice::Restore, report)?
        .is_some_and(|rank| rank < highest(ranks.last().copied()))
    {
        again(key::ACTIVITY, report);
    }
    Ok(())
}

fn again(counter: &str, report: &mut Report) {
    let what = "table `meta` (it would give a number again)";
    report.add(what, format!("`{counter}`"), Advice::Restore);
}

/// Every turn's records, and whether each session has the turns that it counts.
pub(crate) fn turns(transaction: &ReadTransaction, report: &mut Report) -> Result<(), Fault> {
    let mut counts = Counts::load(transaction)?;
    let turns = transaction.open_table(TURNS)?;
    let (replies, receipts) = (transaction.open_table(REPLIES)?, transaction.open_table(RECEIPTS)?);
    for entry in turns.iter()? {
        let (key, bytes) = entry?;
        report.checked.turns += 1;
        let (session, seq) = (session_of(key.value()), seq_of(key.value()));
        counts.count(session, seq, report);
        let view = TurnRecord::view(session, seq, bytes.value());
        let Some(view) = readable(view, Advice::Restore, report)? else { continue };
        let hash = TurnRecord::stored_hash(bytes.value());
        if hash.is_some_and(|hash| hash != <[u8; 32]>::from(Sha256::digest(view.user))) {
            let what = "turn record (its hash isn't that of its text)";
            report.add(what, turn_name(session, seq), Advice::Restore);
        }
    }
    for (session, seq) in crate::erase::all_turns(transaction)? {
        counts.count(session, seq, report);
        if turns.get(&turn_key(session, seq))?.is_some() {
            let what = "turn record (of a turn that was forgotten)";
            report.add(what, turn_name(session, seq), Advice::Restore);
        }
    }
    for entry in replies.iter()? {
        let (key, bytes) = entry?;
        report.checked.replies += 1;
        let (session, seq) = (session_of(key.value()), seq_of(key.value()));
        readable(ReplyRecord::view(session, seq, bytes.value()), Advice::Restore, report)?;
        if turns.get(key.value())?.is_none() {
            report.add("reply record (without a turn)", turn_name(session, seq), Advice::Restore);
        }
        if receipts.get(key.value())?.is_none() {
            report.add("receipt (missing)", turn_name(session, seq), Advice::Restore);
        }
    }
    for entry in receipts.iter()? {
        let (key, bytes) = entry?;
        let name = || turn_name(session_of(key.value()), seq_of(key.value()));
        if unseal(bytes.value()).is_none() {
            report.add("receipt", name(), Advice::Restore);
        }
        if replies.get(key.value())?.is_none() {
            report.add("receipt (without a reply)", name(), Advice::Restore);
        }
    }
    counts.finish(report);
    Ok(())
}

/// Checks the speakers of imported turns, and the names that imports gave them.
pub(crate) fn imported(transaction: &ReadTransaction, report: &mut Report) -> Result<(), Fault> {
    let turns = transaction.open_table(TURNS)?;
    for entry in transaction.open_table(SPEAKERS)?.iter()? {
        let (key, bytes) = entry?;
        report.checked.references += 1;
        let name = || turn_name(session_of(key.value()), seq_of(key.value()));
        if unseal(bytes.value()).is_none_or(|name| std::str::from_utf8(name).is_err()) {
            report.add("speaker", name(), Advice::Restore);
        }
        if turns.get(key.value())?.is_none() {
            report.add("speaker (without a turn)", name(), Advice::Restore);
        }
    }
    for entry in transaction.open_table(IMPORTED)?.iter()? {
        let (key, seq) = entry?;
        report.checked.references += 1;
        let [a, b, c, d, e, f, g, h, ..] = *key.value();
        let session = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        let seq = u64::from_be_bytes(*seq.value());
        if turns.get(&turn_key(session, seq))?.is_none() {
            // What an import calls a turn stays when that is forgotten.
            if !crate::conversations::erased::is_marked(transaction, &turn_key(session, seq))? {
                report.add("import (without a turn)", turn_name(session, seq), Advice::Restore);
            }
        }
    }
    Ok(())
}

/// The ledger of what was forgotten, and the turns that it is about.
pub(crate) fn forgotten(transaction: &ReadTransaction, report: &mut Report) -> Result<(), Fault> {
    let erasures = open(transaction, ERASURES)?;
    if let Some(erasures) = &erasures {
        for entry in erasures.iter()? {
            let (key, bytes) = entry?;
            report.checked.references += 1;
            let number = u64::from_be_bytes(*key.value());
            readable(ErasureRecord::read(number, bytes.value()), Advice::Restore, report)?;
        }
    }
    let Some(forgotten) = open(transaction, FORGOTTEN)? else { return Ok(()) };
    for entry in forgotten.iter()? {
        let (key, erasure) = entry?;
        report.checked.references += 1;
        let known = match &erasures {
            Some(erasures) => erasures.get(erasure.value())?.is_some(),
            None => false,
        };
        if !known {
            let name = turn_name(session_of(key.value()), seq_of(key.value()));
            report.add("forgotten turn (its erasure isn't there)", name, Advice::Restore);
        }
    }
    Ok(())
}

/// Counts turns each session has that can be read, by number.
pub(crate) fn turns_of_sessions(
    transaction: &ReadTransaction,
) -> Result<BTreeMap<u64, u64>, Fault> {
    let counts = Counts::load(transaction)?.sessions;
    Ok(counts.into_iter().map(|(number, count)| (number, count.turns)).collect())
}

/// The number of turns each session has and should have.
struct Counts {
    sessions: BTreeMap<u64, Count>,
    /// Numbers that no readable session has, but turns do.
    unknown: BTreeSet<u64>,
}

struct Count {
    id: String,
    turns: u64,
    found: u64,
}

impl Counts {
    fn load(transaction: &ReadTransaction) -> Result<Self, Fault> {
        let mut sessions = BTreeMap::new();
        for entry in transaction.open_table(SESSIONS)?.iter()? {
            let (id, bytes) = entry?;
            // What is wrong with the others was reported before.
            if let Ok(record) = SessionRecord::read(id.value(), bytes.value()) {
                let count = Count { id: record.id, turns: record.turns, found: 0 };
                sessions.insert(record.number, count);
            }
        }
        Ok(Self { sessions, unknown: BTreeSet::new() })
    }

    fn count(&mut self, session: u64, seq: u64, report: &mut Report) {
        let Some(count) = self.sessions.get_mut(&session) else {
            if self.unknown.insert(session) {
                let key = format!("session number {session}");
                report.add("turn records (no readable session has them)", key, Advice::Restore);
            }
            return;
        };
        if seq == 0 || seq > count.turns {
            let what = "turn record (beyond its session's count)";
            report.add(what, turn_name(session, seq), Advice::Restore);
        } else {
            count.found += 1;
        }
    }

    fn finish(self, report: &mut Report) {
        for Count { id, turns, found } in self.sessions.into_values() {
            if found != turns {
                let what = format!("session record (it counts {turns} turns, {found} are there)");
                report.add(what, session_name(&id), Advice::Restore);
            }
        }
    }
}
