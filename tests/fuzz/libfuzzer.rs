//! One of the targets under libFuzzer, which needs a nightly compiler and cargo-fuzz:
//!
//! ```text
//! cd tests && GARRET_FUZZ_TARGET=gguf_header cargo +nightly fuzz run target fuzz/found/gguf_header
//! ```
//!
//! The folder at the end is where libFuzzer keeps inputs that take new branches. What it finds to fail
//! goes to `corpus/TARGET/`, where every run of the tests reads it.

#![no_main]

mod targets;

use std::sync::LazyLock;

use targets::{ALL, Target};

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("GARRET_FUZZ_TARGET").unwrap_or_default();
    ALL.iter().find(|target| target.name == name).expect("GARRET_FUZZ_TARGET names a target")
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (TARGET.run)(bytes));
