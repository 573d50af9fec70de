//! The device Garret runs on.

use garret_hal::profile::DeviceProfile;
use garret_hal::sensors::Machine;

/// The profile of this machine.
pub fn profile() -> DeviceProfile {
    let machine = Machine::new();
    DeviceProfile::detect(&machine, &machine, &machine)
}

/// Has the C library give freed memory back, in a process whose first step this is: a third of what a long
/// conversation would hold. See [`garret_hal::heap::bound`].
pub fn bound_heap() {
    garret_hal::heap::bound();
}
