//! Reading the small text files in which Linux tells about itself.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

/// A directory tree with `/proc`, `/sys` and `/run` in it: the machine's own, or a fixture.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    root: PathBuf,
}

impl Tree {
    pub(crate) fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// The file at the absolute `path`, up to [`MAX_BYTES`], bytes that aren't UTF-8 replaced;
    /// `None` when it is absent or doesn't answer.
    pub(crate) fn read(&self, path: &str) -> Option<String> {
        let file = File::open(self.join(path)).ok()?;
        let mut bytes = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.join(path).exists()
    }

    /// Numbers `n` for which the directory `path` has an entry `prefix` + `n`, ascending.
    pub(crate) fn numbered(&self, path: &str, prefix: &str) -> Vec<u32> {
        let Ok(entries) = std::fs::read_dir(self.join(path)) else { return Vec::new() };
        let names = entries.flatten().map(|entry| entry.file_name());
        let number = |name: &str| name.strip_prefix(prefix)?.parse().ok();
        let mut numbers: Vec<_> = names.filter_map(|name| number(name.to_str()?)).collect();
        numbers.sort_unstable();
        numbers
    }

    fn join(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }
}

/// The machine itself.
impl Default for Tree {
    fn default() -> Self {
        Self::at(PathBuf::from("/"))
    }
}

/// `/proc/cpuinfo` of 256 cores is a third of this.
const MAX_BYTES: u64 = 1 << 20;

/// Fixture trees for the tests of this crate.
#[cfg(test)]
pub(crate) mod fixture {
    use std::path::Path;

    /// A tree of `files`, each an absolute path and its content; it is removed on drop.
    pub(crate) fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, content) in files {
            put(dir.path(), path, content);
        }
        dir
    }

    /// Adds or replaces one file of a tree.
    pub(crate) fn put(root: &Path, path: &str, content: &str) {
        let path = root.join(path.trim_start_matches('/'));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_files_are_none_and_foreign_bytes_are_replaced() {
        let dir = fixture::tree(&[("/proc/a", "text")]);
        std::fs::write(dir.path().join("proc/b"), b"x\xff").unwrap();
        let tree = Tree::at(dir.path().to_path_buf());
        assert_eq!(tree.read("/proc/a").as_deref(), Some("text"));
        assert_eq!(tree.read("/proc/b").as_deref(), Some("x\u{fffd}"));
        assert_eq!(tree.read("/proc/none"), None);
        assert_eq!(tree.read("/proc"), None);
        assert!(tree.exists("/proc") && !tree.exists("/sys"));
    }

    #[test]
    fn numbered_entries_are_sorted_as_numbers() {
        let files = ["/d/cpu10/x", "/d/cpu2/x", "/d/cpufreq/x", "/d/cpu/x", "/d/xcpu1/x"];
        let dir = fixture::tree(&files.map(|path| (path, "")));
        let tree = Tree::at(dir.path().to_path_buf());
        assert_eq!(tree.numbered("/d", "cpu"), [2, 10]);
        assert!(tree.numbered("/none", "cpu").is_empty());
    }

    #[test]
    fn an_endless_file_is_cut() {
        let text = Tree::default().read("/dev/zero").unwrap();
        assert_eq!(text.len() as u64, MAX_BYTES);
    }
}
