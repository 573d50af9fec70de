//! Real models for tests, from the folder that `GARRET_TEST_MODELS` names.

use std::path::PathBuf;

/// The starter chat model.
pub const STARTER: &str = "SmolLM2-135M-Instruct-Q4_1.gguf";
/// A second family of tokenizers, without a chat template.
pub const GEMMA: &str = "gemma-3-270m-Q4_K_M.gguf";
/// The starter embedder.
pub const EMBEDDER: &str = "all-MiniLM-L6-v2-f16.gguf";

/// The path of a model, or `None` and a loud word when this machine doesn't have it.
pub fn find(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("GARRET_TEST_MODELS");
    let path = folder.map(|folder| PathBuf::from(folder).join(name)).filter(|path| path.exists());
    if path.is_none() {
        eprintln!(
            "SKIPPED: {name} is not in GARRET_TEST_MODELS; run tests/run.sh, which fetches it"
        );
    }
    path
}
