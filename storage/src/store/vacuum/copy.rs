//! Every record of a moment, written anew into a fresh database.
//!
//! The copy is written straight to its medium, so that memory stays small however much there is;
//! its first bytes come last, as `FORMAT.md`, "Creation", has it. So a copy that was cut short is
//! never taken for a store.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use garret_core::medium::{Medium, MediumError};
use redb::{
    Durability, Key, MultimapTableHandle as _, ReadTransaction, ReadableTable as _, StorageBackend,
    TableDefinition, TableError, TableHandle as _, Value, WriteTransaction,
};

use crate::conversations::erased::FORGOTTEN;
use crate::erase::ledger::ERASURES;
use crate::facts::table as facts;
use crate::files::create::{Found, MAGIC, MARK, classify};
use crate::ground::database::{builder, contain};
use crate::ground::error::Fault;
use crate::ground::position::Position;
use crate::ground::table::{IMPORTED, META, RECEIPTS, REPLIES, SESSIONS, SPEAKERS, TURNS, key};
use crate::summaries::table as summaries;

/// The records as they were at one moment, and the last write among them.
pub(crate) struct Snapshot<'a> {
    pub(crate) transaction: &'a ReadTransaction,
    pub(crate) last: Position,
}

/// Counts of what was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Copied {
    /// Rows of all tables.
    pub(crate) rows: u64,
    /// Length of the new file.
    pub(crate) bytes: u64,
}

/// Why there is no copy. The medium is empty, or holds what was there before it was begun.
pub(crate) enum Uncopied {
    /// Something is there already.
    NotEmpty,
    /// The error of the new medium.
    To(MediumError),
    /// The records can't be read.
    From(Fault),
}

/// Writes a whole database of what `snapshot` shows to a medium that holds nothing, or a creation
/// that was cut short. It is durable when this returns.
pub(crate) fn rewrite(
    snapshot: &Snapshot<'_>,
    medium: Arc<dyn Medium>,
) -> Result<Copied, Uncopied> {
    match classify(&*medium).map_err(Uncopied::To)? {
        Found::New | Found::Unfinished => {}
        Found::Database | Found::Foreign => return Err(Uncopied::NotEmpty),
    }
    let fresh = Fresh::begin(medium.clone()).map_err(Uncopied::To)?;
    let done = contain(|| fill(snapshot, fresh.clone()));
    let finished = match (done, fresh.failure()) {
        (Ok(rows), None) => {
            fresh.finish().map(|bytes| Copied { rows, bytes }).map_err(Uncopied::To)
        }
        (_, Some(refused)) => Err(Uncopied::To(refused)),
        (Err(fault), None) => Err(Uncopied::From(fault)),
    };
    if finished.is_err() {
        // Others may need the room; without the magic it is no store, whether or not this works.
        let _ = medium.set_len(0);
    }
    finished
}

fn fill(snapshot: &Snapshot<'_>, fresh: Arc<Fresh>) -> Result<u64, Fault> {
    let mut database = builder().create_with_backend(Adapter(fresh))?;
    let mut to = database.begin_write()?;
    let rows = copy(snapshot.transaction, &to)?;
    {
        let mut meta = to.open_table(META)?;
        meta.insert(key::JOURNAL, snapshot.last.to_bytes().as_slice())?;
        // Nothing that was forgotten is in the copy.
        meta.remove(key::REWRITE)?;
    }
    // Else the first open would read every page.
    to.set_quick_repair(true);
    to.set_durability(Durability::Immediate).map_err(|error| Fault::Engine(error.to_string()))?;
    to.commit()?;
    // What is added in the order of keys leaves room in every page; this doesn't change that, but
    // gives back the pages behind the last one in use.
    database.compact().map_err(|error| Fault::Engine(error.to_string()))?;
    Ok(rows)
}

/// Copies every table; how many rows they have.
fn copy(from: &ReadTransaction, to: &WriteTransaction) -> Result<u64, Fault> {
    let mut copy = Copy { from, to, names: BTreeSet::new(), rows: 0 };
    copy.table(META)?;
    copy.table(SESSIONS)?;
    copy.table(TURNS)?;
    copy.table(REPLIES)?;
    copy.table(RECEIPTS)?;
    copy.table(SPEAKERS)?;
    copy.table(IMPORTED)?;
    copy.table(FORGOTTEN)?;
    copy.table(ERASURES)?;
    copy.table(facts::FACTS)?;
    copy.table(facts::SLOTS)?;
    copy.table(facts::HEIRS)?;
    copy.table(facts::SOURCES)?;
    copy.table(facts::USAGE)?;
    copy.table(facts::ENTITIES)?;
    copy.table(facts::NAMES)?;
    copy.table(facts::LINKS)?;
    copy.table(facts::PINS)?;
    copy.table(summaries::SUMMARIES)?;
    copy.table(summaries::LEAVES)?;
    copy.table(summaries::HEADS)?;
    copy.table(summaries::STATES)?;
    copy.table(summaries::TRACES)?;
    copy.nothing_else()?;
    Ok(copy.rows)
}

struct Copy<'a> {
    from: &'a ReadTransaction,
    to: &'a WriteTransaction,
    names: BTreeSet<String>,
    rows: u64,
}

impl Copy<'_> {
    fn table<K: Key + 'static, V: Value + 'static>(
        &mut self,
        table: TableDefinition<'static, K, V>,
    ) -> Result<(), Fault> {
        self.names.insert(table.name().to_owned());
        let from = match self.from.open_table(table) {
            Err(TableError::TableDoesNotExist(_)) => return Ok(()),
            from => from?,
        };
        let mut to = self.to.open_table(table)?;
        for entry in from.iter()? {
            let (key, value) = entry?;
            to.insert(key.value(), value.value())?;
            self.rows += 1;
        }
        Ok(())
    }

    /// A table that isn't copied would be lost.
    fn nothing_else(&self) -> Result<(), Fault> {
        let tables = self.from.list_tables()?.map(|table| table.name().to_owned());
        let sets = self.from.list_multimap_tables()?.map(|table| table.name().to_owned());
        match tables.chain(sets).find(|name| !self.names.contains(name)) {
            None => Ok(()),
            Some(name) => Err(Fault::Damaged {
                what: "database (it has a table that this program doesn't know)",
                key: format!("`{}`", name.escape_debug()),
            }),
        }
    }
}

/// A database that is being written to a medium for the first time.
struct Fresh {
    medium: Arc<dyn Medium>,
    state: Mutex<State>,
}

struct State {
    /// Length as the database knows it.
    len: u64,
    /// The first bytes, which go to the medium last.
    head: [u8; HEAD],
    /// The first thing that the medium refused.
    failure: Option<MediumError>,
}

/// Bytes that tell a database from the beginning of one.
const HEAD: usize = MARK.len();
const HEAD_U64: u64 = 9;

impl Fresh {
    fn begin(medium: Arc<dyn Medium>) -> Result<Arc<Self>, MediumError> {
        medium.set_len(0)?;
        medium.write_at(0, &MARK)?;
        medium.sync()?;
        let state = State { len: 0, head: [0; HEAD], failure: None };
        Ok(Arc::new(Self { medium, state: Mutex::new(state) }))
    }

    /// Makes it a database; its length.
    fn finish(&self) -> Result<u64, MediumError> {
        self.medium.sync()?;
        self.medium.write_at(0, &MAGIC)?;
        self.medium.sync()?;
        self.medium.len()
    }

    fn failure(&self) -> Option<MediumError> {
        self.state().failure
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that is done with it can panic halfway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run<T>(
        &self,
        act: impl FnOnce(&mut State, &dyn Medium) -> Result<T, MediumError>,
    ) -> io::Result<T> {
        let mut state = self.state();
        act(&mut state, &*self.medium).map_err(|error| {
            state.failure.get_or_insert(error);
            io::Error::other(error)
        })
    }
}

/// A handle to the medium, which redb owns.
struct Adapter(Arc<Fresh>);

impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Adapter")
    }
}

impl StorageBackend for Adapter {
    fn len(&self) -> io::Result<u64> {
        self.0.run(|state, _| Ok(state.len))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.run(|state, medium| {
            medium.read_at(offset, out)?;
            let start = usize::try_from(offset).unwrap_or(HEAD).min(HEAD);
            let head = state.head.get(start..).unwrap_or_default();
            out.iter_mut().zip(head).for_each(|(byte, kept)| *byte = *kept);
            Ok(())
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.run(|state, medium| {
            medium.set_len(len.max(HEAD_U64))?;
            state.len = len;
            Ok(())
        })
    }

    /// Nothing counts before it is finished.
    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.run(|state, medium| {
            let start = usize::try_from(offset).unwrap_or(HEAD).min(HEAD);
            let kept = state.head.get_mut(start..).unwrap_or_default();
            let within = kept.len().min(data.len());
            let (head, rest) = data.split_at(within);
            kept.iter_mut().zip(head).for_each(|(kept, byte)| *kept = *byte);
            match rest {
                [] => Ok(()),
                rest => medium.write_at(offset + within as u64, rest),
            }
        })
    }
}
