//! A file beside the records for stores that have none.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use garret_core::medium::{Medium, MediumError};

/// Bytes in memory. A clone is another handle.
#[derive(Clone, Default)]
pub(crate) struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of `len` bytes at `offset`.
fn place(offset: u64, len: usize) -> Option<std::ops::Range<usize>> {
    let start = usize::try_from(offset).ok()?;
    Some(start..start.checked_add(len)?)
}

fn resize(bytes: &mut Vec<u8>, len: usize) -> Result<(), MediumError> {
    let more = len.saturating_sub(bytes.len());
    bytes.try_reserve(more).map_err(|_| MediumError::Full)?;
    bytes.resize(len, 0);
    if len == 0 {
        bytes.shrink_to_fit();
    }
    Ok(())
}

impl Medium for Memory {
    fn len(&self) -> Result<u64, MediumError> {
        u64::try_from(self.bytes().len()).map_err(|_| MediumError::OutOfRange)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), MediumError> {
        let bytes = self.bytes();
        let part = place(offset, out.len()).and_then(|place| bytes.get(place));
        out.copy_from_slice(part.ok_or(MediumError::OutOfRange)?);
        Ok(())
    }

    fn write_at(&self, offset: u64, new: &[u8]) -> Result<(), MediumError> {
        let place = place(offset, new.len()).ok_or(MediumError::Full)?;
        let mut bytes = self.bytes();
        if place.end > bytes.len() {
            resize(&mut bytes, place.end)?;
        }
        bytes.get_mut(place).ok_or(MediumError::Full)?.copy_from_slice(new);
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<(), MediumError> {
        let len = usize::try_from(len).map_err(|_| MediumError::Full)?;
        resize(&mut self.bytes(), len)
    }

    fn sync(&self) -> Result<(), MediumError> {
        Ok(())
    }
}
