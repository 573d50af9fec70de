//! A model and a window, checked before the weights are loaded.

use std::path::{Path, PathBuf};

use garret_hal::sensors::MemorySensor;
use garret_llm::check::{ChatModelInfo, check_chat};
use garret_llm::encoder::Encoder;
use garret_llm::estimate::MemoryEstimate;
use garret_llm::{LlamaChat, Model};

use super::error::{AgentOpenError, STARTER, mib};
use super::load::load;
use super::readers::readers_need;
use super::roles::{self, RolePlan};
use super::window::window;
use crate::agent;
use crate::config::Config;

/// A model and a window that were checked from the file's header alone.
#[derive(Debug)]
pub struct Plan {
    /// The model file.
    pub path: PathBuf,
    /// The header of the model file, as far as it was read.
    pub info: ChatModelInfo,
    /// The window, in tokens.
    pub n_ctx: u32,
    /// The memory that the model is going to take.
    pub need: MemoryEstimate,
    /// Companions with models of their own.
    pub roles: Vec<RolePlan>,
    /// Bytes of memory that the embedder and the reranker are going to take, if there are any that
    /// can be used.
    pub readers_need: u64,
}

impl Plan {
    /// Finds the model and chooses the window; see [`window`].
    ///
    /// # Errors
    /// [`AgentOpenError`] about the file, the window or the length of replies.
    pub fn new(config: &Config) -> Result<Self, AgentOpenError> {
        let path = match &config.model.value {
            Some(path) => path.clone(),
            None => starter(&config.models_dir.value)?,
        };
        let info = check_chat(&path)?;
        let n_ctx = window(config, info.context_length)?;
        agent::budget(n_ctx, config.max_tokens.value, config.memory_tokens.value)?;
        let need = MemoryEstimate::of(&info.gguf, n_ctx, config.kv_type.value, config.batch.value);
        let roles = roles::plan(config, &path)?;
        let readers_need = readers_need(config);
        Ok(Self { path, info, n_ctx, need, roles, readers_need })
    }

    /// Returns the bytes of memory that the companions' own models are going to take.
    pub fn roles_need(&self) -> u64 {
        let needs = self.roles.iter().filter_map(|role| role.need);
        needs.fold(0, |sum, need| sum.saturating_add(need.total()))
    }

    /// Returns the bytes of memory that all models together are going to take.
    pub fn total_need(&self) -> u64 {
        let others = self.roles_need().saturating_add(self.readers_need);
        self.need.total().saturating_add(others)
    }

    /// Checks that `machine` has the memory.
    ///
    /// # Errors
    /// [`AgentOpenError::Memory`] with the figures.
    pub fn fits(&self, machine: &dyn MemorySensor) -> Result<(), AgentOpenError> {
        let Some(memory) = machine.memory() else { return Ok(()) };
        if self.total_need() <= memory.available {
            return Ok(());
        }
        Err(AgentOpenError::Memory {
            path: self.path.clone(),
            n_ctx: self.n_ctx,
            need: mib(self.total_need()),
            weights: mib(self.need.weights),
            kv: mib(self.need.kv),
            roles: mib(self.roles_need()),
            readers: mib(self.readers_need),
            available: mib(memory.available),
        })
    }

    /// Loads the model and makes its context.
    ///
    /// # Errors
    /// [`AgentOpenError`] about the model or its template.
    pub fn load(&self, config: &Config) -> Result<(LlamaChat, Encoder<Model>), AgentOpenError> {
        load(&self.path, &self.info, self.n_ctx, config)
    }
}

fn starter(models_dir: &Path) -> Result<PathBuf, AgentOpenError> {
    let path = models_dir.join(STARTER);
    if path.exists() {
        Ok(path)
    } else {
        Err(AgentOpenError::NoModel { models_dir: models_dir.into() })
    }
}
