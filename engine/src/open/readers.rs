//! The models that read texts for search: the embedder and the reranker.

use std::path::PathBuf;
use std::sync::Arc;

use garret_core::model::KvType;
use garret_hal::kernels;
use garret_llm::check::{check_embedder, check_reranker};
use garret_llm::estimate::MemoryEstimate;
use garret_llm::gguf::Gguf;
use garret_llm::{Backend, Embedder, ModelOptions, PoolingOptions, Reranker};
use garret_storage::Store;

use super::error::AgentOpenError;
use super::load::fingerprint_of;
use crate::config::{Config, EmbedderChoice};
use crate::embed::{self, Embed};

/// Returns the file of the configured embedder; `None` when there is to be none.
pub fn embedder_file(config: &Config) -> Option<PathBuf> {
    match &config.embedder.value {
        EmbedderChoice::Off => None,
        EmbedderChoice::File(path) => Some(path.clone()),
        EmbedderChoice::Auto => {
            Some(config.models_dir.value.join(STARTER_EMBEDDER)).filter(|path| path.exists())
        }
    }
}

/// Loads the configured embedder, if there is to be one.
///
/// # Errors
/// [`AgentOpenError`] about its file.
pub fn embedder(config: &Config) -> Result<Option<Embedder>, AgentOpenError> {
    let Some(path) = embedder_file(config) else { return Ok(None) };
    check_embedder(&path)?;
    let fingerprint = fingerprint_of(&path, config)?;
    let options = PoolingOptions {
        threads: config.batch_threads.value,
        model: ModelOptions { gpu_layers: config.gpu_layers.value, use_mmap: true },
        ..PoolingOptions::default()
    };
    let embedder = Embedder::load(Backend::start()?, &path, options)?;
    Ok(Some(embedder.with_fingerprint(fingerprint)))
}

/// Loads the configured embedder and tells `store` that its vectors are this one's. An embedder
/// that wasn't asked for by name and fails is done without.
///
/// # Errors
/// [`AgentOpenError`] about the file of one that was asked for.
pub fn attached_embedder(
    config: &Config,
    store: &Store,
) -> Result<Option<Arc<dyn Embed>>, AgentOpenError> {
    let asked = matches!(config.embedder.value, EmbedderChoice::File(_));
    let embedder = match embedder(config) {
        Ok(Some(embedder)) => embedder,
        Ok(None) => return Ok(None),
        Err(error) if asked => return Err(error),
        Err(error) => {
            tracing::warn!(%error, "search goes by words alone");
            return Ok(None);
        }
    };
    if let Err(error) = embed::attach(store, &embedder, kernels::detect()) {
        tracing::warn!(%error, "search goes by words alone");
        return Ok(None);
    }
    Ok(Some(Arc::new(embedder)))
}

/// Loads the configured reranker, if there is one.
///
/// # Errors
/// [`AgentOpenError`] about its file.
pub fn reranker(config: &Config) -> Result<Option<Reranker>, AgentOpenError> {
    let Some(path) = &config.reranker.value else { return Ok(None) };
    let options = PoolingOptions {
        threads: config.batch_threads.value,
        model: ModelOptions { gpu_layers: config.gpu_layers.value, use_mmap: true },
        ..PoolingOptions::default()
    };
    Ok(Some(Reranker::load(Backend::start()?, path, options)?))
}

/// Returns the bytes of memory that the configured embedder and reranker are going to take. A file
/// that can't be used counts for nothing here and is an error when it is loaded.
pub fn readers_need(config: &Config) -> u64 {
    let embedder = embedder_file(config).and_then(|path| check_embedder(&path).ok());
    let embedder = embedder.map(|info| (info.gguf, PoolingOptions::default().max_tokens));
    let reranker = config.reranker.value.as_ref().and_then(|path| check_reranker(path).ok());
    let reranker = reranker.map(|info| (info.gguf, PoolingOptions::default().max_tokens));
    let needs = embedder.into_iter().chain(reranker).map(|(gguf, most)| reader_need(&gguf, most));
    needs.fold(0, u64::saturating_add)
}

/// Returns the bytes of memory of a model that reads texts of at most `most` tokens, one at a time.
pub fn reader_need(gguf: &Gguf, most: u32) -> u64 {
    MemoryEstimate::of(gguf, most, KvType::F16, most).total()
}

/// File name of the embedder that the quick start fetches.
pub const STARTER_EMBEDDER: &str = "all-MiniLM-L6-v2-f16.gguf";
