//! SHA-256 of model files, remembered by size and time of change: hashing a gigabyte takes a small
//! machine many seconds, and a model is opened at every start.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use garret_llm::check::sha256_file;
use serde::{Deserialize, Serialize};

/// Returns the SHA-256 of the file at `path` and remembers it in `data`; when that fails, the file
/// is hashed again next time.
///
/// # Errors
/// [`io::Error`] when the file can't be read.
pub(super) fn of_file(path: &Path, data: &Path) -> io::Result<[u8; 32]> {
    let path = path.canonicalize()?;
    let stamp = Stamp::of(&fs::metadata(&path)?);
    let memory = data.join(FILE);
    let mut known = load(&memory);
    let name = path.to_string_lossy().into_owned();
    if let Some(entry) = known.get(&name).filter(|entry| entry.stamp == stamp) {
        return Ok(entry.sha256);
    }
    tracing::info!(path = %path.display(), "hashing the model file");
    let sha256 = sha256_file(&path, |_, _| {})?;
    known.insert(name, KnownFile { stamp, sha256 });
    if let Err(error) = save(&memory, &known) {
        tracing::debug!(%error, "fingerprint not remembered");
    }
    Ok(sha256)
}

/// Returns the file names of the models that were opened with `data`, by their SHA-256.
pub fn known_models(data: &Path) -> Vec<([u8; 32], String)> {
    let named = load(&data.join(FILE)).into_iter().filter_map(|(path, entry)| {
        let name = Path::new(&path).file_name()?.to_string_lossy().into_owned();
        Some((entry.sha256, name))
    });
    named.collect()
}

/// The fingerprints that are remembered, by the paths of their files.
type KnownFiles = BTreeMap<String, KnownFile>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct KnownFile {
    stamp: Stamp,
    sha256: [u8; 32],
}

/// The properties of a file that change when it is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    bytes: u64,
    inode: u64,
    modified_s: i64,
    modified_ns: i64,
}

impl Stamp {
    fn of(metadata: &fs::Metadata) -> Self {
        Self {
            bytes: metadata.size(),
            inode: metadata.ino(),
            modified_s: metadata.mtime(),
            modified_ns: metadata.mtime_nsec(),
        }
    }
}

/// Reads what is remembered: nothing, where the file isn't there or can't be understood.
fn load(path: &Path) -> KnownFiles {
    let bytes = fs::read(path).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// Replaces the file as a whole, so that a power cut leaves the old one or the new one.
fn save(path: &Path, known: &KnownFiles) -> io::Result<()> {
    let fresh = path.with_extension(format!("{}.new", std::process::id()));
    // Which models a user has is nobody else's business.
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
    file.write_all(&serde_json::to_vec(known)?)?;
    fs::rename(&fresh, path)
}

const FILE: &str = "fingerprints.json";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_remembered_until_the_file_changes() {
        let dir = tempfile::tempdir().unwrap();
        let model = dir.path().join("m.gguf");
        fs::write(&model, b"one").unwrap();
        let first = of_file(&model, dir.path()).unwrap();
        let memory = dir.path().join(FILE);
        let mut known = load(&memory);
        known.values_mut().next().unwrap().sha256 = [7; 32];
        save(&memory, &known).unwrap();
        assert_eq!(of_file(&model, dir.path()).unwrap(), [7; 32], "taken from memory");
        fs::write(&model, b"three").unwrap();
        let changed = of_file(&model, dir.path()).unwrap();
        assert!(changed != first && changed != [7; 32], "hashed again");
    }

    #[test]
    fn a_damaged_memory_is_no_obstacle() {
        let dir = tempfile::tempdir().unwrap();
        let model = dir.path().join("m.gguf");
        fs::write(&model, b"one").unwrap();
        let first = of_file(&model, dir.path()).unwrap();
        fs::write(dir.path().join(FILE), b"{").unwrap();
        assert_eq!(of_file(&model, dir.path()).unwrap(), first);
    }
}
