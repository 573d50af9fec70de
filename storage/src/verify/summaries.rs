//! Summaries: each turn under one leaf, each summary under one other, and all links both ways.

use std::collections::{BTreeMap, BTreeSet};

use redb::{ReadOnlyTable, ReadTransaction, ReadableTable as _};

use crate::conversations::erased::FORGOTTEN;
use crate::conversations::record::turn_name;
use crate::ground::codec::unseal;
use crate::ground::database::open_if_there as open;
use crate::ground::error::Fault;
use crate::ground::table::{REPLIES, TURNS, TurnKey, seq_of, session_of, turn_key};
use crate::summaries::record::{HeadRecord, SummaryRecord, summary_name};
use crate::summaries::table::{HEADS, LEAVES, STATES, SUMMARIES, TRACES, leaf_value, state_parts};
use crate::summaries::{StateKind, frontier};
use crate::verify::conversations::turns_of_sessions;
use crate::verify::facts::has;
use crate::verify::readable;
use crate::verify::report::{Advice, Report};

type Forgotten = Option<ReadOnlyTable<&'static TurnKey, &'static [u8; 8]>>;

/// The parts of a summary's record that are needed to check it against the others.
struct Node {
    first: u64,
    last: u64,
    depth: u8,
    parent: u64,
    sources: Vec<u64>,
}

/// By number; `None` for one that can't be read.
type Nodes = BTreeMap<u64, Option<Node>>;

/// Every summary, and what leads to it.
pub(crate) fn summaries(transaction: &ReadTransaction, report: &mut Report) -> Result<(), Fault> {
    let turns = turns_of_sessions(transaction)?;
    let mut sessions: BTreeMap<u64, Nodes> = BTreeMap::new();
    if let Some(summaries) = open(transaction, SUMMARIES)? {
        for entry in summaries.iter()? {
            let (key, bytes) = entry?;
            report.checked.summaries += 1;
            let (session, id) = (session_of(key.value()), seq_of(key.value()));
            let record = SummaryRecord::read(session, id, bytes.value());
            let record = readable(record, Advice::Restore, report)?;
            sessions.entry(session).or_default().insert(id, record.map(Node::from));
        }
    }
    let forgotten = open(transaction, FORGOTTEN)?;
    let said = transaction.open_table(TURNS)?;
    for (session, nodes) in &sessions {
        let Some(turns) = turns.get(session) else {
            let key = format!("session number {session}");
            report.add("summaries (no readable session has them)", key, Advice::Restore);
            continue;
        };
        let check = Check { session: *session, nodes, forgotten: &forgotten, report };
        check.run(*turns, |first, last| {
            let (first, last) = (turn_key(*session, first), turn_key(*session, last));
            Ok(said.range::<&TurnKey>(&first..=&last)?.next().is_some())
        })?;
    }
    leaves(transaction, &sessions, report)?;
    heads(transaction, &sessions, &forgotten, report)
}

struct Check<'a> {
    session: u64,
    nodes: &'a Nodes,
    forgotten: &'a Forgotten,
    report: &'a mut Report,
}

impl Check<'_> {
    /// `said` tells whether any turn of a run is there.
    fn run(
        mut self,
        turns: u64,
        said: impl Fn(u64, u64) -> Result<bool, Fault>,
    ) -> Result<(), Fault> {
        for (id, node) in self.nodes {
            let Some(node) = node else { continue };
            self.parent(*id, node);
            if node.depth > 0 {
                self.sources(*id, node)?;
            } else if node.last > turns || !said(node.first, node.last)? {
                self.wrong(*id, "the turns that it covers aren't there");
            }
        }
        Ok(())
    }

    fn parent(&mut self, id: u64, node: &Node) {
        if node.parent == 0 {
            return;
        }
        match self.nodes.get(&node.parent) {
            None => self.wrong(id, "its parent isn't there"),
            Some(Some(parent)) if !parent.sources.contains(&id) => {
                self.wrong(id, "its parent has other sources");
            }
            _ => {}
        }
    }

    fn sources(&mut self, id: u64, node: &Node) -> Result<(), Fault> {
        let (mut before, mut first) = (None, None);
        for source in &node.sources {
            let Some(found) = self.nodes.get(source) else {
                self.wrong(id, "a source isn't there");
                return Ok(());
            };
            // One that can't be read was reported.
            let Some(found) = found else { return Ok(()) };
            if found.parent != id {
                self.wrong(id, "a source has another parent");
            }
            if u16::from(found.depth) + 1 != u16::from(node.depth) {
                self.wrong(id, "a source has a depth that doesn't fit");
            }
            if let Some(before) = before
                && !self.follows(before, found.first)?
            {
                self.wrong(id, "its sources don't follow each other");
            }
            first = first.or(Some(found.first));
            before = Some(found.last);
        }
        if node.sources.len() < 2 || (first, before) != (Some(node.first), Some(node.last)) {
            self.wrong(id, "it covers other turns than its sources");
        }
        Ok(())
    }

    /// Tells whether there is nothing between two turns but forgotten ones.
    fn follows(&self, before: u64, after: u64) -> Result<bool, Fault> {
        for turn in before.saturating_add(1)..after {
            if !has(self.forgotten, &turn_key(self.session, turn))? {
                return Ok(false);
            }
        }
        Ok(before < after)
    }

    fn wrong(&mut self, id: u64, what: &str) {
        wrong(self.session, id, what, self.report);
    }
}

fn wrong(session: u64, id: u64, what: &str, report: &mut Report) {
    report.add(format!("summary ({what})"), summary_name(session, id), Advice::Restore);
}

/// The table of leaves has each of them, and no turn twice.
fn leaves(
    transaction: &ReadTransaction,
    sessions: &BTreeMap<u64, Nodes>,
    report: &mut Report,
) -> Result<(), Fault> {
    let (mut found, mut end) = (BTreeSet::new(), (0, 0));
    if let Some(leaves) = open(transaction, LEAVES)? {
        for entry in leaves.iter()? {
            let (key, value) = entry?;
            report.checked.references += 1;
            let (session, first) = (session_of(key.value()), seq_of(key.value()));
            let (last, id) = (session_of(value.value()), seq_of(value.value()));
            if (session, first) <= end {
                wrong(session, id, "another one covers its first turn, too", report);
            }
            end = (session, last);
            found.insert((session, first, leaf_value(last, id)));
            match sessions.get(&session).and_then(|nodes| nodes.get(&id)) {
                None => {
                    wrong(session, id, "the table of leaves has it, but it isn't there", report)
                }
                Some(Some(node)) if (node.first, node.last, node.depth) != (first, last, 0) => {
                    wrong(session, id, "the table of leaves has other turns", report);
                }
                _ => {}
            }
        }
    }
    for (session, nodes) in sessions {
        for (id, node) in nodes {
            let Some(node) = node.as_ref().filter(|node| node.depth == 0) else { continue };
            if !found.contains(&(*session, node.first, leaf_value(node.last, *id))) {
                wrong(*session, *id, "the table of leaves doesn't have it", report);
            }
        }
    }
    Ok(())
}

/// Each head is what its session's leaves and forgotten turns come to.
fn heads(
    transaction: &ReadTransaction,
    sessions: &BTreeMap<u64, Nodes>,
    forgotten: &Forgotten,
    report: &mut Report,
) -> Result<(), Fault> {
    let heads = open(transaction, HEADS)?;
    for session in sessions.keys() {
        if !has(&heads, &session.to_be_bytes())? {
            let key = format!("session number {session}");
            report.add("head of a session's summaries (missing)", key, Advice::Restore);
        }
    }
    let (leaves, Some(forgotten)) = (open(transaction, LEAVES)?, forgotten) else { return Ok(()) };
    let (Some(heads), Some(leaves)) = (heads, leaves) else { return Ok(()) };
    for entry in heads.iter()? {
        let (key, bytes) = entry?;
        report.checked.references += 1;
        let session = u64::from_be_bytes(*key.value());
        let head = readable(HeadRecord::read(session, bytes.value()), Advice::Restore, report)?;
        let Some(head) = head else { continue };
        let real = frontier(session, 0, &leaves, forgotten)?;
        let highest = sessions.get(&session).and_then(|nodes| nodes.last_key_value());
        let key = || format!("session number {session}");
        if real != head.frontier {
            let what = format!("frontier (it is {}, not {real})", head.frontier);
            report.add(what, key(), Advice::Restore);
        }
        if highest.is_some_and(|(id, _)| head.next <= *id) {
            let what = "head of a session's summaries (it would give a number again)";
            report.add(what, key(), Advice::Restore);
        }
    }
    Ok(())
}

/// Returns what the engine keeps.
pub(crate) fn states(transaction: &ReadTransaction, report: &mut Report) -> Result<(), Fault> {
    let sessions = turns_of_sessions(transaction)?;
    if let Some(states) = open(transaction, STATES)? {
        for entry in states.iter()? {
            let (key, value) = entry?;
            report.checked.references += 1;
            let (session, kind) = state_parts(key.value());
            let kind = StateKind::from_byte(kind).filter(|_| unseal(value.value()).is_some());
            let name = || format!("session number {session}");
            if kind.is_none() {
                report.add("state", name(), Advice::Restore);
            }
            if !sessions.contains_key(&session) {
                report.add("state (no readable session has it)", name(), Advice::Restore);
            }
        }
    }
    let Some(traces) = open(transaction, TRACES)? else { return Ok(()) };
    let replies = transaction.open_table(REPLIES)?;
    for entry in traces.iter()? {
        let (key, value) = entry?;
        report.checked.references += 1;
        let name = || turn_name(session_of(key.value()), seq_of(key.value()));
        if unseal(value.value()).is_none() {
            report.add("trace", name(), Advice::Restore);
        }
        if replies.get(key.value())?.is_none() {
            report.add("trace (without a reply)", name(), Advice::Restore);
        }
    }
    Ok(())
}

impl From<SummaryRecord> for Node {
    fn from(record: SummaryRecord) -> Self {
        let SummaryRecord { first, last, depth, parent, sources, .. } = record;
        Self { first, last, depth, parent, sources }
    }
}
