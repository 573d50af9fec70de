//! Snapshots of a model's KV cache, so that a conversation goes on after a restart without being read
//! again.
//!
//! They are derived data in files of their own: one that is torn, damaged, of another version or made
//! for something else is as good as none. What a snapshot holds is opaque here, but it was made from
//! what was said; so a deletion or erasure empties both files before it removes anything, and one that
//! was begun before is refused afterwards ([`Store::erasure_epoch`]).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use garret_core::medium::{Medium, MediumError};
use sha2::{Digest as _, Sha256};

use crate::files::part::{Media, Part};
use crate::ground::error::{Abort, Fault, ReadError, WriteError};
use crate::store::Store;

/// A snapshot of a namespace, by what it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SnapshotKind {
    /// Of a whole conversation; the namespace has one at a time.
    Conversation,
    /// Of what every conversation begins with.
    Prefix,
}

impl SnapshotKind {
    const ALL: [Self; 2] = [Self::Conversation, Self::Prefix];

    const fn part(self) -> Part {
        match self {
            Self::Conversation => Part::Conversation,
            Self::Prefix => Part::Prefix,
        }
    }
}

/// The count of deletions and erasures of an open store at a moment. Two that are equal have none
/// between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErasureEpoch(u64);

/// A snapshot that can't be gone on with, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unusable {
    /// There is none.
    #[error("there is none")]
    Missing,
    /// Its writing was cut short, or its bytes changed.
    #[error("it is cut short or damaged")]
    Damaged,
    /// It was made by another version of Garret.
    #[error("another version of Garret made it")]
    Version,
    /// It was made for something else.
    #[error("it was made for another model, window, conversation or system prompt")]
    Foreign,
}

/// The guard that keeps snapshots from holding what was deleted or forgotten.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    /// Count of deletions and erasures. Whoever asks doesn't wait for a device.
    wiped: AtomicU64,
    /// Held while a snapshot is written, read or emptied.
    files: Mutex<()>,
}

impl Snapshots {
    fn files(&self) -> MutexGuard<'_, ()> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn epoch(&self) -> ErasureEpoch {
        ErasureEpoch(self.wiped.load(Ordering::SeqCst))
    }

    /// Empties both files. Whatever was to be written until now is refused.
    pub(crate) fn wipe(&self, media: &Media) -> Result<(), Fault> {
        // First: one that is written from now on sees it, one that is being written is waited for.
        self.wiped.fetch_add(1, Ordering::SeqCst);
        let _files = self.files();
        for kind in SnapshotKind::ALL {
            let medium = media.open_existing(kind.part()).map_err(Fault::Medium)?;
            if let Some(medium) = medium.filter(|medium| !matches!(medium.is_empty(), Ok(true))) {
                crate::store::vacuum::empty(&*medium).map_err(Fault::Medium)?;
            }
        }
        Ok(())
    }
}

impl Store {
    /// Returns the epoch, to be kept before anything is read of which something is to be stored
    /// after a while: for
    /// [`Store::save_snapshot`] and [`Store::since`].
    pub fn erasure_epoch(&self) -> ErasureEpoch {
        self.snapshots.epoch()
    }

    /// Replaces a snapshot. `pieces` joined are what [`Store::load_snapshot`] gives, to who asks for
    /// the same `fingerprint`. False when something was deleted or forgotten since the epoch was
    /// taken, or the store has no files for it; nothing is written then.
    ///
    /// Power that goes meanwhile leaves the old one, none, or the new one.
    ///
    /// # Errors
    /// [`WriteError::Medium`]; there is no snapshot then.
    pub fn save_snapshot(
        &self,
        kind: SnapshotKind,
        epoch: ErasureEpoch,
        fingerprint: &[u8; 32],
        pieces: &[&[u8]],
    ) -> Result<bool, WriteError> {
        let _files = self.snapshots.files();
        if self.erasure_epoch() != epoch || !self.media().has(kind.part()) {
            return Ok(false);
        }
        let medium = self.media().open(kind.part());
        let written = medium.and_then(|medium| write(&*medium, fingerprint, pieces));
        written.map_err(WriteError::Medium)?;
        Ok(true)
    }

    /// Returns what [`Store::save_snapshot`] was given last, if that was for `fingerprint`.
    ///
    /// # Errors
    /// [`ReadError::Medium`]; a snapshot that can't be used is none.
    pub fn load_snapshot(
        &self,
        kind: SnapshotKind,
        fingerprint: &[u8; 32],
    ) -> Result<Result<Vec<u8>, Unusable>, ReadError> {
        let _files = self.snapshots.files();
        let medium = self.media().open_existing(kind.part()).map_err(ReadError::Medium)?;
        let Some(medium) = medium else { return Ok(Err(Unusable::Missing)) };
        match read(&*medium, fingerprint) {
            Ok(bytes) => Ok(Ok(bytes)),
            Err(Abort::Refused(why)) => Ok(Err(why)),
            Err(Abort::Fault(fault)) => Err(fault.into()),
        }
    }

    /// Returns whether there is a snapshot for `fingerprint`, by its head alone: its bytes may be damaged.
    ///
    /// # Errors
    /// [`ReadError::Medium`].
    pub fn has_snapshot(
        &self,
        kind: SnapshotKind,
        fingerprint: &[u8; 32],
    ) -> Result<bool, ReadError> {
        let _files = self.snapshots.files();
        let medium = self.media().open_existing(kind.part()).map_err(ReadError::Medium)?;
        let Some(medium) = medium else { return Ok(false) };
        match head(&*medium, fingerprint) {
            Ok(_) => Ok(true),
            Err(Abort::Refused(_)) => Ok(false),
            Err(Abort::Fault(fault)) => Err(fault.into()),
        }
    }
}

fn write(medium: &dyn Medium, fingerprint: &[u8; 32], pieces: &[&[u8]]) -> Result<(), MediumError> {
    // First nothing of what was there counts, then there is everything, then it counts.
    crate::store::vacuum::empty(medium)?;
    let (mut at, mut hash) = (HEADER, Sha256::new());
    for piece in pieces {
        medium.write_at(at, piece)?;
        at += u64::try_from(piece.len()).unwrap_or(u64::MAX);
        hash.update(piece);
    }
    medium.sync()?;
    let mut header = Vec::from(MAGIC);
    header.extend(VERSION.to_le_bytes());
    header.extend([0; 4]);
    header.extend(fingerprint);
    header.extend((at - HEADER).to_le_bytes());
    hash.update(&header);
    header.extend(hash.finalize());
    medium.write_at(0, &header)?;
    medium.sync()
}

/// The head of a whole file that was made for `fingerprint`.
fn head(
    medium: &dyn Medium,
    fingerprint: &[u8; 32],
) -> Result<[u8; HEADER as usize], Abort<Unusable>> {
    let len = medium.len().map_err(Fault::Medium)?;
    if len == 0 {
        return Err(Abort::Refused(Unusable::Missing));
    }
    let mut header = [0; HEADER as usize];
    if len < HEADER {
        return Err(Abort::Refused(Unusable::Damaged));
    }
    medium.read_at(0, &mut header).map_err(Fault::Medium)?;
    let (magic, rest) = header.split_at(MAGIC.len());
    let (version, rest) = rest.split_at(8);
    let (made_for, rest) = rest.split_at(32);
    if magic != MAGIC {
        return Err(Abort::Refused(Unusable::Damaged));
    }
    if version != [VERSION.to_le_bytes(), [0; 4]].as_flattened() {
        return Err(Abort::Refused(Unusable::Version));
    }
    if made_for != fingerprint {
        return Err(Abort::Refused(Unusable::Foreign));
    }
    let is_whole = rest.starts_with(&(len - HEADER).to_le_bytes());
    if is_whole { Ok(header) } else { Err(Abort::Refused(Unusable::Damaged)) }
}

fn read(medium: &dyn Medium, fingerprint: &[u8; 32]) -> Result<Vec<u8>, Abort<Unusable>> {
    let header = head(medium, fingerprint)?;
    let Ok(bytes) = usize::try_from(medium.len().map_err(Fault::Medium)? - HEADER) else {
        return Err(Abort::Refused(Unusable::Damaged));
    };
    let mut payload = vec![0; bytes];
    medium.read_at(HEADER, &mut payload).map_err(Fault::Medium)?;
    let (checked, check) = header.split_at(CHECKED);
    let hash = Sha256::new().chain_update(&payload).chain_update(checked).finalize();
    if hash[..] == *check { Ok(payload) } else { Err(Abort::Refused(Unusable::Damaged)) }
}

const MAGIC: &[u8] = b"GarretKV";
const VERSION: u32 = 1;
/// Bytes of the header that its hash covers.
const CHECKED: usize = 8 + 8 + 32 + 8;
/// Bytes of the header.
const HEADER: u64 = CHECKED as u64 + 32;
