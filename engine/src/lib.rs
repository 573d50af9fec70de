//! Garret: a local model that remembers.
//!
//! [`agent::Agent`] is the turn loop. It makes a message durable, assembles a prompt of exactly
//! counted tokens, runs the model, and makes the reply durable with a receipt. [`open::agent`]
//! builds one on llama.cpp from a [`config::Config`]; feature `cli` adds the program.
//!
//! Why the dependencies are here: `garret-core`, `garret-hal`, `garret-llm` and `garret-storage` are
//! the other parts of Garret; `smol` runs the turn loop and the signal task; `serde`, `serde_json`
//! and `postcard` write receipts for the wire and for the store; `toml` reads the configuration
//! file; `regex-lite` finds patterns in linear time; `strsim` finds the key that was meant; `jiff` turns times into dates; `thiserror` derives
//! error messages; `tracing` carries log lines; `sha2` tells whether a prompt may begin as it did. For the program alone: `clap` (arguments),
//! `rustyline` (line editing), `indicatif` (a bar while much is imported), `async-signal` (Ctrl-C as a stream), `rustix` (restoring the
//! terminal), `unicode-width` (columns of text), `tracing-subscriber` (log lines to stderr).

#![forbid(unsafe_code)]

pub mod ab;
pub mod agent;
#[cfg(feature = "cli")]
pub mod cli;
mod compact;
pub mod companion;
pub mod config;
pub mod device;
pub mod embed;
pub mod export;
pub mod fingerprint;
pub mod infer;
mod local_time;
pub mod manual;
pub mod names;
pub mod open;
pub mod perceive;
pub mod receipt;
pub mod rerank;
mod tame;
pub mod tools;
pub mod trace;
