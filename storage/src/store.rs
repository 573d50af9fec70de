//! The store: one namespace, one owner, one medium.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use garret_core::medium::{Medium, MediumError};

use crate::error::{Fault, OpenError, ReadError, WriteError};
use crate::lock::{Lock, LockError};
use crate::name::{MAX_NAMESPACE_BYTES, NamespaceError, file_name};
use crate::open::{Open, contain, explain, is_new, make_directory, sync_directories};

/// Most bytes that a text, a reply's token ids or a receipt can have.
pub const MAX_BYTES: usize = 16 << 20;

/// The conversations of one namespace.
///
/// Every write is one durable transaction. One operation runs at a time; several threads may share
/// a store. After an error it stays usable: a database that failed is reopened by the next use.
pub struct Store {
    namespace: String,
    path: Option<PathBuf>,
    /// Opens the medium once more, where that can be done.
    reopen: Option<Reopen>,
    slot: Mutex<Slot>,
    _lock: Option<Lock>,
}

type Reopen = Box<dyn Fn() -> Result<Box<dyn Medium>, MediumError> + Send + Sync>;

struct Slot {
    medium: Arc<dyn Medium>,
    /// Empty while an operation runs, and after one that failed.
    open: Option<Open>,
}

impl Store {
    /// Opens the store of `namespace` in `data_dir`, making what isn't there; `open_medium` gets
    /// the path of its file and opens or creates that. It is called again after a failure of the
    /// medium, by the next use: a file that couldn't be synced must be opened anew.
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
        let medium = open_medium(&path).map_err(failed)?;
        if is_new(&*medium).map_err(failed)? {
            sync_directories(&path, data_dir)
                .map_err(|(path, source)| OpenError::Directory { path, source })?;
        }
        let mut store = Self::connect(namespace, medium)?;
        store.path = Some(path.clone());
        store.reopen = Some(Box::new(move || open_medium(&path)));
        store._lock = Some(lock);
        Ok(store)
    }

    /// A store on any medium, without a lock.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn on_medium(namespace: &str, medium: Box<dyn Medium>) -> Result<Self, OpenError> {
        if namespace.len() > MAX_NAMESPACE_BYTES {
            return Err(NamespaceError::TooLong { bytes: namespace.len() }.into());
        }
        Self::connect(namespace, medium)
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The file, if it is in one.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Length of the file in bytes.
    ///
    /// # Errors
    /// [`ReadError::Medium`].
    pub fn file_len(&self) -> Result<u64, ReadError> {
        self.slot().medium.len().map_err(ReadError::Medium)
    }

    fn connect(namespace: &str, medium: Box<dyn Medium>) -> Result<Self, OpenError> {
        let medium = Arc::from(medium);
        let open = Open::connect(namespace, &medium).map_err(|why| why.into_error(namespace))?;
        Ok(Self {
            namespace: namespace.to_owned(),
            path: None,
            reopen: None,
            slot: Mutex::new(Slot { medium, open: Some(open) }),
            _lock: None,
        })
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one operation that only reads.
    pub(crate) fn reading<T>(
        &self,
        act: impl FnOnce(&mut Open) -> Result<Result<T, ReadError>, Fault>,
    ) -> Result<T, ReadError> {
        self.run(false, act)?
    }

    /// Runs one operation that writes.
    pub(crate) fn writing<T>(
        &self,
        act: impl FnOnce(&mut Open) -> Result<Result<T, WriteError>, Fault>,
    ) -> Result<T, WriteError> {
        self.run(true, |open| {
            open.link.go_live().map_err(Fault::Medium)?;
            act(open)
        })?
    }

    fn run<T>(
        &self,
        writes: bool,
        act: impl FnOnce(&mut Open) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let mut slot = self.slot();
        let mut open = match slot.open.take() {
            Some(open) => open,
            None => self.reconnect(&mut slot)?,
        };
        open.link.forget_failure();
        match contain(|| act(&mut open)) {
            Err(fault) if fault.is_fatal(writes) => {
                let fault = explain(fault, &open.link);
                // After corruption the database closes as it sees fit: cutting it off would have
                // the next open repair, which refuses a store with any wrong page.
                open.close(!matches!(fault, Fault::Corrupted(_)));
                Err(fault)
            }
            done => {
                slot.open = Some(open);
                done
            }
        }
    }

    /// The database again, after it failed.
    fn reconnect(&self, slot: &mut Slot) -> Result<Open, Fault> {
        if let Some(reopen) = &self.reopen {
            slot.medium = reopen().map_err(Fault::Medium)?.into();
        }
        Ok(Open::connect(&self.namespace, &slot.medium)?)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let slot = self.slot.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = slot.open.take() {
            open.close(false);
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
        let error = store.writing(|open| -> Result<Result<(), _>, _> {
            let transaction = open.database.begin_write()?;
            transaction.open_table(crate::table::META)?.insert("half", b"done".as_slice())?;
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
        let error = store.writing(|open| {
            for page in (4_096..whole.len()).step_by(4_096) {
                medium.write_at(page as u64, &[0xee]).map_err(Fault::Medium)?;
            }
            Ok(Ok(open.database.check_integrity()?))
        });
        assert!(matches!(error, Err(WriteError::Damaged { .. })), "{error:?}");
        medium.write_at(0, &whole).unwrap();
        assert_eq!(store.accept(&id, "two", at).unwrap(), 2);
    }
}
