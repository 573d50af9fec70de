//! Loading a model that was checked.

use std::path::Path;
use std::sync::Arc;

use garret_llm::check::ChatModelInfo;
use garret_llm::encoder::Encoder;
use garret_llm::template::ChatTemplate;
use garret_llm::vocab::Vocabulary;
use garret_llm::{Backend, ChatOptions, LlamaChat, Model, ModelOptions};

use super::error::AgentOpenError;
use super::fingerprint;
use crate::config::Config;

/// Loads a model that was checked and makes a context of `n_ctx` tokens.
pub(super) fn load(
    path: &Path,
    info: &ChatModelInfo,
    n_ctx: u32,
    config: &Config,
) -> Result<(LlamaChat, Encoder<Model>), AgentOpenError> {
    let fingerprint = fingerprint_of(path, config)?;
    let backend = Backend::start()?;
    let options = ModelOptions { gpu_layers: config.gpu_layers.value, use_mmap: true };
    let model = Model::load(backend, path, options)?;
    context(model, info, fingerprint, n_ctx, config)
}

/// Makes a context of `n_ctx` tokens on a model that is loaded.
pub(super) fn context(
    model: Arc<Model>,
    info: &ChatModelInfo,
    fingerprint: [u8; 32],
    n_ctx: u32,
    config: &Config,
) -> Result<(LlamaChat, Encoder<Model>), AgentOpenError> {
    let template = ChatTemplate::compile(&info.chat_template, &model.specials())?;
    let encoder = Encoder::new(Arc::clone(&model), template);
    let options = ChatOptions {
        n_ctx,
        n_batch: config.batch.value,
        n_ubatch: config.batch.value,
        threads: config.threads.value,
        batch_threads: config.batch_threads.value,
        kv: config.kv_type.value,
        flash_attention: None,
        fingerprint,
    };
    Ok((LlamaChat::spawn(model, options)?, encoder))
}

/// Returns the SHA-256 of a model file, from memory where the file is as it was.
pub(super) fn fingerprint_of(path: &Path, config: &Config) -> Result<[u8; 32], AgentOpenError> {
    fingerprint::of_file(path, &config.data.value)
        .map_err(|reason| AgentOpenError::Unreadable { path: path.into(), reason })
}
