//! Faults around a conversation: power, room, companions, the user's haste, changes of
//! everything between two runs. On a scripted model and real files in memory.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail as tests do"
)]

mod answers;
mod changed;
mod forgotten;
mod full;
mod hurried;
mod overtaken;
mod power;
mod talk;
