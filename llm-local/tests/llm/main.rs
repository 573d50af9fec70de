//! The tests of this crate as one program, since each program links llama.cpp: small files of their own
//! making, and the test models where `GARRET_TEST_MODELS` has them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod embed;
mod encoder;
mod gguf_check;
mod gguf_estimate;
mod gguf_reader;
mod runtime_errors;
mod runtime_rebase;
mod runtime_reuse;
mod runtime_roles;
mod runtime_sampling;
mod runtime_state;
mod runtime_stop;
mod runtime_swa;
mod support;
mod template_golden;
mod template_hostile;
mod template_tokens;
mod template_tools;
