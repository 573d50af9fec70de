//! The reasons for which there is no agent.

use std::path::PathBuf;

use garret_core::budget::BudgetError;
use garret_llm::LoadError;
use garret_llm::check::CheckError;
use garret_llm::template::TemplateError;
use garret_storage::OpenError;

use crate::agent::AgentError;

/// Says what others take beside the chat model.
fn beside(mib: u64, who: &str) -> String {
    if mib == 0 { String::new() } else { format!(", {mib} for {who}") }
}

/// The reason for which there is no agent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentOpenError {
    /// No model was named and the starter model isn't there.
    #[error(
        "there is no chat model: give --model FILE (or GARRET_MODEL), or run examples/quickstart.sh, \
         which puts {STARTER} into {}",
        .models_dir.display()
    )]
    NoModel {
        /// The folder in which it was looked for.
        models_dir: PathBuf,
    },
    /// The file can't be used as a chat model.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// The model's own window is too small.
    #[error(
        "this model was trained for {trained} tokens, and Garret needs a window of at least 2048: \
         choose another model"
    )]
    ModelWindow {
        /// Tokens the model was trained for.
        trained: u32,
    },
    /// The window can't be divided as asked.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The window is larger than the model's.
    #[error(
        "a window of {wanted} tokens is more than the {trained} this model was trained for: \
         ask for at most {trained} (--window)"
    )]
    Window {
        /// Tokens asked for.
        wanted: u32,
        /// Tokens the model was trained for.
        trained: u32,
    },
    /// The machine has too little free memory.
    #[error(
        "{} with a window of {n_ctx} tokens needs about {need} MiB of memory ({weights} weights, \
         {kv} KV cache{}{}), but {available} MiB are free: choose a smaller window (--window), \
         --kv-type q8_0 or a smaller model, or free memory",
        .path.display(),
        beside(*.roles, "the companions' own models"),
        beside(*.readers, "embedder and reranker")
    )]
    Memory {
        /// The model file.
        path: PathBuf,
        /// The window, in tokens.
        n_ctx: u32,
        /// Memory needed in all, in MiB.
        need: u64,
        /// MiB of that for the weights.
        weights: u64,
        /// MiB of that for the KV cache.
        kv: u64,
        /// MiB of that for companions with models of their own.
        roles: u64,
        /// MiB of that for the embedder and the reranker.
        readers: u64,
        /// Free memory, in MiB.
        available: u64,
    },
    /// A companion's own model can't be used.
    #[error("--{key}: {source}")]
    Role {
        /// The flag that names it.
        key: String,
        /// The reason for which it can't be used.
        source: Box<AgentOpenError>,
    },
    /// The file can't be read.
    #[error("{}: can't be read: {reason}", .path.display())]
    Unreadable {
        /// The model file.
        path: PathBuf,
        /// The system's words.
        reason: std::io::Error,
    },
    /// llama.cpp can't load the model.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The model's chat template can't be used.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The store can't be opened.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The settings don't fit together.
    #[error(transparent)]
    Agent(#[from] AgentError),
}

/// File name of the model that the quick start fetches.
pub const STARTER: &str = "SmolLM2-135M-Instruct-Q4_1.gguf";

/// Returns `bytes` in whole MiB, rounded up.
pub const fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}
