//! Proof that garret-core decides without an allocator: runs [`scenario`] and exits with 0, or with
//! the number of the check that failed.
//!
//! There are two builds of it, and `tests/noalloc/check.sh` runs both:
//!
//! - `cargo build --profile freestanding -p garret-noalloc`: `no_std`, `no_main`, x86_64 Linux, its
//!   own panic handler, nothing but libc. If anything below it needed `std`, or `alloc`, it
//!   wouldn't link.
//! - In every other profile, and for other targets, it has `std` and an allocator that counts: any
//!   allocation by the scenario is exit code 255.
//!
//! Why a profile: stable Rust makes a program without `std` only with `panic = "abort"`, a profile
//! can't set that for one package, and the engine needs panics that unwind.
//!
//! The feature `_leak` allocates once and must break either build.

#![cfg_attr(all(panic = "abort", target_arch = "x86_64", target_os = "linux"), no_std, no_main)]

#[cfg(all(panic = "abort", target_arch = "x86_64", target_os = "linux"))]
mod freestanding;
#[cfg(not(all(panic = "abort", target_arch = "x86_64", target_os = "linux")))]
mod hosted;
mod scenario;

#[cfg(not(all(panic = "abort", target_arch = "x86_64", target_os = "linux")))]
fn main() -> std::process::ExitCode {
    hosted::run()
}
