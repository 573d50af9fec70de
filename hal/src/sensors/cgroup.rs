//! Memory limits of control groups, versions 1 and 2.

use crate::tree::Tree;

/// A limit that one control group sets, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limit {
    /// The most it may use.
    pub(super) max: u64,
    /// Bytes that the group uses now, without what the kernel would drop before it ran out: file
    /// cache and its own caches, such as that of directory entries.
    pub(super) in_use: u64,
}

/// The limits above this process: its groups' and all their ancestors'.
pub(super) fn limits(tree: &Tree) -> Vec<Limit> {
    let groups = tree.read("/proc/self/cgroup").unwrap_or_default();
    let found = memory_groups(&groups);
    found.flat_map(|(version, path)| version.limits(tree, path)).collect()
}

/// The groups that may limit memory, as lines `number:controllers:path` of `/proc/self/cgroup` name
/// them.
fn memory_groups(text: &str) -> impl Iterator<Item = (&'static Version, &str)> {
    text.lines().filter_map(|line| {
        let (number, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let version = match controllers {
            "" if number == "0" => &V2,
            _ if controllers.split(',').any(|name| name == "memory") => &V1,
            _ => return None,
        };
        Some((version, path))
    })
}

/// Files in which a version of control groups keeps what we need.
#[derive(Debug, PartialEq, Eq)]
struct Version {
    mount: &'static str,
    max: &'static str,
    current: &'static str,
    /// The lines of `memory.stat` that count what can be dropped.
    reclaimable: &'static [&'static str],
}

impl Version {
    fn limits(&self, tree: &Tree, path: &str) -> Vec<Limit> {
        levels(path).into_iter().filter_map(|level| self.limit(tree, level)).collect()
    }

    fn limit(&self, tree: &Tree, level: &str) -> Option<Limit> {
        let read = |name: &str| tree.read(&format!("{}{level}/{name}", self.mount));
        let max = number(&read(self.max)?)?;
        let current = number(&read(self.current)?)?;
        let counts = read("memory.stat").unwrap_or_default();
        let droppable = self.reclaimable.iter().filter_map(|name| stat(&counts, name));
        Some(Limit { max, in_use: droppable.fold(current, u64::saturating_sub) })
    }
}

/// `path` and its ancestors, without trailing slash, the root being empty; the root alone where the
/// path leads out of what is visible.
fn levels(path: &str) -> Vec<&str> {
    let path = path.trim_end_matches('/');
    if !path.starts_with('/') || path.split('/').any(|part| part == "..") {
        return vec![""];
    }
    let starts = path.match_indices('/').map(|(at, _)| at);
    starts.chain([path.len()]).filter_map(|end| path.get(..end)).collect()
}

/// A whole number of bytes; `max` (no limit) is `None`.
fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// The number on the line of `memory.stat` that `name` begins.
fn stat(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| number(line.strip_prefix(name)?.strip_prefix(' ')?))
}

const V2: Version = Version {
    mount: "/sys/fs/cgroup",
    max: "memory.max",
    current: "memory.current",
    reclaimable: &["active_file", "inactive_file", "slab_reclaimable"],
};

const V1: Version = Version {
    mount: "/sys/fs/cgroup/memory",
    max: "memory.limit_in_bytes",
    current: "memory.usage_in_bytes",
    reclaimable: &["total_active_file", "total_inactive_file"],
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_groups_with_a_memory_controller_count() {
        let text =
            "12:memory:/a\n11:cpu,cpuacct:/b\n10:name=memory:/c\n1::/d\n0::/e:f\nnonsense\n:";
        let found: Vec<_> = memory_groups(text).collect();
        assert_eq!(found, [(&V1, "/a"), (&V2, "/e:f")]);
    }

    #[test]
    fn levels_go_from_the_root_down() {
        assert_eq!(levels("/"), [""]);
        assert_eq!(levels("/a"), ["", "/a"]);
        assert_eq!(levels("/a/b.slice/"), ["", "/a", "/a/b.slice"]);
        assert_eq!(levels("/../b"), [""]);
        assert_eq!(levels(""), [""]);
    }

    #[test]
    fn numbers_and_their_absence() {
        assert_eq!(number("12\n"), Some(12));
        assert_eq!(number("max\n"), None);
        assert_eq!(number("-1\n"), None);
        assert_eq!(stat("inactive_filex 1\ninactive_file 2\n", "inactive_file"), Some(2));
        assert_eq!(stat("", "inactive_file"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_digested(text in "[0-9:,/.a-z\n\u{e9}]{0,200}") {
            for (_, path) in memory_groups(&text) {
                let levels = levels(path);
                prop_assert_eq!(levels[0], "");
                prop_assert!(levels.iter().all(|level| path.starts_with(level)));
            }
        }
    }
}
