//! Looking for words everywhere that they could have been left.

use std::path::PathBuf;

use garret_core::medium::MediumError;
use redb::{ReadTransaction, ReadableTable as _};

use crate::conversations::record::SessionRecord;
use crate::erase::needle::Needle;
use crate::erase::walk::{Spot, state_name, walk};
use crate::facts::{EntityId, FactId};
use crate::ground::error::Fault;
use crate::ground::table::SESSIONS;
use crate::summaries::SummaryId;
use crate::summaries::table::state_parts;

/// A place where words are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trace {
    /// In a file of the namespace.
    Bytes {
        /// The end of the file's name, after the dot.
        extension: &'static str,
        /// The file, if it is one.
        path: Option<PathBuf>,
        /// The place where in it.
        offset: u64,
    },
    /// In a record that can be read: it was not forgotten.
    Record {
        /// `SESSION/TURN/user`, `SESSION/TURN/assistant`, `SESSION/TURN` for a receipt or the
        /// name of who spoke, the name of a session for its name or title, `f12` for a fact, `e12`
        /// for an entity, `SESSION/s12` for a summary, `SESSION/KIND` for a state,
        /// `SESSION/TURN/trace` for a trace.
        id: String,
    },
}

/// Returns where the words are in what `read` gives, block by block until there is nothing more.
pub(crate) fn scan(
    needle: &Needle,
    mut read: impl FnMut(&mut [u8]) -> Result<usize, MediumError>,
) -> Result<Vec<u64>, MediumError> {
    let mut found = Vec::new();
    // What may be the start of a spelling is kept in front of the next block.
    let (mut buffer, mut kept, mut start) = (vec![0; BLOCK.max(4 * needle.longest())], 0, 0_u64);
    loop {
        let space = buffer.get_mut(kept..).unwrap_or_default();
        let took = read(space)?;
        if took == 0 {
            found.sort_unstable();
            found.dedup();
            return Ok(found);
        }
        let end = kept + took;
        let bytes = buffer.get(..end).unwrap_or_default();
        let room = MOST_TRACES.saturating_sub(found.len());
        let offset = |at: usize| start + u64::try_from(at).unwrap_or(0);
        found.extend(needle.places(bytes).take(room).map(offset));
        let keep = (needle.longest() - 1).min(end);
        start = offset(end - keep);
        buffer.copy_within(end - keep..end, 0);
        kept = keep;
    }
}

/// Most places that are told.
pub(crate) const MOST_TRACES: usize = 1_000;

/// Bytes that are read at a time.
const BLOCK: usize = 1 << 20;

pub(crate) fn records(transaction: &ReadTransaction, needle: &Needle) -> Result<Vec<Trace>, Fault> {
    let mut spots = Vec::new();
    walk(transaction, needle, |spot| {
        if spots.len() < MOST_TRACES {
            spots.push(spot);
        }
    })?;
    spots
        .into_iter()
        .map(|spot| {
            Ok(Trace::Record {
                id: match spot {
                    Spot::Name(name) => name,
                    Spot::Title(session) => name_of(transaction, session)?,
                    Spot::Turn(session, turn) => {
                        format!("{}/{turn}/user", name_of(transaction, session)?)
                    }
                    Spot::Reply(session, turn) => {
                        format!("{}/{turn}/assistant", name_of(transaction, session)?)
                    }
                    Spot::Receipt(session, turn) | Spot::Speaker(session, turn) => {
                        format!("{}/{turn}", name_of(transaction, session)?)
                    }
                    Spot::Fact(id) => FactId(id).to_string(),
                    Spot::Entity(id) => EntityId(id).to_string(),
                    Spot::Summary(session, id) => {
                        format!("{}/{}", name_of(transaction, session)?, SummaryId(id))
                    }
                    Spot::State(key) => {
                        let name = name_of(transaction, state_parts(&key).0)?;
                        state_name(&key, |_| name)
                    }
                    Spot::Trace(session, turn) => {
                        format!("{}/{turn}/trace", name_of(transaction, session)?)
                    }
                },
            })
        })
        .collect()
}

fn name_of(transaction: &ReadTransaction, session: u64) -> Result<String, Fault> {
    for entry in transaction.open_table(SESSIONS)?.iter()? {
        let (id, bytes) = entry?;
        if let Ok(record) = SessionRecord::read(id.value(), bytes.value())
            && record.number == session
        {
            return Ok(record.id);
        }
    }
    Ok(format!("#{session}"))
}
