//! From a medium to a checked, open database, without a write to the medium.

use std::fs::{DirBuilder, File};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use garret_core::medium::{Medium, MediumError};
use redb::{Builder, Database, ReadableDatabase as _, ReadableTable as _};

use crate::backend::{Adapter, Link, Stage};
use crate::create::{self, Found};
use crate::error::{Fault, OpenError};
use crate::record::SessionRecord;
use crate::search::Derived;
use crate::table::{META, SESSIONS, VERSION, key};

/// Memory redb may use for pages, in bytes. Its own default is 1 GiB.
pub(crate) const CACHE_BYTES: usize = 8 << 20;

/// An open database and its way to the medium.
pub(crate) struct Open {
    pub(crate) database: Database,
    pub(crate) link: Arc<Link>,
    /// Highest rank in any session's `activity`.
    pub(crate) activity: u64,
    /// What is searched, from the first search on.
    pub(crate) derived: Option<Box<Derived>>,
}

/// Why a medium can't be opened as a store.
pub(crate) enum Unopened {
    Fault(Fault),
    NotAStore(String),
    OtherNamespace(String),
    NewerFormat(u32),
}

impl Open {
    /// Opens what `medium` holds, or a new store where it holds nothing.
    pub(crate) fn connect(namespace: &str, medium: &Arc<dyn Medium>) -> Result<Self, Unopened> {
        let link = Link::new(medium.clone(), stage(namespace, &**medium)?);
        let opened = contain(|| {
            let adapter = Adapter(link.clone());
            let database = builder().create_with_backend(adapter)?;
            let checked = check(&database, namespace)
                .and_then(|()| highest_activity(&database).map_err(Unopened::Fault));
            Ok(checked.map(|activity| (database, activity)))
        });
        match opened {
            Ok(Ok((database, activity))) => Ok(Self { database, link, activity, derived: None }),
            Ok(Err(unopened)) => Err(unopened),
            Err(fault) => Err(Unopened::Fault(explain(fault, &link))),
        }
    }

    /// Closes the database; `cut` when it failed and mustn't write any more.
    pub(crate) fn close(self, cut: bool) {
        let Self { database, link, .. } = self;
        if cut {
            link.cut();
        }
        let closed = contain(|| {
            drop(database);
            Ok(())
        });
        if let Err(Fault::Engine(why)) = closed {
            tracing::warn!(why, "closing the database failed; the next open recovers it");
        }
    }
}

impl Unopened {
    pub(crate) fn into_error(self, namespace: &str) -> OpenError {
        let namespace = namespace.to_owned();
        match self {
            // A store that is read past its end was cut short.
            Self::Fault(Fault::Medium(source @ MediumError::OutOfRange)) => {
                OpenError::Damaged { namespace, why: source.to_string() }
            }
            Self::Fault(Fault::Medium(source)) => OpenError::Medium { namespace, source },
            Self::Fault(Fault::Damaged { what, key }) => {
                OpenError::Damaged { namespace, why: format!("{what}: {key}") }
            }
            Self::Fault(Fault::Corrupted(why) | Fault::Engine(why)) => {
                OpenError::Damaged { namespace, why }
            }
            Self::NotAStore(why) => OpenError::NotAStore { namespace, why },
            Self::OtherNamespace(found) => OpenError::OtherNamespace { namespace, found },
            Self::NewerFormat(found) => OpenError::NewerFormat { namespace, found, known: VERSION },
        }
    }
}

/// On a reopen, when the store was fine before.
impl From<Unopened> for Fault {
    fn from(unopened: Unopened) -> Self {
        let (what, key) = match unopened {
            Unopened::Fault(fault) => return fault,
            Unopened::NotAStore(why) => ("store", why),
            Unopened::OtherNamespace(found) => ("namespace in the store", found),
            Unopened::NewerFormat(found) => ("format version of the store", found.to_string()),
        };
        Self::Damaged { what, key }
    }
}

/// redb, set up as every store uses it.
pub(crate) fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

/// Runs something of redb's; a panic in it becomes an error.
///
/// What `act` owned or borrowed mutably must not be used after an error.
pub(crate) fn contain<T>(act: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|panic| {
        let said = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned());
        Err(Fault::Engine(said.unwrap_or_else(|| "it panicked".to_owned())))
    })
}

/// What the medium refused, where that is behind a failure of the database.
pub(crate) fn explain(fault: Fault, link: &Link) -> Fault {
    match fault {
        Fault::Engine(_) => link.failure().map_or(fault, Fault::Medium),
        other => other,
    }
}

/// Makes a directory and those above it, each for its owner alone and durable.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    let parent = path.parent().unwrap_or(Path::new(""));
    make_directory(parent)?;
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(path) {
        // Made by another process meanwhile.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(error),
        // Else a power cut could take the whole directory, and with it what was acknowledged.
        Ok(()) => {
            sync_directory(if parent.as_os_str().is_empty() { Path::new(".") } else { parent })
        }
    }
}

/// Makes the names on the way to a new store's file durable, down from the data directory's own:
/// whoever made them may have died before that, so it's done even where all are there.
///
/// # Errors
/// The directory that couldn't be synced, and why.
pub(crate) fn sync_directories(file: &Path, data_dir: &Path) -> Result<(), (PathBuf, io::Error)> {
    for directory in directories(file, data_dir) {
        match sync_directory(directory) {
            // One above the data directory that isn't ours to read: no way to sync it.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                tracing::debug!(path = %directory.display(), "can't be opened to be synced");
            }
            Err(error) => return Err((directory.to_owned(), error)),
            Ok(()) => {}
        }
    }
    Ok(())
}

/// Those that hold `file` or a directory on the way to it, up to the one that holds `data_dir`.
fn directories<'a>(file: &'a Path, data_dir: &Path) -> Vec<&'a Path> {
    let top = data_dir.parent().unwrap_or(data_dir);
    let mut found: Vec<_> =
        file.ancestors().skip(1).take_while(|directory| directory.starts_with(top)).collect();
    for directory in found.iter_mut().filter(|directory| directory.as_os_str().is_empty()) {
        *directory = Path::new(".");
    }
    found
}

fn sync_directory(path: &Path) -> io::Result<()> {
    match File::open(path)?.sync_all() {
        // A file system without such a call.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        other => other,
    }
}

fn stage(namespace: &str, medium: &dyn Medium) -> Result<Stage, Unopened> {
    match create::classify(medium)? {
        Found::Database => Ok(Stage::new(medium.len()?)),
        Found::Foreign => {
            Err(Unopened::NotAStore("its first bytes are not those of a database".to_owned()))
        }
        Found::New | Found::Unfinished => Ok(create::stage(namespace)?),
    }
}

/// Whether this is a store that we can read, of this namespace.
fn check(database: &Database, namespace: &str) -> Result<(), Unopened> {
    let meta = match database.begin_read().map_err(Fault::from)?.open_table(META) {
        Ok(meta) => meta,
        Err(redb::TableError::Storage(error)) => return Err(Fault::from(error).into()),
        Err(error) => return Err(Unopened::NotAStore(error.to_string())),
    };
    let value = |key| meta.get(key).map_err(Fault::from);
    let Some(format) = value(key::FORMAT)? else {
        return Err(Unopened::NotAStore("it has no format version".to_owned()));
    };
    let format = format.value().try_into().map(u32::from_le_bytes);
    match format {
        Ok(VERSION) => {}
        Ok(newer) if newer > VERSION => return Err(Unopened::NewerFormat(newer)),
        _ => return Err(bad_meta(key::FORMAT)),
    }
    let found = value(key::NAMESPACE)?.ok_or_else(|| bad_meta(key::NAMESPACE))?;
    match std::str::from_utf8(found.value()) {
        Ok(found) if found == namespace => Ok(()),
        Ok(found) => Err(Unopened::OtherNamespace(found.to_owned())),
        Err(_) => Err(bad_meta(key::NAMESPACE)),
    }
}

fn bad_meta(key: &str) -> Unopened {
    Unopened::Fault(Fault::Damaged { what: "table `meta`", key: format!("`{key}`") })
}

fn highest_activity(database: &Database) -> Result<u64, Fault> {
    let sessions = database.begin_read()?.open_table(SESSIONS)?;
    let mut highest = 0;
    for entry in sessions.iter()? {
        let (id, bytes) = entry?;
        match SessionRecord::read(id.value(), bytes.value()) {
            Ok(record) => highest = highest.max(record.activity),
            // One bad record doesn't close the others; whoever reads it is told.
            Err(_) => {
                let id = String::from_utf8_lossy(id.value());
                tracing::warn!(session = %id.escape_debug(), "damaged session record");
            }
        }
    }
    Ok(highest)
}

/// Whether anything was ever stored on `medium`.
pub(crate) fn is_new(medium: &dyn Medium) -> Result<bool, MediumError> {
    Ok(matches!(create::classify(medium)?, Found::New | Found::Unfinished))
}

impl From<Fault> for Unopened {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<MediumError> for Unopened {
    fn from(error: MediumError) -> Self {
        Self::Fault(Fault::Medium(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_names_from_the_data_directory_down_are_synced() {
        let of = |file: &'static str, data_dir: &str| {
            directories(Path::new(file), Path::new(data_dir))
                .into_iter()
                .map(|directory| directory.to_str().unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(of("/v/data/n.redb", "/v/data"), ["/v/data", "/v"]);
        assert_eq!(of("/v/d/a.d/b.d/n.redb", "/v/d"), ["/v/d/a.d/b.d", "/v/d/a.d", "/v/d", "/v"]);
        assert_eq!(of("data/n.redb", "data"), ["data", "."]);
        assert_eq!(of("n.redb", ""), ["."]);
        assert_eq!(of("/n.redb", "/"), ["/"]);
    }

    /// Those of a killed process, too: whether they are there says nothing.
    #[test]
    fn a_directory_that_is_not_there_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        let (path, _) = sync_directories(&data.join("n.redb"), &data).unwrap_err();
        assert_eq!(path, data);
        std::fs::create_dir(&data).unwrap();
        sync_directories(&data.join("n.redb"), &data).unwrap();
    }
}
