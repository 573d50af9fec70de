//! The byte array that the media in memory share.

use super::end_of;
use garret_core::medium::MediumError;

/// Copies `out.len()` bytes at `offset` of `data`.
pub(super) fn read(data: &[u8], offset: u64, out: &mut [u8]) -> Result<(), MediumError> {
    if out.is_empty() {
        return Ok(());
    }
    out.copy_from_slice(part(data, offset, out.len())?);
    Ok(())
}

/// `len` bytes at `offset` of `data`.
pub(super) fn part(data: &[u8], offset: u64, len: usize) -> Result<&[u8], MediumError> {
    let start = usize::try_from(offset).map_err(|_| MediumError::OutOfRange)?;
    let end = start.checked_add(len).ok_or(MediumError::OutOfRange)?;
    data.get(start..end).ok_or(MediumError::OutOfRange)
}

/// Puts `bytes` at `offset` of `data`, growing it with zeros where needed.
pub(super) fn write(data: &mut Vec<u8>, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
    if bytes.is_empty() {
        return Ok(());
    }
    let end = index(end_of(offset, bytes.len()).ok_or(MediumError::Full)?)?;
    if end > data.len() {
        resize(data, end)?;
    }
    let start = index(offset)?;
    data.get_mut(start..end).ok_or(MediumError::Full)?.copy_from_slice(bytes);
    Ok(())
}

/// Cuts or extends `data` to `len` bytes.
pub(super) fn set_len(data: &mut Vec<u8>, len: u64) -> Result<(), MediumError> {
    resize(data, index(len)?)
}

/// [`set_len`] on an index.
pub(super) fn resize(data: &mut Vec<u8>, len: usize) -> Result<(), MediumError> {
    let more = len.saturating_sub(data.len());
    data.try_reserve(more).map_err(|_| MediumError::Full)?;
    data.resize(len, 0);
    Ok(())
}

fn index(offset: u64) -> Result<usize, MediumError> {
    usize::try_from(offset).map_err(|_| MediumError::Full)
}
