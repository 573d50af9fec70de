//! The device Garret runs on.

use garret_hal::profile::DeviceProfile;
use garret_hal::sensors::Machine;

/// The profile of this machine.
pub fn profile() -> DeviceProfile {
    let machine = Machine::new();
    DeviceProfile::detect(&machine, &machine, &machine)
}
