//! Reads what the files hold.

use std::sync::Arc;

use garret_core::medium::{Medium, MediumError};
use sha2::{Digest as _, Sha256};

use crate::vectors::layout::{BLOCK_ROWS, CoarseHead, ENTRY, FullHead, PAGE, read_entry};
use crate::vectors::rotation::Rotation;
use crate::vectors::slots::{MAX_SLOTS, Slot, Slots};
use crate::vectors::{Content, Side, VectorStore};

/// The whole vectors, and the coarse ones where they belong to them.
pub(crate) struct Loaded {
    pub(crate) medium: Arc<dyn Medium>,
    pub(crate) head: FullHead,
    pub(crate) slots: Slots,
    pub(crate) coarse: Option<Coarse>,
    /// True if dead rows are known to be zeros, and nothing to be behind the last row.
    pub(crate) scrubbed: bool,
}

/// The coarse vectors.
pub(crate) struct Coarse {
    pub(crate) medium: Arc<dyn Medium>,
    pub(crate) head: CoarseHead,
    pub(crate) rotation: Rotation,
}

impl Coarse {
    /// Returns where the row of a slot is.
    pub(crate) fn row_at(&self, slot: Slot) -> u64 {
        self.head.rows_at() + u64::from(slot) * self.rotation.stride() as u64
    }
}

impl VectorStore {
    /// Returns what the files hold now.
    pub(crate) fn load(&self) -> Result<Content, MediumError> {
        let Some(medium) = (self.files)(Side::Whole, false)? else { return Ok(Content::Absent) };
        let len = medium.len()?;
        if len == 0 {
            return Ok(Content::Absent);
        }
        let Some(head) = read_head(&*medium, len)?.as_ref().and_then(FullHead::decode) else {
            tracing::warn!("the vectors beside the records are not ours, or newer: ignored");
            return Ok(Content::Foreign);
        };
        let slots = read_slots(&*medium, &head, len)?;
        let coarse = self.load_coarse(&head, slots.len())?;
        Ok(Content::Ours(Box::new(Loaded { medium, head, slots, coarse, scrubbed: false })))
    }

    /// The coarse vectors, if they belong to these whole ones.
    fn load_coarse(&self, full: &FullHead, rows: usize) -> Result<Option<Coarse>, MediumError> {
        let Some(medium) = (self.files)(Side::Coarse, false)? else { return Ok(None) };
        let len = medium.len()?;
        let Some(head) = read_head(&*medium, len)?.as_ref().and_then(CoarseHead::decode) else {
            return Ok(None);
        };
        let ours = head.epoch == full.epoch && head.fingerprint == full.fingerprint;
        let longest = Rotation::most_bytes(full.dims as usize);
        if !ours || len < head.rows_at() || head.rotation_len as usize > longest {
            return Ok(None);
        }
        let mut bytes = vec![0; head.rotation_len as usize];
        medium.read_at(PAGE, &mut bytes)?;
        if Sha256::digest(&bytes)[..] != head.rotation {
            return Ok(None);
        }
        let Some(rotation) = Rotation::from_bytes(&bytes) else { return Ok(None) };
        let coarse = Coarse { medium, head, rotation };
        let whole = coarse.rotation.dims() == full.dims as usize
            && u32::try_from(rows).is_ok_and(|rows| coarse.row_at(rows) <= len);
        Ok(whole.then_some(coarse))
    }
}

/// The first bytes of a file that is long enough to have a head.
fn read_head<const N: usize>(
    medium: &dyn Medium,
    len: u64,
) -> Result<Option<[u8; N]>, MediumError> {
    if len < N as u64 {
        return Ok(None);
    }
    let mut head = [0; N];
    medium.read_at(0, &mut head)?;
    Ok(Some(head))
}

/// The rows whose entries are whole. Those that aren't are dead: their units get a new vector.
fn read_slots(medium: &dyn Medium, head: &FullHead, len: u64) -> Result<Slots, MediumError> {
    let mut slots = Slots::default();
    let blocks = head.blocks(len).min(MAX_SLOTS as u64 / u64::from(BLOCK_ROWS)) as u32;
    slots.reserve(blocks as usize * BLOCK_ROWS as usize);
    // By reads, not by a mapping: that would bring in the vectors between the directories as well.
    let mut directory = [0; BLOCK_ROWS as usize * ENTRY];
    for first in (0..blocks).map(|block| block * BLOCK_ROWS) {
        // The last block may end with any of its rows.
        let within = |slot: &Slot| head.vector_end(*slot) <= len;
        let rows = (first..first + BLOCK_ROWS).take_while(within).count();
        let entries = &mut directory[..rows * ENTRY];
        medium.read_at(head.entry_at(first), entries)?;
        for (slot, bytes) in (first..).zip(entries.as_chunks::<ENTRY>().0) {
            let Some((key, check)) = read_entry(bytes, slot, head.epoch) else { continue };
            // Two rows of one unit can't be, unless somebody else wrote them.
            if slots.find(key).is_none() {
                slots.put(slot, key, check);
            }
        }
    }
    Ok(slots)
}

/// Shows bytes of a medium to `read`, without copying them where it can.
pub(crate) fn show(
    medium: &dyn Medium,
    offset: u64,
    len: usize,
    buffer: &mut Vec<u8>,
    mut read: impl FnMut(&[u8]),
) -> Result<(), MediumError> {
    if medium.with_bytes(offset, len, &mut read) {
        return Ok(());
    }
    buffer.resize(len, 0);
    medium.read_at(offset, buffer)?;
    read(buffer);
    Ok(())
}
