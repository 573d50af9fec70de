//! Port for a medium that keeps bytes: a file, memory, or a fault injector in tests.
//!
//! A write is durable once a later [`Medium::sync`] returned; until then a power cut may keep any
//! part of it.

/// A random-access array of bytes.
///
/// Methods take `&self` because a storage engine reads from several threads; implementations bring
/// their own locking where the device needs it.
pub trait Medium: Send + Sync {
    /// Length in bytes.
    ///
    /// # Errors
    /// [`MediumError`], when the device doesn't answer.
    fn len(&self) -> Result<u64, MediumError>;

    /// Returns whether the medium holds nothing.
    ///
    /// # Errors
    /// As [`Medium::len`].
    fn is_empty(&self) -> Result<bool, MediumError> {
        self.len().map(|len| len == 0)
    }

    /// Reads exactly `out.len()` bytes from `offset`.
    ///
    /// # Errors
    /// [`MediumError::OutOfRange`] past the end.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), MediumError>;

    /// Writes all of `bytes` at `offset`, growing the medium where needed.
    ///
    /// # Errors
    /// [`MediumError::Full`] when there is no room; part of `bytes` may have been written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError>;

    /// Cuts or extends (with zeros) to `len` bytes.
    ///
    /// # Errors
    /// As [`Medium::write_at`].
    fn set_len(&self, len: u64) -> Result<(), MediumError>;

    /// Makes everything written so far survive a power cut.
    ///
    /// # Errors
    /// [`MediumError`]; what was written since the last sync may be lost then.
    fn sync(&self) -> Result<(), MediumError>;

    /// Writes all of `bytes` at `offset`, and makes them survive a power cut: a write and a sync of
    /// it. Where `offset` and the length are multiples of [`Medium::block`], no byte beside them
    /// needs to reach the device. What was written before may stay unsynced.
    ///
    /// # Errors
    /// As [`Medium::write_at`] and [`Medium::sync`].
    fn write_durably(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        self.write_at(offset, bytes)?;
        self.sync()
    }

    /// The fewest bytes that [`Medium::write_durably`] takes to the device: a power of two.
    fn block(&self) -> usize {
        4_096
    }

    /// Shows `len` bytes from `offset` where they lie, without copying them, when the medium can do
    /// that cheaply; otherwise returns false without calling `read`, and [`Medium::read_at`] is the
    /// way. It does so past the end, too.
    ///
    /// `read` must not use the medium: a medium that shows its bytes keeps them from changing, and
    /// may make writers wait, until `read` returns.
    fn with_bytes(&self, offset: u64, len: usize, read: &mut dyn FnMut(&[u8])) -> bool {
        let _ = (offset, len, read);
        false
    }
}

/// Failure of a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MediumError {
    /// No room for the write.
    #[error("no space left on the device: free some, then try again; nothing accepted is lost")]
    Full,
    /// The file can't be opened or written by this user.
    #[error("permission denied: check the owner and mode of the data directory")]
    Denied,
    /// A read past the end.
    #[error("read past the end of the medium: the file was cut short")]
    OutOfRange,
    /// The medium was switched off by a fault injector.
    #[error("the medium lost power")]
    PowerCut,
    /// Anything else, with the system's error number.
    #[error("input/output error {errno} on the device: check its health and the system log")]
    Device {
        /// The operating system's error number; 0 when it gave none.
        errno: i32,
    },
}
