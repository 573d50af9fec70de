//! Hardware abstraction: what Garret needs from the machine, behind the ports of `garret-core`.
//!
//! - [`clock`]: time, with a word on how far it can be believed.
//! - [`entropy`]: random bytes, from the kernel or from a seed.
//! - [`heap`]: freed memory is given back.
//! - [`kernels`]: dot products with the processor's own instructions.
//! - [`media`]: where bytes are kept: a file, memory, or a medium that loses power on purpose.
//! - [`sensors`]: memory, heat, pressure, disk, processors, board; a scripted fake beside each.
//! - [`profile`]: settings for the model that suit this machine.
//!
//! Everything that decides something is a pure function beside the thin code that asks the kernel,
//! so a test replays any machine, any power cut and any hour.
//!
//! ```
//! use garret_core::medium::Medium;
//! use garret_core::time::Clock;
//! use garret_hal::clock::SystemClock;
//! use garret_hal::media::RamMedium;
//! use garret_hal::profile::DeviceProfile;
//! use garret_hal::sensors::Machine;
//!
//! let machine = Machine::new();
//! let profile = DeviceProfile::detect(&machine, &machine, &machine);
//! println!("{}: {} threads, {} tokens", profile.name, profile.threads, profile.window);
//!
//! let medium = RamMedium::new();
//! medium.write_at(0, &SystemClock::new().wall().unix_ms.to_le_bytes())?;
//! medium.sync()?;
//! # Ok::<(), garret_core::medium::MediumError>(())
//! ```
//!
//! # Dependencies
//! - `garret-core`: the ports implemented here.
//! - `getrandom`: the kernel's random bytes on every Linux, without unsafe code of ours.
//! - `half`: half-precision numbers to and from `f32`, by the processor where it can.
//! - `libc` (glibc only): `mallopt`, which nothing else offers.
//! - `memmap2`: files mapped for reading, without our own calls of `mmap`.
//! - `simsimd` (x86_64 only): the dot product of halves.
//! - `rustix`: `statvfs`, which the standard library lacks, and names for error numbers.
//! - `thiserror`: error messages beside the errors.
//!
//! Unsafe code is in three places, with its proofs: the kernels, the mapping of a file, and the
//! settings of the heap.
//!
//! Limits: Linux only. Nothing here needs a network, root, or a device file.

#![deny(unsafe_code)]

pub mod clock;
pub mod entropy;
pub mod heap;
#[allow(unsafe_code)]
pub mod kernels;
pub mod media;
pub mod output;
pub mod profile;
pub mod sensors;

mod mix;
mod tree;
