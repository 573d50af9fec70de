//! Device profiles: settings for the model that suit this machine, from its memory and cores.
//!
//! | memory | window | batch | KV cache |
//! |---|---|---|---|
//! | under 1 GiB | 2,048 | 64 | q8_0 |
//! | 1 to 2 GiB | 4,096 | 64 | f16 |
//! | 2 to 4 GiB, or unknown | 4,096 | 128 | f16 |
//! | 4 GiB and more | 8,192 | 128 | f16 |
//!
//! Memory is what the process may use (a control group's limit counts), and a machine counts as one
//! of N GiB when Linux sees at least five sixths of them: firmware and kernel keep the rest.
//! Threads are the physical cores, from 1 to 8, for prompts as for replies.
//!
//! Why these numbers (x86_64, 2 cores, SmolLM2-135M): batches of 128 lose no speed against 512 and
//! end within tens of milliseconds when cancelled; a quantised KV cache halves its memory and also
//! the speed of reading prompts, so only the smallest machines get it; small prompts decode several
//! times faster than long ones, so nothing gets a window merely because it would fit. The board's
//! name labels the profile and decides nothing: no board measured so far asks for other numbers
//! than its memory and cores give.
//!
//! ```
//! use garret_core::model::KvType;
//! use garret_hal::profile::{DeviceFacts, DeviceProfile, choose};
//! use garret_hal::sensors::Machine;
//!
//! let machine = Machine::new();
//! let here = DeviceProfile::detect(&machine, &machine, &machine);
//! assert!((1..=8).contains(&here.threads));
//!
//! let pi = choose(&DeviceFacts {
//!     board: Some("Raspberry Pi 5 Model B Rev 1.0".into()),
//!     memory: Some(8_200_000_000),
//!     logical: 4,
//!     physical: Some(4),
//! });
//! assert_eq!((pi.threads, pi.window, pi.kv_type), (4, 8_192, KvType::F16));
//! ```
//!
//! Limits: a profile knows nothing of the model; whether weights and cache fit is for the model's
//! own check. Every field may be replaced by what the user configured.

use garret_core::model::KvType;

use crate::sensors::{BoardSensor, CpuSensor, MemorySensor};

/// Settings that suit a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceProfile {
    /// The board's own name, or `generic`.
    pub name: String,
    /// Threads that decode a reply.
    pub threads: u32,
    /// Threads that read a prompt.
    pub batch_threads: u32,
    /// Tokens handed to the model at once.
    pub n_batch: u32,
    /// Tokens computed at once: how fine a cancellation is.
    pub n_ubatch: u32,
    /// The context window in tokens, where the model was trained for as many.
    pub window: u32,
    /// Type of the keys and values of the context.
    pub kv_type: KvType,
}

impl DeviceProfile {
    /// The profile of the machine that the sensors describe; see [`choose`].
    pub fn detect(
        memory: &dyn MemorySensor,
        cpu: &dyn CpuSensor,
        board: &dyn BoardSensor,
    ) -> DeviceProfile {
        choose(&DeviceFacts::read(memory, cpu, board))
    }
}

/// Facts about a device from which a profile is chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceFacts {
    /// The maker's name of the board.
    pub board: Option<String>,
    /// Bytes of memory that this process may use; `None` where unknown.
    pub memory: Option<u64>,
    /// Processors that this process may use.
    pub logical: u32,
    /// Cores; `None` where the machine doesn't tell which processors share one.
    pub physical: Option<u32>,
}

impl DeviceFacts {
    /// Asks every sensor once.
    pub fn read(
        memory: &dyn MemorySensor,
        cpu: &dyn CpuSensor,
        board: &dyn BoardSensor,
    ) -> DeviceFacts {
        let cpu = cpu.cpu();
        DeviceFacts {
            board: board.board(),
            memory: memory.memory().map(|memory| memory.total),
            logical: cpu.logical,
            physical: cpu.physical,
        }
    }
}

/// The profile for a machine: the table that this module opens with.
pub fn choose(facts: &DeviceFacts) -> DeviceProfile {
    let (window, batch, kv_type) = match facts.memory {
        None => (4_096, 128, KvType::F16),
        Some(memory) if memory < nominal(1) => (2_048, 64, KvType::Q8_0),
        Some(memory) if memory < nominal(2) => (4_096, 64, KvType::F16),
        Some(memory) if memory < nominal(4) => (4_096, 128, KvType::F16),
        Some(_) => (8_192, 128, KvType::F16),
    };
    let cores = facts.physical.unwrap_or(facts.logical).min(facts.logical);
    let threads = cores.clamp(1, MAX_THREADS);
    DeviceProfile {
        name: facts.board.clone().unwrap_or_else(|| "generic".to_owned()),
        threads,
        batch_threads: threads,
        n_batch: batch,
        n_ubatch: batch,
        window,
        kv_type,
    }
}

/// The least that Linux sees of `gib` GiB.
const fn nominal(gib: u64) -> u64 {
    (gib << 30) / 6 * 5
}

/// More threads than this wait for memory, not for cores.
const MAX_THREADS: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sensors::{Cpu, Memory, ScriptedSensor};
    use proptest::prelude::*;

    const KIB: u64 = 1024;

    /// Name, `MemTotal` in KiB as such machines print it, logical and physical processors.
    fn profile(board: &str, mem_total_kib: u64, logical: u32, physical: u32) -> DeviceProfile {
        choose(&DeviceFacts {
            board: (!board.is_empty()).then(|| board.to_owned()),
            memory: Some(mem_total_kib * KIB),
            logical,
            physical: Some(physical),
        })
    }

    fn expect(name: &str, threads: u32, window: u32, batch: u32, kv_type: KvType) -> DeviceProfile {
        DeviceProfile {
            name: name.to_owned(),
            threads,
            batch_threads: threads,
            n_batch: batch,
            n_ubatch: batch,
            window,
            kv_type,
        }
    }

    #[test]
    fn small_raspberry_pis() {
        let zero = "Raspberry Pi Zero 2 W Rev 1.0";
        // The one that is sold has 512 MB; the table also answers for 1 GiB.
        assert_eq!(profile(zero, 437_000, 4, 4), expect(zero, 4, 2_048, 64, KvType::Q8_0));
        assert_eq!(profile(zero, 930_000, 4, 4), expect(zero, 4, 4_096, 64, KvType::F16));
    }

    #[test]
    fn raspberry_pi_5() {
        let pi = "Raspberry Pi 5 Model B Rev 1.0";
        assert_eq!(profile(pi, 4_146_752, 4, 4), expect(pi, 4, 8_192, 128, KvType::F16));
        assert_eq!(profile(pi, 8_256_192, 4, 4), expect(pi, 4, 8_192, 128, KvType::F16));
        assert_eq!(profile(pi, 2_070_000, 4, 4), expect(pi, 4, 4_096, 128, KvType::F16));
    }

    /// A Pi 4 of 4 GB whose firmware keeps 300 MB is one of 4 GiB all the same.
    #[test]
    fn what_the_firmware_keeps_does_not_count_against_a_board() {
        assert_eq!(profile("", 3_884_000, 4, 4).window, 8_192);
        assert_eq!(profile("", 3_400_000, 4, 4).window, 4_096);
    }

    #[test]
    fn jetson_orin_nano() {
        let jetson = "NVIDIA Jetson Orin Nano Developer Kit";
        assert_eq!(profile(jetson, 7_802_000, 6, 6), expect(jetson, 6, 8_192, 128, KvType::F16));
    }

    #[test]
    fn a_small_virtual_machine() {
        assert_eq!(profile("", 2_014_000, 2, 1), expect("generic", 1, 4_096, 128, KvType::F16));
        assert_eq!(profile("", 4_025_000, 2, 2), expect("generic", 2, 8_192, 128, KvType::F16));
    }

    #[test]
    fn a_large_server() {
        let server = profile("", 131_000_000, 64, 32);
        assert_eq!(server, expect("generic", 8, 8_192, 128, KvType::F16));
    }

    #[test]
    fn a_machine_that_tells_nothing_still_gets_a_profile() {
        let unknown = choose(&DeviceFacts::default());
        assert_eq!(unknown, expect("generic", 1, 4_096, 128, KvType::F16));
    }

    #[test]
    fn detection_asks_the_sensors() {
        let memory = Memory { total: 600 << 20, available: 1 };
        let profile = DeviceProfile::detect(
            &ScriptedSensor::new([Some(memory)]),
            &ScriptedSensor::new([Cpu { logical: 3, physical: None }]),
            &ScriptedSensor::new([Some("Board".to_owned())]),
        );
        assert_eq!(profile, expect("Board", 3, 2_048, 64, KvType::Q8_0));
    }

    fn facts() -> impl Strategy<Value = DeviceFacts> {
        let memory = proptest::option::of(0..1_u64 << 40);
        (memory, 0..200_u32, proptest::option::of(0..200_u32)).prop_map(
            |(memory, logical, physical)| DeviceFacts { board: None, memory, logical, physical },
        )
    }

    proptest! {
        #[test]
        fn every_machine_gets_usable_settings(facts in facts()) {
            let profile = choose(&facts);
            prop_assert!((1..=8).contains(&profile.threads));
            prop_assert!(profile.threads <= facts.logical.max(1));
            prop_assert!([2_048, 4_096, 8_192].contains(&profile.window));
            prop_assert!(profile.n_ubatch <= profile.n_batch && profile.n_batch <= profile.window);
        }

        #[test]
        fn more_memory_never_gives_less(facts in facts(), more in 0..1_u64 << 36) {
            let Some(memory) = facts.memory else { return Ok(()) };
            let larger = DeviceFacts { memory: Some(memory + more), ..facts.clone() };
            let small = choose(&facts);
            let large = choose(&larger);
            prop_assert!(small.window <= large.window && small.n_batch <= large.n_batch);
            prop_assert!(small.kv_type == KvType::Q8_0 || large.kv_type == KvType::F16);
        }
    }
}
