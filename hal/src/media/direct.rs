//! Another way into a file: past the page cache, and durable when the write returns.
//!
//! The page cache takes pages of 4,096 bytes to the device whatever changed of them. Most devices
//! write less: 512 bytes where the system says so of an SD card or a disk.

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, OFlags, fstat, major, minor, open};
use rustix::io::{Errno, ReadWriteFlags, pwritev2};

/// A file opened a second time, with `O_DIRECT`.
#[derive(Debug)]
pub(super) struct Direct {
    file: File,
    block: usize,
    /// True once the file system turned out not to write so.
    refused: AtomicBool,
}

impl Direct {
    /// Returns the direct writer of `file`, where its device writes less than a page.
    pub(super) fn of(file: &File) -> Option<Self> {
        let block = device_block(file).filter(|block| (SMALLEST..PAGE).contains(block))?;
        let flags = OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC;
        let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
        let file = open(path, flags, Mode::empty()).ok()?.into();
        Some(Self { file, block, refused: AtomicBool::new(false) })
    }

    /// The device's blocks in bytes, while the file system writes them.
    pub(super) fn block(&self) -> Option<usize> {
        (!self.refused.load(Ordering::Relaxed)).then_some(self.block)
    }

    /// Writes whole blocks; `None` where this way isn't for them, or led to a part of them alone:
    /// then all of them are to be written in the usual way.
    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> Option<io::Result<()>> {
        let block = self.block()?;
        if !offset.is_multiple_of(block as u64) || !bytes.len().is_multiple_of(block) {
            return None;
        }
        // The kernel reads from memory that is aligned as blocks are, at most as pages are.
        let mut buffer = vec![0; bytes.len() + PAGE];
        let start = buffer.as_ptr().align_offset(PAGE);
        let aligned = buffer.get_mut(start..)?.get_mut(..bytes.len())?;
        aligned.copy_from_slice(bytes);
        // As `fdatasync` does, and unlike `O_SYNC`, it doesn't write when the file was changed.
        let parts = [IoSlice::new(aligned)];
        match pwritev2(&self.file, &parts, offset, ReadWriteFlags::DSYNC) {
            Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => {
                self.refused.store(true, Ordering::Relaxed);
                None
            }
            Err(error) => Some(Err(error.into())),
            Ok(written) => (written == aligned.len()).then_some(Ok(())),
        }
    }
}

/// The bytes that the device of a file writes at once, as the system tells; `None` where the file
/// lies on no device of its own.
fn device_block(file: &File) -> Option<usize> {
    let device = fstat(file).ok()?.st_dev;
    let folder = format!("/sys/dev/block/{}:{}", major(device), minor(device));
    // A partition's is that of the device above it.
    ["queue", "../queue"].iter().find_map(|queue| {
        let size = std::fs::read_to_string(format!("{folder}/{queue}/physical_block_size")).ok()?;
        size.trim().parse().ok()
    })
}

/// Smallest block that a device has.
const SMALLEST: usize = 512;
/// Fewest bytes that the page cache writes.
const PAGE: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    /// What such a handle does wherever its file system allows it, whatever the device says.
    fn direct(file: &File, block: usize) -> Option<Direct> {
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let file = open(path, OFlags::RDWR | OFlags::DIRECT, Mode::empty()).ok()?.into();
        Some(Direct { file, block, refused: AtomicBool::new(false) })
    }

    #[test]
    fn whole_blocks_are_written_and_others_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("medium");
        std::fs::write(&path, [1; 16_384]).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let Some(direct) = direct(&file, 4_096) else {
            eprintln!("left out: the file system of {} has no direct writes", path.display());
            return;
        };
        assert!(direct.write(1, &[2; 4_096]).is_none());
        assert!(direct.write(4_096, &[2; 4_095]).is_none());
        assert_eq!(std::fs::read(&path).unwrap(), [1; 16_384]);
        direct.write(4_096, &[2; 8_192]).unwrap().unwrap();
        let found = std::fs::read(&path).unwrap();
        assert_eq!(found, [vec![1; 4_096], vec![2; 8_192], vec![1; 4_096]].concat());
        assert_eq!(direct.block(), Some(4_096));
    }

    #[test]
    fn a_file_without_blocks_is_left_to_the_usual_way() {
        let null = File::options().read(true).write(true).open("/dev/null").unwrap();
        assert!(Direct::of(&null).is_none());
    }

    #[test]
    fn a_device_that_refuses_is_not_asked_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("medium");
        std::fs::write(&path, [1; 16_384]).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        // No device has blocks of one byte.
        let Some(direct) = direct(&file, 1) else { return };
        assert!(direct.write(1, &[2; 3]).is_none());
        assert_eq!(direct.block(), None);
        assert_eq!(std::fs::read(&path).unwrap(), [1; 16_384]);
    }
}
