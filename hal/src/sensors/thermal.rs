//! Heat: the kernel's thermal zones.

use super::Machine;

/// A place whose temperature is measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThermalZone {
    /// The driver's name for it, such as `cpu-thermal`; empty where it has none.
    pub name: String,
    /// Thousandths of a degree Celsius.
    pub millicelsius: i32,
}

/// Tells how hot the machine is.
pub trait ThermalSensor: Send + Sync {
    /// Every zone that has a plausible reading now; virtual machines have none.
    fn zones(&self) -> Vec<ThermalZone>;

    /// The highest reading, in thousandths of a degree Celsius.
    fn hottest(&self) -> Option<i32> {
        self.zones().iter().map(|zone| zone.millicelsius).max()
    }
}

impl ThermalSensor for Machine {
    fn zones(&self) -> Vec<ThermalZone> {
        let zone = |number: u32| {
            let read = |name: &str| self.tree.read(&format!("{ZONES}/{PREFIX}{number}/{name}"));
            let name = read("type").unwrap_or_default().trim().to_owned();
            Some(ThermalZone { name, millicelsius: parse_temp(&read("temp")?)? })
        };
        self.tree.numbered(ZONES, PREFIX).into_iter().filter_map(zone).collect()
    }
}

/// A zone's `temp`. Drivers without a reading say -273 degrees or other impossible values.
fn parse_temp(text: &str) -> Option<i32> {
    text.trim().parse().ok().filter(|temp| PLAUSIBLE.contains(temp))
}

const ZONES: &str = "/sys/class/thermal";
const PREFIX: &str = "thermal_zone";

/// No silicon works outside of this, in thousandths of a degree Celsius.
const PLAUSIBLE: std::ops::RangeInclusive<i32> = -100_000..=200_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::fixture::tree;
    use proptest::prelude::*;

    #[test]
    fn zones_are_read_and_dead_ones_left_out() {
        let dir = tree(&[
            ("/sys/class/thermal/thermal_zone0/temp", "48312\n"),
            ("/sys/class/thermal/thermal_zone0/type", "cpu-thermal\n"),
            ("/sys/class/thermal/thermal_zone1/temp", "-273200\n"),
            ("/sys/class/thermal/thermal_zone2/type", "gpu\n"),
            ("/sys/class/thermal/thermal_zone10/temp", "61500\n"),
            ("/sys/class/thermal/cooling_device0/type", "fan\n"),
        ]);
        let machine = Machine::with_root(dir.path().to_path_buf());
        let zone = |name: &str, millicelsius| ThermalZone { name: name.to_owned(), millicelsius };
        assert_eq!(machine.zones(), [zone("cpu-thermal", 48_312), zone("", 61_500)]);
        assert_eq!(machine.hottest(), Some(61_500));
    }

    #[test]
    fn a_virtual_machine_has_no_temperature() {
        let dir = tree(&[]);
        let machine = Machine::with_root(dir.path().to_path_buf());
        assert!(machine.zones().is_empty());
        assert_eq!(machine.hottest(), None);
    }

    proptest! {
        #[test]
        fn whole_numbers_in_range_are_read(temp: i32) {
            let expected = (-100_000..=200_000).contains(&temp).then_some(temp);
            prop_assert_eq!(parse_temp(&format!("{temp}\n")), expected);
        }

        #[test]
        fn other_text_is_no_reading(text in "[^0-9]{0,20}") {
            prop_assert_eq!(parse_temp(&text), None);
        }
    }
}
