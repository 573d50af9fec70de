//! Pressure: how long work waits for a resource (the kernel's pressure stall information).

use super::Machine;

/// Resource that work can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// A processor.
    Cpu,
    /// Memory.
    Memory,
    /// The disk.
    Io,
}

/// The share of time in which at least one task waited, in percent (0 to 100).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pressure {
    /// Over the last 10 seconds.
    pub avg10: f32,
    /// Over the last 60 seconds.
    pub avg60: f32,
}

/// Tells how much the machine makes its tasks wait.
pub trait PressureSensor: Send + Sync {
    /// Pressure on `resource` now; `None` where the kernel doesn't measure it, as on Raspberry Pi
    /// OS without `psi=1`.
    fn pressure(&self, resource: Resource) -> Option<Pressure>;
}

impl PressureSensor for Machine {
    fn pressure(&self, resource: Resource) -> Option<Pressure> {
        let path = match resource {
            Resource::Cpu => "/proc/pressure/cpu",
            Resource::Memory => "/proc/pressure/memory",
            Resource::Io => "/proc/pressure/io",
        };
        parse_pressure(&self.tree.read(path)?)
    }
}

/// The line `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`.
fn parse_pressure(text: &str) -> Option<Pressure> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let percent = |name: &str| {
        let value = line.split_whitespace().find_map(|word| word.strip_prefix(name))?;
        value.parse().ok().filter(|value| (0.0..=100.0).contains(value))
    };
    Some(Pressure { avg10: percent("avg10=")?, avg60: percent("avg60=")? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::fixture::tree;
    use proptest::prelude::*;

    const CPU: &str = "some avg10=16.97 avg60=7.09 avg300=10.55 total=74853302\n\
        full avg10=0.01 avg60=0.02 avg300=0.00 total=0\n";

    #[test]
    fn each_resource_has_its_file() {
        let dir = tree(&[
            ("/proc/pressure/cpu", CPU),
            ("/proc/pressure/memory", "some avg10=1.00 avg60=2.00 avg300=0.00 total=1\n"),
        ]);
        let machine = Machine::with_root(dir.path().to_path_buf());
        let of = |avg10, avg60| Some(Pressure { avg10, avg60 });
        assert_eq!(machine.pressure(Resource::Cpu), of(16.97, 7.09));
        assert_eq!(machine.pressure(Resource::Memory), of(1.0, 2.0));
        assert_eq!(machine.pressure(Resource::Io), None);
    }

    #[test]
    fn damaged_lines_are_no_reading() {
        for text in [
            "",
            "full avg10=1.00 avg60=1.00",
            "some avg10=1.00",
            "some avg10=NaN avg60=1.00",
            "some avg10=inf avg60=1.00",
            "some avg10=-1.00 avg60=1.00",
            "some avg10=100.01 avg60=1.00",
            "some avg10= avg60=1.00",
            "someavg10=1.00 avg60=1.00",
        ] {
            assert_eq!(parse_pressure(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_the_kernel_prints_is_read(
            avg10 in 0..=10_000_u16,
            avg60 in 0..=10_000_u16,
            total: u64,
        ) {
            let print = |n: u16| format!("{}.{:02}", n / 100, n % 100);
            let first = print(avg10);
            let second = print(avg60);
            let text = format!("some avg10={first} avg60={second} avg300=0.00 total={total}\n");
            let read = parse_pressure(&text).unwrap();
            prop_assert!((read.avg10 - f32::from(avg10) / 100.0).abs() < 0.001);
            prop_assert!((read.avg60 - f32::from(avg60) / 100.0).abs() < 0.001);
        }

        #[test]
        fn any_text_parses_or_is_refused(text in "(some )?.{0,60}") {
            if let Some(read) = parse_pressure(&text) {
                prop_assert!((0.0..=100.0).contains(&read.avg10));
            }
        }
    }
}
