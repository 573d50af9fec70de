//! Processors: how many this process may use, and how many of them are cores of their own.

use super::Machine;
use std::collections::BTreeSet;

/// Processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Processors that this process may use: affinity and control-group quota count. At least 1.
    pub logical: u32,
    /// Cores among the machine's running processors, at most `logical`; `None` where the machine
    /// doesn't tell which processors share a core.
    pub physical: Option<u32>,
}

/// Describes one processor, nothing known about its core.
impl Default for Cpu {
    fn default() -> Self {
        Self { logical: 1, physical: None }
    }
}

/// Tells how many processors there are.
pub trait CpuSensor: Send + Sync {
    /// Processors now.
    fn cpu(&self) -> Cpu;
}

impl CpuSensor for Machine {
    fn cpu(&self) -> Cpu {
        let usable = std::thread::available_parallelism();
        let logical = usable.map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX));
        Cpu { logical, physical: self.cores().map(|cores| cores.min(logical)) }
    }
}

impl Machine {
    /// Cores that run, by the lists of which processors share one, else by `/proc/cpuinfo`.
    fn cores(&self) -> Option<u32> {
        let siblings = |number: u32| {
            let read = |name: &str| self.tree.read(&format!("{CPUS}/cpu{number}/topology/{name}"));
            read("core_cpus_list").or_else(|| read("thread_siblings_list"))
        };
        let lists = self.tree.numbered(CPUS, "cpu").into_iter().filter_map(siblings);
        let cores: BTreeSet<_> = lists.map(|list| list.trim().to_owned()).collect();
        count(cores.len()).or_else(|| parse_cpuinfo(&self.tree.read("/proc/cpuinfo")?))
    }
}

/// The different pairs of `physical id` and `core id`; ARM kernels print neither.
fn parse_cpuinfo(text: &str) -> Option<u32> {
    let mut package = None;
    let mut cores = BTreeSet::new();
    for line in text.lines() {
        let (key, value) = line.split_once(':').unwrap_or((line, ""));
        match key.trim() {
            "physical id" => package = value.trim().parse::<u32>().ok(),
            "core id" => {
                cores.extend(value.trim().parse::<u32>().ok().map(|core| (package, core)));
            }
            _ => {}
        }
    }
    count(cores.len())
}

/// No core at all means that nothing was told.
fn count(cores: usize) -> Option<u32> {
    u32::try_from(cores).ok().filter(|cores| *cores > 0)
}

const CPUS: &str = "/sys/devices/system/cpu";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::fixture::{put, tree};
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn machine_with_siblings(lists: &[&str]) -> (tempfile::TempDir, Machine) {
        let dir = tree(&[("/sys/devices/system/cpu/cpufreq/policy0", "")]);
        for (number, list) in lists.iter().enumerate() {
            let path = format!("/sys/devices/system/cpu/cpu{number}/topology/core_cpus_list");
            put(dir.path(), &path, &format!("{list}\n"));
        }
        let machine = Machine::with_root(dir.path().to_path_buf());
        (dir, machine)
    }

    fn cpuinfo(cores: &[(u32, u32)]) -> String {
        let block = |(number, (package, core)): (usize, &(u32, u32))| {
            format!(
                "processor\t: {number}\nmodel name\t: Some: CPU\nphysical id\t: {package}\n\
                 siblings\t: 4\ncore id\t\t: {core}\ncpu cores\t: 2\n\n"
            )
        };
        cores.iter().enumerate().map(block).collect()
    }

    #[test]
    fn processors_on_one_core_count_once() {
        let (_dir, machine) = machine_with_siblings(&["0,4", "1,5", "2,6", "3,7", "0,4", "1,5"]);
        assert_eq!(machine.cores(), Some(4));
        let (_dir, machine) = machine_with_siblings(&["0", "1", "2", "3"]);
        assert_eq!(machine.cores(), Some(4));
    }

    #[test]
    fn old_kernels_use_another_name() {
        let path = "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list";
        let dir = tree(&[(path, "0-1\n"), ("/sys/devices/system/cpu/cpu1/online", "1")]);
        assert_eq!(Machine::with_root(dir.path().to_path_buf()).cores(), Some(1));
    }

    #[test]
    fn without_topology_cpuinfo_answers() {
        let dir = tree(&[("/proc/cpuinfo", &cpuinfo(&[(0, 0), (0, 1), (0, 0), (1, 0)]))]);
        assert_eq!(Machine::with_root(dir.path().to_path_buf()).cores(), Some(3));
    }

    #[test]
    fn an_arm_cpuinfo_tells_no_cores() {
        let text = "processor\t: 0\nBogoMIPS\t: 108.00\nCPU part\t: 0xd0b\n\nprocessor\t: 1\n";
        assert_eq!(parse_cpuinfo(text), None);
    }

    #[test]
    fn this_machine_has_a_processor() {
        let cpu = Machine::new().cpu();
        assert!(cpu.logical >= 1);
        assert!(cpu.physical.is_none_or(|cores| (1..=cpu.logical).contains(&cores)));
    }

    #[test]
    fn a_silent_machine_has_unknown_cores() {
        let dir = tree(&[]);
        assert_eq!(Machine::with_root(dir.path().to_path_buf()).cpu().physical, None);
    }

    proptest! {
        #[test]
        fn cores_are_the_different_pairs(cores in vec((0..3_u32, 0..5_u32), 0..20)) {
            let different: BTreeSet<_> = cores.iter().collect();
            prop_assert_eq!(parse_cpuinfo(&cpuinfo(&cores)).unwrap_or(0) as usize, different.len());
        }

        #[test]
        fn any_text_parses_or_is_refused(text in "(processor|core id|physical id|[ :\n0-9x]){0,60}")
        {
            prop_assert_ne!(parse_cpuinfo(&text), Some(0));
        }
    }
}
