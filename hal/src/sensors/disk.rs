//! Disk: room on a file system.

use super::Machine;
use rustix::fs::{StatVfs, statvfs};
use rustix::io::Errno;
use std::path::Path;

/// A file system's size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disk {
    /// All of it.
    pub total: u64,
    /// Bytes that a user without privileges may still write.
    pub available: u64,
}

/// Tells how much room there is for files.
pub trait DiskSensor: Send + Sync {
    /// The file system that holds `path`, or would hold it once its missing directories are made;
    /// `None` where that can't be found out.
    fn disk(&self, path: &Path) -> Option<Disk>;
}

impl DiskSensor for Machine {
    fn disk(&self, path: &Path) -> Option<Disk> {
        for place in path.ancestors() {
            // The last ancestor of a relative path is empty: the working directory.
            let place = if place.as_os_str().is_empty() { Path::new(".") } else { place };
            match statvfs(place) {
                Ok(stat) => return Some(size(&stat)),
                Err(Errno::NOENT) => {}
                Err(_) => return None,
            }
        }
        None
    }
}

fn size(stat: &StatVfs) -> Disk {
    let total = stat.f_blocks.saturating_mul(stat.f_frsize);
    Disk { total, available: stat.f_bavail.saturating_mul(stat.f_frsize).min(total) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_and_its_missing_children_share_a_file_system() {
        let dir = tempfile::tempdir().unwrap();
        let machine = Machine::new();
        let here = machine.disk(dir.path()).unwrap();
        assert!(here.total > 0 && here.available <= here.total);
        let there = machine.disk(&dir.path().join("not/made/yet")).unwrap();
        assert_eq!(there.total, here.total);
    }

    #[test]
    fn a_relative_path_counts_from_the_working_directory() {
        let machine = Machine::new();
        let here = machine.disk(Path::new(".")).unwrap();
        for path in ["", "not-made-yet", "not/made/yet"] {
            assert_eq!(machine.disk(Path::new(path)).unwrap().total, here.total);
        }
    }

    #[test]
    fn a_path_below_a_file_has_no_disk() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(Machine::new().disk(&file.path().join("x")), None);
    }

    #[test]
    fn a_file_system_without_blocks_has_no_room() {
        let disk = Machine::new().disk(Path::new("/proc"));
        assert_eq!(disk, Some(Disk { total: 0, available: 0 }));
    }
}
