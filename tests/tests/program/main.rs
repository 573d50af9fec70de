//! The program as a user runs it: arguments, keys, lines, signals, what it prints and its status.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail as tests do"
)]

mod catch_up;
mod chat_script;
mod chat_terminal;
mod examples;
mod manual;
mod memory;
mod memory_facts;
mod memory_forget;
mod refusals;
mod resume;
mod sessions;
