//! Sensors: what the machine says about its memory, heat, pressure, disk, processors and board.
//!
//! Each sensor is a trait; [`Machine`] implements all of them from `/proc`, `/sys` and `statvfs`,
//! and [`ScriptedSensor`] implements each with readings that a test chose. Readings are taken on
//! every call and never cached. What a machine doesn't tell is `None` (or an empty list): no sensor
//! fails.
//!
//! ```
//! use garret_hal::sensors::{Machine, Memory, MemorySensor, ScriptedSensor};
//!
//! let machine = Machine::new();
//! if let Some(memory) = machine.memory() {
//!     assert!(memory.available <= memory.total);
//! }
//!
//! let low = Memory { total: 1 << 30, available: 50 << 20 };
//! let script = ScriptedSensor::new([Some(low), None]);
//! assert_eq!(script.memory(), Some(low));
//! assert_eq!(script.memory(), None);
//! assert_eq!(script.memory(), None, "the last reading stays");
//! ```
//!
//! Limits: a reading is one moment's; swap isn't counted as memory.

use crate::tree::Tree;
use std::path::PathBuf;

mod board;
mod cgroup;
mod cpu;
mod disk;
mod memory;
mod pressure;
mod scripted;
mod thermal;

pub use board::BoardSensor;
pub use cpu::{Cpu, CpuSensor};
pub use disk::{Disk, DiskSensor};
pub use memory::{Memory, MemorySensor};
pub use pressure::{Pressure, PressureSensor, Resource};
pub use scripted::ScriptedSensor;
pub use thermal::{ThermalSensor, ThermalZone};

/// The real sensors of this machine.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    tree: Tree,
}

impl Machine {
    /// The machine this program runs on.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sensors that read `/proc` and `/sys` below `root`: for tests on recorded machines. The free
    /// space of a disk and the number of processors that this process may use are the running
    /// machine's all the same.
    pub fn with_root(root: PathBuf) -> Self {
        Self { tree: Tree::at(root) }
    }
}
