//! Real models for tests, from the folder that `GARRET_TEST_MODELS` names.

use std::path::{Path, PathBuf};

use garret::config::{Config, Home, Sources};

/// The starter chat model.
pub const STARTER: &str = "SmolLM2-135M-Instruct-Q4_1.gguf";
/// A second family of tokenizers, without a chat template.
pub const GEMMA: &str = "gemma-3-270m-Q4_K_M.gguf";
/// The starter embedder.
pub const EMBEDDER: &str = "all-MiniLM-L6-v2-f16.gguf";
/// A small model whose template knows tools; not fetched by anything.
pub const QWEN_SMALL: &str = "Qwen2.5-Coder-0.5B-Instruct-Q4_K_M.gguf";
/// A larger one of the same family.
pub const QWEN: &str = "Qwen2.5-Coder-1.5B-Instruct-Q4_K_M.gguf";

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

/// The path of a model that nothing fetches; `None` and a loud word when this machine doesn't have it.
pub fn find_optional(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("GARRET_TEST_MODELS").map(PathBuf::from);
    let path = folder.map(|folder| folder.join(name)).filter(|path| path.exists());
    if path.is_none() {
        eprintln!("SKIPPED: {name} is not in GARRET_TEST_MODELS: put it there by hand to test it");
    }
    path
}

/// The configuration of `model` on one thread, without randomness, with everything in `data` and
/// these `settings` beside it.
///
/// # Panics
/// When a setting can't be used.
pub fn config(model: &Path, data: &Path, settings: &[(&'static str, &str)]) -> Config {
    let folder = data.display().to_string();
    let usual = [
        ("data", folder.as_str()),
        ("models_dir", &folder),
        ("model", model.to_str().expect("paths of tests are Unicode")),
        ("temperature", "0"),
        ("threads", "1"),
        ("batch_threads", "1"),
    ];
    let flags = usual.into_iter().chain(settings.iter().copied());
    let flags = flags.map(|(key, value)| (key, value.to_owned())).collect();
    let home = Home::from_environment(|_| None);
    Config::resolve(Sources { flags, home, ..Sources::default() }).expect("the settings are valid")
}
