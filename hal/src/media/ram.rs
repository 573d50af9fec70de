//! A medium in memory.

use super::bytes;
use garret_core::medium::{Medium, MediumError};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A growable array of bytes in memory; a clone is another handle on the same bytes.
///
/// Nothing survives the process, and [`Medium::sync`] has nothing to do. When the allocator refuses
/// to grow it, a write returns [`MediumError::Full`] and changes nothing.
///
/// ```
/// use garret_core::medium::Medium;
/// use garret_hal::media::RamMedium;
///
/// let ours = RamMedium::from_bytes(b"seed".to_vec());
/// let theirs = ours.clone();
/// theirs.write_at(4, b"ling")?;
/// assert_eq!(ours.snapshot(), b"seedling");
/// # Ok::<(), garret_core::medium::MediumError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct RamMedium {
    data: Arc<RwLock<Vec<u8>>>,
}

impl RamMedium {
    /// An empty medium.
    pub fn new() -> Self {
        Self::default()
    }

    /// A medium that holds `bytes`.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self { data: Arc::new(RwLock::new(bytes)) }
    }

    /// A copy of everything it holds now.
    pub fn snapshot(&self) -> Vec<u8> {
        self.data().clone()
    }

    // No code panics while it holds the lock, so a poisoned one still guards whole data.
    fn data(&self) -> RwLockReadGuard<'_, Vec<u8>> {
        self.data.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn data_mut(&self) -> RwLockWriteGuard<'_, Vec<u8>> {
        self.data.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Medium for RamMedium {
    fn len(&self) -> Result<u64, MediumError> {
        u64::try_from(self.data().len()).map_err(|_| MediumError::OutOfRange)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), MediumError> {
        bytes::read(&self.data(), offset, out)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        bytes::write(&mut self.data_mut(), offset, bytes)
    }

    fn set_len(&self, len: u64) -> Result<(), MediumError> {
        bytes::set_len(&mut self.data_mut(), len)
    }

    fn sync(&self) -> Result<(), MediumError> {
        Ok(())
    }

    fn with_bytes(&self, offset: u64, len: usize, read: &mut dyn FnMut(&[u8])) -> bool {
        match bytes::part(&self.data(), offset, len) {
            Ok(part) => read(part),
            Err(_) => return false,
        }
        true
    }
}
