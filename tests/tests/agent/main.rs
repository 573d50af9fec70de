//! Conversations of an agent whose model is scripted, so that every byte of a prompt can be read back.
//! A few end with the same claim on a real model or in the whole program.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail as tests do"
)]

mod compaction;
mod compare;
mod export;
mod hostile;
mod inference;
mod native;
mod recall;
mod rounds;
mod slot;
mod tools;
mod turn;
