//! Claims that only a real model can prove: its tokenizer, its template, its cache, its replies.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail as tests do"
)]

mod budget;
mod companions;
mod embedding;
mod gate;
mod meaning;
mod reranking;
mod roles;
mod slot;
