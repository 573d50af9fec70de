//! The store: one namespace, one owner, one medium.
//!
//! `impl Store` stands in this folder alone, a file for each topic; the rooms below have functions over
//! transactions, files and indexes, and know no store.
//!
//! Order of locks: the text index in memory (`Derived::hold`), then the vectors (`Vectors`), then the
//! records (`Slot`). Who needs several takes them in that order; who has a later one and wants an
//! earlier one may only try (`try_hold`, `try_write`) and does without where it is taken. The queues of
//! what changed (`Derived`, `Waiting`) and the snapshots' files are locked last, for moments, with
//! nothing taken under them.

mod bundle;
mod erase;
pub(crate) mod facts;
mod import;
pub(crate) mod search;
pub(crate) mod sessions;
pub(crate) mod since;
pub(crate) mod snapshot;
pub(crate) mod stats;
pub(crate) mod summaries;
pub(crate) mod turns;
pub(crate) mod vacuum;
pub(crate) mod vectors;
mod verify;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use garret_core::medium::{Medium, MediumError};
use redb::{ReadTransaction, ReadableDatabase as _};

use crate::files::lock::{Lock, LockError};
use crate::files::name::{MAX_NAMESPACE_BYTES, NamespaceError, file_name};
use crate::files::part::{Media, Part};
use crate::ground::database::contain;
use crate::ground::error::{Abort, Fault, ReadError};
use crate::ground::position::Position;
use crate::open::error::OpenError;
use crate::open::{Open, explain, is_new, make_directory, sync_directories};
use crate::search::Derived;
use crate::store::snapshot::Snapshots;
use crate::store::vacuum::Next;
use crate::store::vectors::Vectors;

/// The conversations of one namespace.
///
/// Every write is one durable step. One operation runs at a time; several threads may share a
/// store. After an error it stays usable: a database that failed is opened anew by the next use.
pub struct Store {
    namespace: String,
    path: Option<PathBuf>,
    media: Arc<Media>,
    slot: Mutex<Slot>,
    /// The text index in memory.
    pub(crate) derived: Derived,
    pub(crate) vectors: Vectors,
    pub(crate) snapshots: Snapshots,
    _lock: Option<Lock>,
}

pub(crate) struct Slot {
    pub(crate) records: Arc<dyn Medium>,
    /// The file beside the records.
    pub(crate) next: Next,
    /// Empty while an operation runs, and after one that failed.
    pub(crate) open: Option<Open>,
    /// Writes that wait before a fold is tried again, after one that failed.
    patience: u64,
    /// Writes before a rewrite that is due is tried again, after one that failed.
    rest: u64,
}

impl Store {
    /// Opens the store of `namespace` in `data_dir`, making what isn't there; `open_medium` gets
    /// the path of a file and opens or creates that: first the one of the records, those of the
    /// other [`Part`]s when they are there or needed. It is called again after a
    /// failure of the medium, by the next use: a file that couldn't be synced must be opened anew.
    ///
    /// An existing file isn't written to before the first record is. What `open_medium` can open for
    /// reading alone can be read.
    ///
    /// # Errors
    /// [`OpenError`]; [`OpenError::InUse`] when another process or another store of this one has
    /// it.
    pub fn open(
        data_dir: &Path,
        namespace: &str,
        open_medium: impl Fn(&Path) -> Result<Box<dyn Medium>, MediumError> + Send + Sync + 'static,
    ) -> Result<Self, OpenError> {
        let path = data_dir.join(file_name(namespace)?);
        let lock = lock(namespace, &path)?;
        let failed = |source| OpenError::Medium { namespace: namespace.to_owned(), source };
        let media = Media::files(path.clone(), open_medium);
        let records = media.open(Part::Records).map_err(failed)?;
        if is_new(&*records).map_err(failed)? {
            sync_directories(&path, data_dir)
                .map_err(|(path, source)| OpenError::Directory { path, source })?;
        }
        let mut store = Self::connect(namespace, records, media)?;
        store.path = Some(path);
        store._lock = Some(lock);
        Ok(store)
    }

    /// A store on any media, without a lock: `open` gives that of a part, empty where there is
    /// none yet. It is called again for the same part after a failure.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn on_media(
        namespace: &str,
        open: impl Fn(Part) -> Result<Box<dyn Medium>, MediumError> + Send + Sync + 'static,
    ) -> Result<Self, OpenError> {
        Self::without_lock(namespace, Media::any(open))
    }

    /// A store on one medium, without a journal: every write goes into the records at once, which
    /// is slower and wears a device more. For media that are memory.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn on_medium(namespace: &str, medium: Box<dyn Medium>) -> Result<Self, OpenError> {
        Self::without_lock(namespace, Media::alone(medium))
    }

    fn without_lock(namespace: &str, media: Media) -> Result<Self, OpenError> {
        if namespace.len() > MAX_NAMESPACE_BYTES {
            return Err(NamespaceError::TooLong { bytes: namespace.len() }.into());
        }
        let failed = |source| OpenError::Medium { namespace: namespace.to_owned(), source };
        let records = media.open(Part::Records).map_err(failed)?;
        Self::connect(namespace, records, media)
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The file of its records, if they are in one.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Length of the file of the records in bytes.
    ///
    /// # Errors
    /// [`ReadError::Medium`].
    pub fn file_len(&self) -> Result<u64, ReadError> {
        self.slot().records.len().map_err(ReadError::Medium)
    }

    /// The length of a part's file in bytes, if it is there.
    pub(crate) fn part_len(&self, part: Part) -> Result<Option<u64>, MediumError> {
        let medium = self.media.open_existing(part)?;
        let len = medium.map(|medium| medium.len()).transpose()?;
        Ok(len.filter(|len| *len > 0))
    }

    fn connect(namespace: &str, records: Arc<dyn Medium>, media: Media) -> Result<Self, OpenError> {
        let media = Arc::new(media);
        let failed = |source| OpenError::Medium { namespace: namespace.to_owned(), source };
        let next = Next::look(&media).map_err(failed)?;
        let open = Open::connect(namespace, &next.shown(&records), &media)
            .map_err(|why| why.into_error(namespace))?;
        Ok(Self {
            namespace: namespace.to_owned(),
            path: None,
            media,
            derived: Derived::default(),
            slot: Mutex::new(Slot { records, next, open: Some(open), patience: 0, rest: 0 }),
            vectors: Vectors::default(),
            snapshots: Snapshots::default(),
            _lock: None,
        })
    }

    pub(crate) fn media(&self) -> &Arc<Media> {
        &self.media
    }

    pub(crate) fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one operation that only reads.
    pub(crate) fn reading<T>(
        &self,
        act: impl FnOnce(&mut Open) -> Result<T, Abort<ReadError>>,
    ) -> Result<T, ReadError> {
        self.attempt(&mut self.slot(), false, act).map_err(Abort::into_error)
    }

    /// Reads what a snapshot shows while others go on; what another one shows, from the beginning,
    /// where the database was closed meanwhile, since it failed or its file was written anew.
    pub(crate) fn on_snapshot<T>(
        &self,
        mut act: impl FnMut(&ReadTransaction, Position) -> Result<T, Fault>,
    ) -> Result<T, ReadError> {
        let mut tries = 0;
        loop {
            let (transaction, last, link) = self.reading(|open| {
                Ok((open.database.begin_read()?, open.journal.last(), open.link.clone()))
            })?;
            tries += 1;
            match contain(|| act(&transaction, last)).map_err(|fault| explain(fault, &link)) {
                Err(fault) if fault.is_fatal(false) && link.is_cut() && tries < MOST_TRIES => {
                    tracing::debug!(?fault, "the records were closed meanwhile; read again");
                }
                // What failed or panicked may not be fit for the next use.
                Err(fault) if fault.is_fatal(false) => return self.reading(|_| Err(fault.into())),
                done => return Ok(done?),
            }
        }
    }

    /// Runs one operation that writes, and what is due after it.
    pub(crate) fn writing<T, E: From<Fault>>(
        &self,
        act: impl FnOnce(&mut Open) -> Result<T, Abort<E>>,
    ) -> Result<T, E> {
        let mut slot = self.slot();
        let done = self.attempt(&mut slot, true, act).map_err(Abort::into_error)?;
        self.tidy(&mut slot);
        Ok(done)
    }

    /// Folds the journal if it is long enough, and clears it of what was removed. What was written
    /// is durable whether or not that succeeds.
    fn tidy(&self, slot: &mut Slot) {
        let Some(open) = &slot.open else { return };
        if open.rewrite_due {
            return self.catch_up(slot);
        }
        if open.journal.is_unclean() {
            let wiped = self.run(slot, true, |open| open.journal.wipe().map_err(Fault::Medium));
            if let Err(fault) = wiped {
                tracing::warn!(?fault, "words that were removed stay in the journal for a while");
            }
            return;
        }
        let pending = open.journal.pending();
        let is_long = open.journal.is_long();
        if !is_long || pending < slot.patience {
            slot.patience = if is_long { slot.patience } else { 0 };
            return;
        }
        if let Err(fault) = self.run(slot, true, Open::fold) {
            tracing::warn!(?fault, pending, "the journal can't be folded now; it grows meanwhile");
            slot.patience = pending + RETRY_OPS;
        }
    }

    /// Writes the records anew, which was cut short after something was forgotten.
    fn catch_up(&self, slot: &mut Slot) {
        slot.rest = slot.rest.saturating_sub(1);
        // Whoever has the index or the vectors may be waiting for the records.
        let Some(_held) = self.derived.try_hold().filter(|_| slot.rest == 0) else { return };
        let Some(mut vectors) = self.vectors.try_write() else { return };
        if let Err(fault) = self.rewrite(slot, &mut vectors) {
            tracing::warn!(?fault, "what was forgotten can't be erased from the files yet");
            slot.rest = RETRY_OPS;
        }
    }

    /// Runs something that is never refused.
    pub(crate) fn run<T>(
        &self,
        slot: &mut Slot,
        writes: bool,
        act: impl FnOnce(&mut Open) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        self.attempt(slot, writes, |open| act(open).map_err(Abort::<Fault>::Fault))
            .map_err(Abort::into_error)
    }

    /// Runs something on the open database, which is closed after a fault that it can't outlive.
    /// After a refusal it stays open.
    pub(crate) fn attempt<T, E>(
        &self,
        slot: &mut Slot,
        writes: bool,
        act: impl FnOnce(&mut Open) -> Result<T, Abort<E>>,
    ) -> Result<T, Abort<E>> {
        let mut open = self.ready(slot, writes)?;
        open.link.forget_failure();
        let done = contain(|| Ok(act(&mut open))).unwrap_or_else(|panic| Err(panic.into()));
        match done {
            Err(Abort::Fault(fault)) if fault.is_fatal(writes) => {
                let fault = explain(fault, &open.link);
                open.abandon();
                self.derived.forget();
                self.vectors.forget();
                Err(fault.into())
            }
            done => {
                let fresh = open.index.fresh();
                self.derived.note(&fresh);
                self.vectors.note(&fresh);
                slot.open = Some(open);
                done
            }
        }
    }

    /// The open database, taken from its slot; for writing with nothing beside the records.
    fn ready(&self, slot: &mut Slot, writes: bool) -> Result<Open, Fault> {
        if matches!(slot.next, Next::Unknown) {
            slot.next = Next::look(&self.media).map_err(Fault::Medium)?;
            if matches!(slot.next, Next::Whole(_)) {
                slot.close();
            }
        }
        if writes && slot.next.is_due() {
            self.settle(slot)?;
        }
        match slot.open.take() {
            Some(open) => Ok(open),
            None => self.reconnect(slot),
        }
    }

    /// Brings the records to what the file beside them says, and empties that.
    pub(crate) fn settle(&self, slot: &mut Slot) -> Result<(), Fault> {
        let next = std::mem::replace(&mut slot.next, Next::Unknown);
        if let Next::Whole(_) = next {
            slot.close();
            // The handle may be one that couldn't be synced.
            slot.records = self.media.open(Part::Records).map_err(Fault::Medium)?;
        }
        next.settle(&*slot.records).map_err(Fault::Medium)?;
        slot.next = Next::Nothing;
        Ok(())
    }

    /// The database again, after it failed or its file was replaced.
    fn reconnect(&self, slot: &mut Slot) -> Result<Open, Fault> {
        slot.records = self.media.open(Part::Records).map_err(Fault::Medium)?;
        Ok(Open::connect(&self.namespace, &slot.next.shown(&slot.records), &self.media)?)
    }
}

impl Slot {
    /// Drops the open database, and whatever it has not written.
    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            open.abandon();
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.tend_index_at_end();
        }
        let slot = self.slot.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = slot.open.take() {
            open.close();
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("namespace", &self.namespace)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// Snapshots that are tried.
const MOST_TRIES: u32 = 8;

/// Writes that wait after a fold that failed before the next one is tried.
const RETRY_OPS: u64 = 64;

fn lock(namespace: &str, store: &Path) -> Result<Lock, OpenError> {
    let failed = |path: &Path, source| OpenError::Directory { path: path.to_owned(), source };
    let directory = store.parent().unwrap_or(Path::new(""));
    make_directory(directory).map_err(|source| failed(directory, source))?;
    let path = store.with_extension("lock");
    Lock::take(&path).map_err(|error| match error {
        LockError::Held { pid } => OpenError::InUse { namespace: namespace.to_owned(), pid },
        LockError::Io(source) => failed(&path, source),
    })
}

#[cfg(test)]
mod tests {
    use garret_core::time::{Confidence, WallTime};
    use garret_hal::media::RamMedium;

    use super::*;
    use crate::ground::error::WriteError;

    /// A panic below an operation ends neither the store nor the process, and what panicked doesn't
    /// get to write any more, not even while it is closed.
    #[test]
    fn a_panic_is_an_error_and_the_store_goes_on() {
        let medium = RamMedium::new();
        let store = Store::on_medium("n", Box::new(medium.clone())).unwrap();
        let (id, at) =
            ("s".parse().unwrap(), WallTime { unix_ms: 0, confidence: Confidence::Good });
        assert_eq!(store.accept(&id, "one", at).unwrap(), 1);
        let mut before = Vec::new();
        let error = store.writing(|open| -> Result<(), Abort<WriteError>> {
            let transaction = open.database.begin_write()?;
            transaction
                .open_table(crate::ground::table::META)?
                .insert("half", b"done".as_slice())?;
            before = medium.snapshot();
            panic!("as if in the database")
        });
        assert!(matches!(error, Err(WriteError::Engine(why)) if why == "as if in the database"));
        assert!(medium.snapshot() == before);
        assert_eq!(store.accept(&id, "two", at).unwrap(), 2);
        drop(store);
        let store = Store::on_medium("n", Box::new(medium)).unwrap();
        assert_eq!(store.session(&id).unwrap().unwrap().turns, 2);
    }

    /// After a write that met a wrong page redb refuses to write, until it is opened again.
    #[test]
    fn a_page_that_was_misread_once_does_not_stop_later_writes() {
        let medium = RamMedium::new();
        let store = Store::on_medium("n", Box::new(medium.clone())).unwrap();
        let (id, at) =
            ("s".parse().unwrap(), WallTime { unix_ms: 0, confidence: Confidence::Good });
        store.accept(&id, "one", at).unwrap();
        let whole = medium.snapshot();
        let error = store.writing(|open| -> Result<_, Abort<WriteError>> {
            for page in (4_096..whole.len()).step_by(4_096) {
                medium.write_at(page as u64, &[0xee]).map_err(Fault::Medium)?;
            }
            Ok(open.database.check_integrity()?)
        });
        assert!(matches!(error, Err(WriteError::Damaged { .. })), "{error:?}");
        medium.write_at(0, &whole).unwrap();
        assert_eq!(store.accept(&id, "two", at).unwrap(), 2);
    }
}
