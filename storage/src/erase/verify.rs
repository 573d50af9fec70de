//! Looking for words everywhere that they could have been left.

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

use garret_core::medium::MediumError;
use redb::{ReadTransaction, ReadableDatabase as _, ReadableTable as _};

use crate::conversations::record::SessionRecord;
use crate::erase::needle::Needle;
use crate::erase::walk::{Spot, state_name, walk};
use crate::facts::{EntityId, FactId};
use crate::files::part::Part;
use crate::ground::error::{Fault, ReadError};
use crate::ground::table::SESSIONS;
use crate::store::Store;
use crate::summaries::SummaryId;
use crate::summaries::table::state_parts;

/// A place where words are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trace {
    /// In a file of the namespace.
    Bytes {
        /// What the file's name ends with, after the dot.
        extension: &'static str,
        /// The file, if it is one.
        path: Option<PathBuf>,
        /// Where in it.
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

impl Store {
    /// Looks for `pattern` in every byte of every file of the namespace (records, journal, vectors,
    /// index, what a rewrite left, the lock) and in all records. Nothing found: it is erased.
    ///
    /// In records, a pattern that is text is found in any case and Unicode form of its letters, as
    /// [`Store::erase`] finds it. In files it is found byte for byte, ASCII letters in any case,
    /// and other letters as they are, all small, all capital, capital at the start of words, or
    /// folded, each composed or decomposed. Other encodings (a model's token ids, hashes) are not
    /// looked through; they are parts of records and go with them.
    ///
    /// It reads everything once, in blocks, and stops at [`MOST_TRACES`](Self::MOST_TRACES).
    ///
    /// # Errors
    /// [`ReadError::BlankPattern`] and others.
    pub fn verify_erased(&self, pattern: &[u8]) -> Result<Vec<Trace>, ReadError> {
        let needle = Needle::new(pattern).ok_or(ReadError::BlankPattern)?;
        let mut slot = self.slot();
        let mut traces =
            self.run(&mut slot, false, |open| records(&open.database.begin_read()?, &needle))?;
        for part in Part::ALL {
            let medium = match part {
                Part::Records => Some(slot.records.clone()),
                part => self.media().open_existing(part).map_err(ReadError::Medium)?,
            };
            let Some(medium) = medium else { continue };
            let mut at = 0;
            let len = medium.len().map_err(ReadError::Medium)?;
            let read = |out: &mut [u8]| {
                let take = usize::try_from(len - at).unwrap_or(usize::MAX).min(out.len());
                medium.read_at(at, out.get_mut(..take).unwrap_or_default())?;
                at += u64::try_from(take).unwrap_or(0);
                Ok(take)
            };
            let offsets = scan(&needle, read).map_err(ReadError::Medium)?;
            let (extension, path) = (part.extension(), self.media().path(part));
            traces.extend(offsets.into_iter().map(|offset| Trace::Bytes {
                extension,
                path: path.clone(),
                offset,
            }));
        }
        traces.extend(self.in_lock(&needle).map_err(ReadError::Medium)?);
        traces.truncate(Self::MOST_TRACES);
        Ok(traces)
    }

    /// Most places that [`verify_erased`](Self::verify_erased) tells.
    pub const MOST_TRACES: usize = 1_000;

    fn in_lock(&self, needle: &Needle) -> Result<Vec<Trace>, MediumError> {
        let Some(path) = self.path().map(|path| path.with_extension("lock")) else {
            return Ok(Vec::new());
        };
        let failed = |error: std::io::Error| MediumError::Device {
            errno: error.raw_os_error().unwrap_or(0),
        };
        let mut file = File::open(&path).map_err(failed)?;
        let offsets = scan(needle, |out| file.read(out).map_err(failed))?;
        let trace = |offset| Trace::Bytes { extension: "lock", path: Some(path.clone()), offset };
        Ok(offsets.into_iter().map(trace).collect())
    }
}

/// Where the words are in what `read` gives, block by block until there is nothing more.
fn scan(
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
        let room = Store::MOST_TRACES.saturating_sub(found.len());
        let offset = |at: usize| start + u64::try_from(at).unwrap_or(0);
        found.extend(needle.places(bytes).take(room).map(offset));
        let keep = (needle.longest() - 1).min(end);
        start = offset(end - keep);
        buffer.copy_within(end - keep..end, 0);
        kept = keep;
    }
}

/// What is read at a time.
const BLOCK: usize = 1 << 20;

fn records(transaction: &ReadTransaction, needle: &Needle) -> Result<Vec<Trace>, Fault> {
    let mut spots = Vec::new();
    walk(transaction, needle, |spot| {
        if spots.len() < Store::MOST_TRACES {
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
