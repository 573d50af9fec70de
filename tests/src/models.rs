//! Real models for tests, from the folder that `GARRET_TEST_MODELS` names.

use std::path::PathBuf;

/// The starter chat model.
pub const STARTER: &str = "SmolLM2-135M-Instruct-Q4_1.gguf";
/// A second family of tokenizers, without a chat template.
pub const GEMMA: &str = "gemma-3-270m-Q4_K_M.gguf";
/// The starter embedder.
pub const EMBEDDER: &str = "all-MiniLM-L6-v2-f16.gguf";

/// The path of a model; `None` and a loud word when this machine doesn't have it.
///
/// # Panics
/// When there is a folder of models and this one is missing from it: a test that doesn't run must
/// not pass for one that does. `GARRET_TEST_SKIP=1` says that it may be missing.
pub fn find(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("GARRET_TEST_MODELS").map(PathBuf::from);
    let path = folder.as_ref().map(|folder| folder.join(name)).filter(|path| path.exists());
    if path.is_none() {
        let may_be_missing = folder.is_none() || std::env::var_os("GARRET_TEST_SKIP").is_some();
        assert!(may_be_missing, "{name} is not in GARRET_TEST_MODELS: tests/run.sh fetches it");
        eprintln!("SKIPPED: {name} is not in GARRET_TEST_MODELS; tests/run.sh fetches it");
    }
    path
}
