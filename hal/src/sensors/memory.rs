//! Memory: what the kernel has, or what the control group of this process may use of it.

use super::{Machine, cgroup};

/// Memory in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Bytes that this process could use at most: the machine's, or its control group's limit where
    /// that is lower.
    pub total: u64,
    /// Bytes that can be had now without swapping; file cache that can be dropped counts. Never
    /// above `total`.
    pub available: u64,
}

/// Tells how much memory there is.
pub trait MemorySensor: Send + Sync {
    /// Memory now; `None` where `/proc` isn't mounted.
    fn memory(&self) -> Option<Memory>;
}

impl MemorySensor for Machine {
    fn memory(&self) -> Option<Memory> {
        let machine = parse_meminfo(&self.tree.read("/proc/meminfo")?)?;
        Some(cgroup::limits(&self.tree).into_iter().fold(machine, within))
    }
}

/// `memory` under a control group's `limit`.
fn within(memory: Memory, limit: cgroup::Limit) -> Memory {
    let left = limit.max.saturating_sub(limit.in_use);
    Memory { total: memory.total.min(limit.max), available: memory.available.min(left) }
}

/// `MemTotal` and `MemAvailable` of `/proc/meminfo`.
fn parse_meminfo(text: &str) -> Option<Memory> {
    let bytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let kib: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
        kib.checked_mul(1024)
    };
    let total = bytes("MemTotal")?;
    Some(Memory { total, available: bytes("MemAvailable")?.min(total) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::fixture::{put, tree};
    use proptest::prelude::*;

    const MEMINFO: &str = "MemTotal:        4146752 kB\nMemFree:          123456 kB\n\
        MemAvailable:    3000000 kB\nSwapTotal: 100 kB\nHugePages_Total:       0\n";
    const MIB: u64 = 1 << 20;

    fn memory(files: &[(&str, &str)]) -> Option<Memory> {
        let dir = tree(files);
        put(dir.path(), "/proc/meminfo", MEMINFO);
        Machine::with_root(dir.path().to_path_buf()).memory()
    }

    fn bare() -> Memory {
        Memory { total: 4_146_752 * 1024, available: 3_000_000 * 1024 }
    }

    #[test]
    fn without_control_groups_it_is_the_machine() {
        assert_eq!(memory(&[]), Some(bare()));
        assert_eq!(memory(&[("/proc/self/cgroup", "")]), Some(bare()));
    }

    #[test]
    fn without_proc_there_is_no_reading() {
        let dir = tree(&[]);
        assert_eq!(Machine::with_root(dir.path().to_path_buf()).memory(), None);
    }

    #[test]
    fn a_version_2_limit_counts_without_what_can_be_dropped() {
        let files = [
            ("/proc/self/cgroup", "0::/app\n"),
            ("/sys/fs/cgroup/app/memory.max", "536870912\n"),
            ("/sys/fs/cgroup/app/memory.current", "314572800\n"),
            (
                "/sys/fs/cgroup/app/memory.stat",
                "anon 1\ninactive_file 104857600\n\
                active_file 52428800\nslab_reclaimable 1048576\nslab 2097152\n",
            ),
        ];
        let expected = Memory { total: 512 * MIB, available: (312 + 50 + 1) * MIB };
        assert_eq!(memory(&files), Some(expected));
    }

    #[test]
    fn the_lowest_limit_of_all_ancestors_holds() {
        let files = [
            ("/proc/self/cgroup", "0::/outer/inner\n"),
            ("/sys/fs/cgroup/outer/inner/memory.max", "max\n"),
            ("/sys/fs/cgroup/outer/inner/memory.current", "1048576\n"),
            ("/sys/fs/cgroup/outer/memory.max", "1073741824\n"),
            ("/sys/fs/cgroup/outer/memory.current", "1048576\n"),
        ];
        assert_eq!(memory(&files), Some(Memory { total: 1024 * MIB, available: 1023 * MIB }));
    }

    /// A container without a group namespace of its own is told a path that it can't see; its limit
    /// lies at the root of what it sees.
    #[test]
    fn a_foreign_path_falls_back_to_the_root() {
        for path in ["/docker/0123abcd", "/../../elsewhere"] {
            let files = [
                ("/proc/self/cgroup", &*format!("0::{path}\n")),
                ("/sys/fs/cgroup/memory.max", "1073741824\n"),
                ("/sys/fs/cgroup/memory.current", "0\n"),
            ];
            assert_eq!(memory(&files), Some(Memory { total: 1024 * MIB, available: 1024 * MIB }));
        }
    }

    #[test]
    fn a_version_1_limit_counts_and_no_limit_does_not() {
        let groups = "5:cpu:/x\n4:hugetlb,memory:/box\n0::/\n";
        let with = |limit: &str| {
            memory(&[
                ("/proc/self/cgroup", groups),
                ("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", limit),
                ("/sys/fs/cgroup/memory/box/memory.usage_in_bytes", "209715200\n"),
                (
                    "/sys/fs/cgroup/memory/box/memory.stat",
                    "total_inactive_file 104857600\n\
                    total_active_file 52428800\nactive_file 1\n",
                ),
            ])
        };
        let limited = Memory { total: 1024 * MIB, available: (924 + 50) * MIB };
        assert_eq!(with("1073741824\n"), Some(limited));
        assert_eq!(with("9223372036854771712\n"), Some(bare()));
    }

    #[test]
    fn a_group_above_its_limit_has_nothing_left() {
        let limit = cgroup::Limit { max: 10, in_use: 20 };
        assert_eq!(within(bare(), limit), Memory { total: 10, available: 0 });
    }

    #[test]
    fn half_a_meminfo_is_no_reading() {
        for text in [
            "",
            "MemTotal: 5 kB",
            "MemAvailable: 5 kB",
            "MemTotal: x kB\nMemAvailable: 5 kB",
            "MemTotal: 5\nMemAvailable: 5",
            "MemTotal: 18446744073709551615 kB\nMemAvailable: 5 kB",
            "XMemTotal: 5 kB\nMemAvailable: 5 kB",
        ] {
            assert_eq!(parse_meminfo(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_parses_or_is_refused(text in ".{0,200}") {
            parse_meminfo(&text);
        }

        #[test]
        fn what_the_kernel_prints_is_read(total in 0..1_u64 << 50, free: u32, available: u32) {
            let text = format!(
                "MemTotal:{total:>15} kB\nMemFree:{free:>15} kB\nMemAvailable:{available:>15} kB\n"
            );
            let available = u64::from(available).min(total) * 1024;
            prop_assert_eq!(parse_meminfo(&text), Some(Memory { total: total * 1024, available }));
        }

        #[test]
        fn a_limit_never_adds_memory(total: u64, available: u64, max: u64, in_use: u64) {
            let before = Memory { total, available: available.min(total) };
            let after = within(before, cgroup::Limit { max, in_use });
            prop_assert!(after.total <= before.total && after.available <= before.available);
            prop_assert!(after.available <= after.total);
        }
    }
}
