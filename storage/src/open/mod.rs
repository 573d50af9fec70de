//! From a medium to a checked, open database, without a write to the medium.

pub(crate) mod error;

use std::fs::{DirBuilder, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use garret_core::medium::{Medium, MediumError};
use redb::{Database, Durability, ReadableDatabase as _, ReadableTable as _, WriteTransaction};

use crate::conversations::record::SessionRecord;
use crate::files::backend::{Adapter, Link, Stage};
use crate::files::create;
use crate::files::create::Found;
use crate::files::part::Media;
use crate::ground::database::{builder, contain, discard};
use crate::ground::error::{Abort, Fault, WriteError};
use crate::ground::position::Position;
use crate::ground::table;
use crate::ground::table::{FORMAT, META, SESSIONS, VERSION, key};
use crate::index::Tracker;
use crate::journal::apply::{Outcome, apply};
use crate::journal::op::Op;
use crate::journal::{Journal, Unusable};
use crate::open::error::OpenError;

/// An open database and its way to the medium.
pub(crate) struct Open {
    pub(crate) database: Database,
    pub(crate) link: Arc<Link>,
    pub(crate) journal: Journal,
    /// The file of the text index, and what it doesn't know yet.
    pub(crate) index: Tracker,
    /// True if nothing was ever written.
    pub(crate) is_new: bool,
    /// True if something was forgotten that may still be in the files.
    pub(crate) rewrite_due: bool,
}

/// Why a medium can't be opened as a store.
pub(crate) enum Unopened {
    Fault(Fault),
    NotAStore(String),
    OtherNamespace(String),
    NewerFormat(u32),
    Journal(String),
}

impl Open {
    /// Opens what `records` holds, or a new store where it holds nothing, and applies what the
    /// journal has to add. Nothing is written.
    pub(crate) fn connect(
        namespace: &str,
        records: &Arc<dyn Medium>,
        media: &Arc<Media>,
    ) -> Result<Self, Unopened> {
        let (stage, found) = stage(namespace, &**records)?;
        let is_new = found != Found::Database;
        let link = Link::new(records.clone(), stage);
        let opened = contain(|| {
            let database = builder().create_with_backend(Adapter(link.clone()))?;
            Ok(match prepare(&database, namespace, media, found) {
                Ok((journal, index)) => Ok((due(&database)?, database, journal, index)),
                Err(unopened) => {
                    discard(database);
                    Err(unopened)
                }
            })
        });
        match opened {
            Ok(Ok((rewrite_due, database, journal, index))) => {
                Ok(Self { database, link, journal, index, is_new, rewrite_due })
            }
            Ok(Err(Unopened::Fault(fault))) => Err(Unopened::Fault(explain(fault, &link))),
            Ok(Err(unopened)) => Err(unopened),
            Err(fault) => Err(Unopened::Fault(explain(fault, &link))),
        }
    }

    /// Applies `op` and makes it durable, in the journal or with everything that waits there. A
    /// refused one changes nothing.
    pub(crate) fn perform(&mut self, op: &Op<'_>) -> Result<Outcome, Abort<WriteError>> {
        let mut transaction = self.database.begin_write()?;
        let outcome = apply(&transaction, op)?;
        if outcome.is_nothing() {
            return Ok(outcome);
        }
        let payload = op.encode()?;
        if !op.is_removal() && self.journal.append(&payload).map_err(Fault::Medium)? {
            self.index.wrote(self.journal.last(), op, &outcome);
            set_durability(&mut transaction, Durability::None)?;
            transaction.commit()?;
        } else {
            let place = self.journal.next(&payload);
            // It can be large, and the commit needs memory of its own.
            drop(payload);
            self.index.wrote(place, op, &outcome);
            self.commit(transaction, place)?;
            if op.is_removal() {
                self.journal.soil();
            }
        }
        self.rewrite_due |= matches!(outcome, Outcome::Erased { .. });
        Ok(outcome)
    }

    /// Commits everything that waits in the journal to the records' medium.
    pub(crate) fn fold(&mut self) -> Result<(), Fault> {
        if self.journal.pending() == 0 {
            return Ok(());
        }
        let transaction = self.database.begin_write()?;
        self.commit(transaction, self.journal.last())
    }

    /// Commits durably what is applied up to `place`, this transaction being the last of it.
    pub(crate) fn commit(
        &mut self,
        mut transaction: WriteTransaction,
        place: Position,
    ) -> Result<(), Fault> {
        transaction.open_table(META)?.insert(key::JOURNAL, place.to_bytes().as_slice())?;
        self.index.folds(place);
        // Else the first open after a crash reads every page, and refuses a store with any wrong one.
        transaction.set_quick_repair(true);
        set_durability(&mut transaction, Durability::Immediate)?;
        transaction.commit()?;
        self.link.flush().map_err(Fault::Medium)?;
        self.is_new = false;
        self.journal.folded(place);
        self.index.folded(place);
        Ok(())
    }

    /// Closes a database that failed.
    pub(crate) fn abandon(self) {
        self.link.cut();
        discard(self.database);
    }

    /// Closes the database, after a fold if enough waits for one. Without, what waits is applied
    /// again by the next open.
    pub(crate) fn close(mut self) {
        if self.journal.folds_at_end()
            && let Err(fault) = contain(|| self.fold())
        {
            tracing::warn!(?fault, "the journal stays as it is; the next open reads it");
        }
        discard(self.database);
    }
}

/// Checks the database, brings it to this version and applies the journal, all of it in memory.
fn prepare(
    database: &Database,
    namespace: &str,
    media: &Arc<Media>,
    found: Found,
) -> Result<(Journal, Tracker), Unopened> {
    let version = check(database, namespace)?;
    if version < VERSION {
        upgrade(database, version)?;
    }
    let ready = found == Found::Database && version == VERSION;
    let folded = folded(database)?;
    let (journal, replay) = Journal::open(media, namespace, folded, ready)?;
    let mut index = Tracker::new(media.clone(), folded);
    if journal.pending() > 0 {
        let mut transaction = database.begin_write().map_err(Fault::from)?;
        for (at, payload) in replay.frames() {
            repeat(&transaction, at, payload, &mut index)?;
        }
        set_durability(&mut transaction, Durability::None)?;
        transaction.commit().map_err(Fault::from)?;
        tracing::debug!(writes = journal.pending(), "applied what waited in the journal");
    }
    Ok((journal, index))
}

/// Applies a write of the journal again.
fn repeat(
    transaction: &WriteTransaction,
    at: Position,
    payload: &[u8],
    index: &mut Tracker,
) -> Result<(), Unopened> {
    let seq = at.seq;
    let Some(op) = Op::decode(payload) else {
        return Err(Unopened::Journal(format!(
            "has a write that this program doesn't know, number {seq}: use a newer Garret"
        )));
    };
    match apply(transaction, &op) {
        Ok(outcome) => {
            index.found(at, &op, &outcome);
            Ok(())
        }
        Err(Abort::Refused(refusal)) => Err(no_longer(seq, &refusal.to_string())),
        Err(Abort::Fault(Fault::Damaged { what, key })) => {
            Err(no_longer(seq, &format!("damaged {what}, {key}")))
        }
        Err(Abort::Fault(fault)) => Err(fault.into()),
    }
}

fn no_longer(seq: u64, why: &str) -> Unopened {
    Unopened::Journal(format!(
        "has a write, number {seq}, that the records don't take any more ({why}): copy both files, \
         check the disk, and restore a backup, or move the journal away to go on without it"
    ))
}

/// A file of an older version becomes one of this version. Records of the older form stay.
fn upgrade(database: &Database, version: u32) -> Result<(), Fault> {
    let activity = if version < 2 { Some(highest_activity(database)?) } else { None };
    let mut transaction = database.begin_write()?;
    {
        let mut meta = transaction.open_table(META)?;
        meta.insert(key::FORMAT, FORMAT.as_slice())?;
        if let Some(activity) = activity {
            meta.insert(key::ACTIVITY, activity.to_le_bytes().as_slice())?;
            meta.insert(key::JOURNAL, Position::default().to_bytes().as_slice())?;
        }
    }
    table::make_all(&transaction)?;
    set_durability(&mut transaction, Durability::None)?;
    Ok(transaction.commit()?)
}

/// Up to where the records hold every write.
fn folded(database: &Database) -> Result<Position, Unopened> {
    let meta = database.begin_read().map_err(Fault::from)?.open_table(META).map_err(Fault::from)?;
    let value = meta.get(key::JOURNAL).map_err(Fault::from)?;
    let bytes = value.and_then(|bytes| bytes.value().try_into().ok());
    bytes.map(Position::from_bytes).ok_or_else(|| bad_meta(key::JOURNAL))
}

/// Tells whether something was forgotten that may still be in the files.
fn due(database: &Database) -> Result<bool, Fault> {
    let meta = database.begin_read()?.open_table(META)?;
    Ok(meta.get(key::REWRITE)?.is_some())
}

fn set_durability(transaction: &mut WriteTransaction, durability: Durability) -> Result<(), Fault> {
    transaction.set_durability(durability).map_err(|error| Fault::Engine(error.to_string()))
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
            Self::Journal(why) => OpenError::Journal { namespace, why },
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
            Unopened::Journal(why) => ("journal", format!("which {why}")),
        };
        Self::Damaged { what, key }
    }
}

/// Returns what the medium refused, where that is behind a failure of the database.
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

/// Returns the directories that hold `file` or one on the way to it, up to the one that holds
/// `data_dir`.
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

fn stage(namespace: &str, medium: &dyn Medium) -> Result<(Stage, Found), Unopened> {
    let found = create::classify(medium)?;
    match found {
        Found::Database => Ok((Stage::new(medium.len()?), found)),
        Found::Foreign => {
            Err(Unopened::NotAStore("its first bytes are not those of a database".to_owned()))
        }
        Found::New | Found::Unfinished => Ok((create::stage(namespace)?, found)),
    }
}

/// The format version, if this is a store that we can read, of this namespace.
fn check(database: &Database, namespace: &str) -> Result<u32, Unopened> {
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
    let version = match format {
        Ok(0) | Err(_) => return Err(bad_meta(key::FORMAT)),
        Ok(newer) if newer > VERSION => return Err(Unopened::NewerFormat(newer)),
        Ok(known) => known,
    };
    let found = value(key::NAMESPACE)?.ok_or_else(|| bad_meta(key::NAMESPACE))?;
    match std::str::from_utf8(found.value()) {
        Ok(found) if found == namespace => Ok(version),
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

/// Tells whether anything was ever stored on `medium`.
pub(crate) fn is_new(medium: &dyn Medium) -> Result<bool, MediumError> {
    Ok(matches!(create::classify(medium)?, Found::New | Found::Unfinished))
}

impl From<Fault> for Unopened {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Unusable> for Unopened {
    fn from(unusable: Unusable) -> Self {
        match unusable {
            Unusable::Medium(error) => error.into(),
            Unusable::OtherNamespace(found) => Self::OtherNamespace(found),
            Unusable::NewerFormat(found) => Self::NewerFormat(found),
            Unusable::Refused(why) => Self::Journal(why),
        }
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
