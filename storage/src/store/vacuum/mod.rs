//! Writing the records anew, so that the file has no byte but theirs.
//!
//! `FORMAT.md`, "Rewriting", has the steps. Whatever is cut short, the next open finds either the
//! records as they were or the new ones, and its first write goes on from there.

use garret_core::medium::MediumError;
use redb::ReadableDatabase as _;

use crate::files::Compacted;
use crate::files::part::{Media, Part};
use crate::ground::error::{Fault, ReadError, WriteError};
use crate::open::Open;
use crate::store::vacuum::next::Whole;
use crate::store::{Slot, Store};
use crate::vectors::VectorStore;

pub(crate) mod copy;
pub(crate) mod next;
pub(crate) mod side;

pub(crate) use crate::files::memory::Memory;
pub(crate) use crate::store::vacuum::copy::{Snapshot, Uncopied, rewrite};
pub(crate) use crate::store::vacuum::next::{Next, empty};

impl Store {
    /// Writes all records anew, so that the files hold nothing else: what was deleted or replaced
    /// is gone from them, and so is the room it took. What waits in the journal is folded first.
    ///
    /// It reads every record once and writes it twice; meanwhile there are both files, so that as
    /// much room as the records take must be free. Other operations wait: 11 s for a million short
    /// turns (246 MB) on two shared cores of x86_64, in 31 MiB of memory. A backup, export or check
    /// that is under way in another thread ends with an error, and can be begun again. What the
    /// device keeps of its own accord (copies of a flash's worn blocks, snapshots of the file
    /// system) and backups are out of reach.
    ///
    /// [`delete`](Self::delete) doesn't do this, as it is dear: the bytes of a deleted session stay
    /// in the file until they are written over, or this is called. [`forget`](Self::forget) does.
    ///
    /// # Errors
    /// [`WriteError`]; the records are as they were then. After [`WriteError::Full`] in the last
    /// step (rare: when the new file is larger, or the file system has to find room for what is
    /// written in place) the store can be read, and the next write tries that step again.
    pub fn compact(&self) -> Result<Compacted, WriteError> {
        // A search reads a moment of the records that the file doesn't hold any more afterwards.
        let _held = self.derived.hold();
        let (mut vectors, mut slot) = (self.vectors.write(), self.slot());
        Ok(self.rewrite(&mut slot, &mut vectors)?)
    }

    /// Bytes of all files of the namespace but the lock.
    ///
    /// # Errors
    /// [`ReadError::Medium`].
    pub fn disk_len(&self) -> Result<u64, ReadError> {
        let slot = self.slot();
        self.total(&slot).map_err(ReadError::Medium)
    }

    fn total(&self, slot: &Slot) -> Result<u64, MediumError> {
        let mut bytes = slot.records.len()?;
        for part in Part::ALL.into_iter().filter(|part| *part != Part::Records) {
            if let Some(medium) = self.media().open_existing(part)? {
                bytes += medium.len()?;
            }
        }
        Ok(bytes)
    }

    /// Writes the records anew, whether that is due or not, while nothing is searched.
    pub(crate) fn rewrite(
        &self,
        slot: &mut Slot,
        vectors: &mut Option<VectorStore>,
    ) -> Result<Compacted, Fault> {
        let before = self.total(slot).map_err(Fault::Medium)?;
        let whole = self.run(slot, true, |open| {
            open.fold()?;
            open.journal.wipe().map_err(Fault::Medium)?;
            if open.rewrite_due {
                self.snapshots.wipe(self.media())?;
                side::clear(open, self.media(), vectors)?;
            }
            build(open, self.media())
        });
        // Where that failed, something may be there.
        slot.next = Next::Unknown;
        if let Some(whole) = whole? {
            // The same records: what is searched stays as it is.
            slot.next = Next::Whole(whole);
            self.settle(slot)?;
            self.run(slot, false, |_| Ok(()))?;
        }
        Ok(Compacted { before, after: self.total(slot).map_err(Fault::Medium)? })
    }
}

/// The records written anew beside their file; `None` where nothing was ever written.
fn build(open: &Open, media: &Media) -> Result<Option<Whole>, Fault> {
    if open.is_new {
        return Ok(None);
    }
    let medium = media.open(Part::Next).map_err(Fault::Medium)?;
    next::empty(&*medium).map_err(Fault::Medium)?;
    let transaction = &open.database.begin_read()?;
    let snapshot = Snapshot { transaction, last: open.journal.last() };
    let built = match rewrite(&snapshot, medium.clone()) {
        Ok(_) => Whole::seal(medium.clone()).map_err(Fault::Medium),
        Err(Uncopied::To(error)) => Err(Fault::Medium(error)),
        Err(Uncopied::From(fault)) => Err(fault),
        Err(Uncopied::NotEmpty) => Err(Fault::Engine("the new file can't be emptied".to_owned())),
    };
    if built.is_err() {
        // Who else needs the room gets it back. Where this fails, the next write does it.
        let _ = next::empty(&*medium);
    }
    built.map(Some)
}
