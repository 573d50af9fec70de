//! A file system of its own in a file, whose device counts what is written to it.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// An ext4 file system on a loop device, mounted; both go when this is dropped.
pub(super) struct Loopback {
    /// Holds the image and the mount point.
    folder: tempfile::TempDir,
    device: Option<String>,
    mounted: bool,
}

impl Loopback {
    /// Makes and mounts a file system of `bytes`, on a device of sectors of so many.
    ///
    /// # Errors
    /// What is missing: it takes root and loop devices.
    pub(super) fn mount(bytes: u64, sector: usize) -> Result<Self, Box<dyn Error>> {
        if !rustix::process::geteuid().is_root() {
            return Err("mounting a loop device takes root".into());
        }
        let folder = tempfile::tempdir()?;
        let mut new = Self { folder, device: None, mounted: false };
        let image = new.folder.path().join("image");
        fs::File::create(&image)?.set_len(bytes)?;
        // Nothing is left for the kernel to initialise later, which would be counted.
        let now = "lazy_itable_init=0,lazy_journal_init=0";
        let mut losetup = Command::new("losetup");
        losetup.args(["--find", "--show", "--sector-size", &sector.to_string()]).arg(&image);
        let device = new.device.insert(tool(&mut losetup)?.trim().to_owned()).clone();
        tool(Command::new("mkfs.ext4").args(["-q", "-F", "-E", now]).arg(&device))?;
        fs::create_dir(new.path())?;
        tool(Command::new("mount").arg(device).arg(new.path()))?;
        new.mounted = true;
        Ok(new)
    }

    /// Returns the folder at which the device is mounted.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("mounted")
    }

    /// Bytes that reach the device because of `act`, and what it gives.
    ///
    /// # Errors
    /// A device that can't be synced or read.
    pub(super) fn written<T>(&self, act: impl FnOnce() -> T) -> Result<(T, f64), Box<dyn Error>> {
        let before = self.sectors()?;
        let result = act();
        Ok((result, (self.sectors()? - before) as f64 * SECTOR))
    }

    /// Sectors written so far, after everything that waits was.
    fn sectors(&self) -> Result<u64, Box<dyn Error>> {
        rustix::fs::syncfs(fs::File::open(self.path())?)?;
        let device = self.device.as_deref().and_then(|device| device.strip_prefix("/dev/"));
        let path = format!("/sys/block/{}/stat", device.unwrap_or_default());
        sectors_written(&fs::read_to_string(&path)?).ok_or_else(|| format!("{path}: odd").into())
    }
}

/// Bytes of a sector in `/sys/block/*/stat`, whatever the device's own sectors are.
const SECTOR: f64 = 512.0;

impl Drop for Loopback {
    fn drop(&mut self) {
        if self.mounted {
            let unmounted = tool(Command::new("umount").arg(self.path()));
            if unmounted.is_err() {
                // Something still has a file open there: it goes when that does.
                let _ = tool(Command::new("umount").arg("--lazy").arg(self.path()));
            }
        }
        if let Some(device) = &self.device {
            let _ = tool(Command::new("losetup").args(["--detach", device]));
        }
    }
}

/// The seventh number of a block device's statistics.
fn sectors_written(stat: &str) -> Option<u64> {
    stat.split_whitespace().nth(6)?.parse().ok()
}

fn tool(command: &mut Command) -> Result<String, Box<dyn Error>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_are_the_seventh_number() {
        let stat = "   55  0  2102  3  1  0  204  0  0  0  3  0  0  0  0  1  0\n";
        assert_eq!(sectors_written(stat), Some(204));
        assert_eq!(sectors_written("1 2 3"), None);
    }

    #[test]
    fn a_tool_that_is_missing_or_fails_is_named() {
        let missing = tool(&mut Command::new("no-such-tool")).unwrap_err().to_string();
        assert!(missing.starts_with("no-such-tool"), "{missing}");
        let failed = tool(Command::new("sh").args(["-c", "echo why >&2; false"])).unwrap_err();
        assert_eq!(failed.to_string(), "sh: why");
    }
}
