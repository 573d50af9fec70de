//! Helpers of the cross-crate tests: a scripted model and its encoder, paths to real models, and
//! the program as a user runs it, with its output read strictly.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail as tests do"
)]

pub mod bytes;
pub mod cross_encoder;
pub mod dialogues;
pub mod disk;
pub mod models;
pub mod program;
pub mod recorder;
pub mod scripted;
pub mod talk;
pub mod terminal;
pub mod wire;
