//! From a configuration to an agent on llama.cpp: every check that can be made before the model is
//! loaded is made before, so that a wrong file, window or machine gets a sentence.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use garret_core::medium::{Medium, MediumError};
use garret_hal::clock::SystemClock;
use garret_hal::entropy::SystemEntropy;
use garret_hal::media::FileMedium;
use garret_hal::sensors::{Machine, MemorySensor};
use garret_llm::check::{ChatModelInfo, CheckError, check_chat};
use garret_llm::encoder::Encoder;
use garret_llm::estimate::MemoryEstimate;
use garret_llm::template::{ChatTemplate, TemplateError};
use garret_llm::vocab::Vocabulary;
use garret_llm::{Backend, ChatOptions, LlamaChat, LoadError, Model, ModelOptions};
use garret_storage::{NamespaceError, OpenError, Store, file_name};

use crate::agent::{Agent, AgentError, Options, Parts};
use crate::config::Config;
use crate::fingerprint;

/// An agent with the sources of time and randomness it shares.
pub struct Opened {
    /// The agent.
    pub agent: Agent<LlamaChat, Encoder<Model>>,
    /// Its clock.
    pub clock: Arc<SystemClock>,
    /// Its entropy.
    pub entropy: Arc<SystemEntropy>,
}

/// Opens what `config` describes.
///
/// # Errors
/// [`AgentOpenError`] says what to change.
pub fn agent(config: &Config) -> Result<Opened, AgentOpenError> {
    let plan = Plan::new(config)?;
    plan.fits(&Machine::new())?;
    let store = store(config)?;
    let (model, encoder) = plan.load(config)?;
    let (clock, entropy) = (Arc::new(SystemClock::new()), Arc::new(SystemEntropy));
    let options = Options {
        system_prompt: config.system_prompt.value.clone(),
        max_tokens: config.max_tokens.value,
        sampling: config.sampling(0),
        draw_seed: config.seed.value.is_none(),
    };
    let parts = Parts { model, encoder, store, clock: clock.clone(), entropy: entropy.clone() };
    let agent = Agent::new(parts, options)?;
    Ok(Opened { agent, clock, entropy })
}

/// Opens the store of the configured namespace, making what isn't there.
///
/// # Errors
/// [`OpenError`].
pub fn store(config: &Config) -> Result<Store, OpenError> {
    Store::open(&config.data.value, &config.namespace.value, file_medium)
}

/// Opens the store of the configured namespace if there is one.
///
/// # Errors
/// [`NoStore`], also when there is none.
pub fn existing_store(config: &Config) -> Result<Store, NoStore> {
    let data = &config.data.value;
    let namespace = config.namespace.value.clone();
    if !data.join(file_name(&namespace)?).exists() {
        return Err(NoStore::Missing { namespace, data: data.clone() });
    }
    Ok(store(config)?)
}

/// Why there is no store to look into.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoStore {
    /// Nothing was ever said in it.
    #[error(
        "nothing is stored for namespace `{namespace}` in {}: check --data and --namespace",
        .data.display()
    )]
    Missing {
        /// The namespace.
        namespace: String,
        /// Where it was looked for.
        data: PathBuf,
    },
    /// Its name can't be used.
    #[error(transparent)]
    Name(#[from] NamespaceError),
    /// It can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// A model and a window that were checked from the file's header alone.
#[derive(Debug)]
pub struct Plan {
    /// The model file.
    pub path: PathBuf,
    /// What it says of itself.
    pub info: ChatModelInfo,
    /// The window, in tokens.
    pub n_ctx: u32,
    /// The memory it is going to take.
    pub need: MemoryEstimate,
}

impl Plan {
    /// Finds the model and settles the window: the configured one, or the device's but no more than
    /// the model was trained for.
    ///
    /// # Errors
    /// [`AgentOpenError`] about the file or the window.
    pub fn new(config: &Config) -> Result<Self, AgentOpenError> {
        let path = match &config.model.value {
            Some(path) => path.clone(),
            None => starter(&config.models_dir.value)?,
        };
        let info = check_chat(&path)?;
        let trained = info.context_length;
        let wanted = config.window.value.unwrap_or(trained);
        let chosen = !matches!(config.window.origin, crate::config::Origin::Device(_));
        if chosen && wanted > trained {
            return Err(AgentOpenError::Window { wanted, trained });
        }
        let n_ctx = wanted.min(trained);
        let need = MemoryEstimate::of(&info.gguf, n_ctx, config.kv_type.value, config.batch.value);
        Ok(Self { path, info, n_ctx, need })
    }

    /// Whether `machine` has the memory.
    ///
    /// # Errors
    /// [`AgentOpenError::Memory`] with the figures.
    pub fn fits(&self, machine: &dyn MemorySensor) -> Result<(), AgentOpenError> {
        let Some(memory) = machine.memory() else { return Ok(()) };
        if self.need.fits(memory.available) {
            return Ok(());
        }
        Err(AgentOpenError::Memory {
            path: self.path.clone(),
            n_ctx: self.n_ctx,
            need: mib(self.need.total()),
            weights: mib(self.need.weights),
            kv: mib(self.need.kv),
            available: mib(memory.available),
        })
    }

    /// Loads the model and makes its context.
    ///
    /// # Errors
    /// [`AgentOpenError`] about the model or its template.
    pub fn load(&self, config: &Config) -> Result<(LlamaChat, Encoder<Model>), AgentOpenError> {
        let fingerprint = fingerprint::of_file(&self.path, &config.data.value)
            .map_err(|reason| AgentOpenError::Unreadable { path: self.path.clone(), reason })?;
        let backend = Backend::start()?;
        let options = ModelOptions { gpu_layers: config.gpu_layers.value, use_mmap: true };
        let model = Model::load(backend, &self.path, options)?;
        let template = ChatTemplate::compile(&self.info.chat_template, &model.specials())?;
        let encoder = Encoder::new(Arc::clone(&model), template);
        let options = ChatOptions {
            n_ctx: self.n_ctx,
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
}

/// Why there is no agent.
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
        /// Where it was looked for.
        models_dir: PathBuf,
    },
    /// The file can't be used as a chat model.
    #[error(transparent)]
    Check(#[from] CheckError),
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
         {kv} KV cache), but {available} MiB are free: choose a smaller window (--window), \
         --kv-type q8_0 or a smaller model, or free memory",
        .path.display()
    )]
    Memory {
        /// The model file.
        path: PathBuf,
        /// The window, in tokens.
        n_ctx: u32,
        /// Needed in all, in MiB.
        need: u64,
        /// Of that, the weights.
        weights: u64,
        /// Of that, the KV cache.
        kv: u64,
        /// What is free, in MiB.
        available: u64,
    },
    /// The file can't be read.
    #[error("{}: can't be read: {reason}", .path.display())]
    Unreadable {
        /// The model file.
        path: PathBuf,
        /// The system's words.
        reason: std::io::Error,
    },
    /// llama.cpp can't load it.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Its chat template can't be used.
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

fn starter(models_dir: &Path) -> Result<PathBuf, AgentOpenError> {
    let path = models_dir.join(STARTER);
    if path.exists() {
        Ok(path)
    } else {
        Err(AgentOpenError::NoModel { models_dir: models_dir.into() })
    }
}

fn file_medium(path: &Path) -> Result<Box<dyn Medium>, MediumError> {
    Ok(Box::new(FileMedium::open(path)?))
}

/// Whole MiB, rounded up.
pub(crate) const fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}
