//! The file beside the records in which they are written anew, and how it takes their place.
//!
//! There is no renaming: a medium needn't be a file. So the new records are written to
//! [`Part::Next`], sealed there, copied over the old ones, and emptied. As long as they are sealed
//! they are the records, whatever the other file holds: a copy that was cut short is made again.

use std::sync::Arc;

use garret_core::medium::{Medium, MediumError};
use sha2::{Digest as _, Sha256};

use crate::files::backend::length;
use crate::files::part::{Media, Part};
use crate::ground::codec::{SEAL, seal};
use crate::ground::table::VERSION;

/// Contents of the file beside the records.
pub(crate) enum Next {
    /// It has to be looked at.
    Unknown,
    /// Nothing, and no file or one that is known to be empty after a power cut, too.
    Nothing,
    /// Something that doesn't count. It has to be gone before anything is written.
    Scrap(Arc<dyn Medium>),
    /// The records. They have to be copied before anything is written.
    Whole(Whole),
}

/// Records written anew, sealed.
pub(crate) struct Whole {
    medium: Arc<dyn Medium>,
    /// Bytes before the seal.
    len: u64,
}

impl Next {
    /// Looks at the file, and writes nothing.
    pub(crate) fn look(media: &Media) -> Result<Self, MediumError> {
        let Some(medium) = media.open_existing(Part::Next)? else { return Ok(Self::Nothing) };
        Ok(match Whole::read(&medium)? {
            Some(whole) => Self::Whole(whole),
            // An empty one, too: whether it is so on the device isn't known.
            None => Self::Scrap(medium),
        })
    }

    /// Tells whether it has to be seen to before anything is written.
    pub(crate) fn is_due(&self) -> bool {
        !matches!(self, Self::Nothing)
    }

    /// Returns where the records are to be read, when `records` is their file.
    pub(crate) fn shown(&self, records: &Arc<dyn Medium>) -> Arc<dyn Medium> {
        match self {
            Self::Whole(whole) => Arc::new(Window { medium: whole.medium.clone(), len: whole.len }),
            _ => records.clone(),
        }
    }

    /// Brings `records` to what they should be, and empties the file.
    pub(crate) fn settle(&self, records: &dyn Medium) -> Result<(), MediumError> {
        match self {
            Self::Nothing | Self::Unknown => Ok(()),
            Self::Scrap(medium) => empty(&**medium),
            Self::Whole(whole) => {
                whole.copy_to(records)?;
                empty(&*whole.medium)
            }
        }
    }
}

/// Cuts a medium to nothing, durably.
pub(crate) fn empty(medium: &dyn Medium) -> Result<(), MediumError> {
    medium.set_len(0)?;
    medium.sync()
}

impl Whole {
    /// Seals what `medium` holds.
    pub(crate) fn seal(medium: Arc<dyn Medium>) -> Result<Self, MediumError> {
        let len = medium.len()?;
        let trailer = trailer(VERSION, len, &digest(&*medium, len)?);
        medium.sync()?;
        // Only now, so that the seal is never there without what it seals.
        medium.write_at(len, &trailer)?;
        medium.sync()?;
        Ok(Self { medium, len })
    }

    /// Returns what `medium` holds, if it is sealed and whole.
    fn read(medium: &Arc<dyn Medium>) -> Result<Option<Self>, MediumError> {
        let Some(len) = medium.len()?.checked_sub(TRAILER_U64) else { return Ok(None) };
        let mut found = [0; TRAILER];
        medium.read_at(len, &mut found)?;
        // First without the content, which takes longer to read.
        let Some(digested) = digest_in(len, &found) else { return Ok(None) };
        let whole = digest(&**medium, len)? == digested;
        Ok(whole.then(|| Self { medium: medium.clone(), len }))
    }

    fn copy_to(&self, records: &dyn Medium) -> Result<(), MediumError> {
        each_block(&*self.medium, self.len, |at, block| records.write_at(at, block))?;
        records.sync()?;
        records.set_len(self.len)?;
        records.sync()
    }
}

/// Hands the first `len` bytes of a medium to `f`, in blocks.
pub(crate) fn each_block(
    medium: &dyn Medium,
    len: u64,
    mut f: impl FnMut(u64, &[u8]) -> Result<(), MediumError>,
) -> Result<(), MediumError> {
    let mut buffer = vec![0; BLOCK];
    let mut at = 0;
    while at < len {
        let take = usize::try_from(len - at).unwrap_or(BLOCK).min(BLOCK);
        let block = buffer.get_mut(..take).unwrap_or_default();
        medium.read_at(at, block)?;
        f(at, block)?;
        at += length(block);
    }
    Ok(())
}

fn digest(medium: &dyn Medium, len: u64) -> Result<[u8; 32], MediumError> {
    let mut hash = Sha256::new();
    each_block(medium, len, |_, block| {
        hash.update(block);
        Ok(())
    })?;
    Ok(hash.finalize().into())
}

/// Returns what follows the `len` bytes of this digest.
fn trailer(version: u32, len: u64, digest: &[u8; 32]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(version.to_le_bytes());
    bytes.extend(len.to_le_bytes());
    bytes.extend(digest);
    bytes.extend(seal(&bytes));
    bytes
}

/// The digest in a trailer, if it is one of `len` bytes.
fn digest_in(len: u64, bytes: &[u8; TRAILER]) -> Option<[u8; 32]> {
    let digest = *bytes.get(MAGIC.len() + 4 + 8..)?.first_chunk()?;
    let version = u32::from_le_bytes(*bytes.get(MAGIC.len()..)?.first_chunk()?);
    let known = (FIRST_VERSION..=VERSION).contains(&version);
    (known && *trailer(version, len, &digest) == *bytes).then_some(digest)
}

const MAGIC: [u8; 16] = *b"Garret rewrite\r\n";
/// The first version of the format that has this.
const FIRST_VERSION: u32 = 2;
/// Magic, version, length, digest, check.
const TRAILER: usize = 16 + 4 + 8 + 32 + SEAL;
const TRAILER_U64: u64 = 68;
const _: () = assert!(TRAILER == 68);
/// Bytes that are copied or digested at a time.
const BLOCK: usize = 1 << 20;

/// The first bytes of a medium, to be read.
struct Window {
    medium: Arc<dyn Medium>,
    len: u64,
}

impl Medium for Window {
    fn len(&self) -> Result<u64, MediumError> {
        Ok(self.len)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), MediumError> {
        let end = offset.checked_add(length(out));
        if end.is_none_or(|end| end > self.len) {
            return Err(MediumError::OutOfRange);
        }
        self.medium.read_at(offset, out)
    }

    fn write_at(&self, _offset: u64, _bytes: &[u8]) -> Result<(), MediumError> {
        Err(MediumError::Denied)
    }

    fn set_len(&self, _len: u64) -> Result<(), MediumError> {
        Err(MediumError::Denied)
    }

    fn sync(&self) -> Result<(), MediumError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program of the version before may have been cut short after its trailer was there.
    #[test]
    fn trailers_of_every_version_that_had_them_count() {
        for version in 0..=VERSION + 1 {
            let bytes = trailer(version, 9, &[7; 32]);
            let bytes = <&[u8; TRAILER]>::try_from(&*bytes).unwrap();
            let known = (2..=VERSION).contains(&version);
            assert_eq!(digest_in(9, bytes), known.then_some([7; 32]));
            assert_eq!(digest_in(8, bytes), None);
        }
    }
}
