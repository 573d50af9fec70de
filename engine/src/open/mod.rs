//! From a configuration to an agent on llama.cpp: every check that can be made before the model is
//! loaded is made before, so that a wrong file, window or machine gets a sentence.

mod roles;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use garret_core::budget::{Budget, BudgetError};
use garret_core::medium::{Medium, MediumError};
use garret_core::model::{ChatModel as _, KvType, ModelFacts};
use garret_core::time::{Clock, Entropy};
use garret_hal::clock::SystemClock;
use garret_hal::entropy::SystemEntropy;
use garret_hal::kernels;
use garret_hal::media::FileMedium;
use garret_hal::sensors::{Machine, MemorySensor};
use garret_llm::check::{ChatModelInfo, CheckError, check_chat, check_embedder, check_reranker};
use garret_llm::encoder::Encoder;
use garret_llm::estimate::MemoryEstimate;
use garret_llm::gguf::Gguf;
use garret_llm::template::{ChatTemplate, TemplateError};
use garret_llm::vocab::Vocabulary;
use garret_llm::{
    Backend, ChatOptions, Embedder, LlamaChat, LoadError, Model, ModelOptions, PoolingOptions,
    Reranker,
};
use garret_storage::{NamespaceError, OpenError, Store, file_name};

use crate::agent::{Agent, AgentError, Options, Parts};
use crate::config::{Config, EmbedderChoice, Origin, Switch};
use crate::embed::{self, Embed};
use crate::fingerprint;

pub use roles::RolePlan;

/// An agent on llama.cpp.
pub type LocalAgent = Agent<LlamaChat, Encoder<Model>>;

/// Opens what `config` describes, on the system's clock and entropy.
///
/// # Errors
/// [`AgentOpenError`] says what to change.
pub fn agent(config: &Config) -> Result<LocalAgent, AgentOpenError> {
    prepare(config)?.load(config, Arc::new(SystemClock::new()), Arc::new(SystemEntropy))
}

/// Checks everything that can be checked without the weights, and opens the store.
///
/// # Errors
/// [`AgentOpenError`] says what to change.
pub fn prepare(config: &Config) -> Result<Prepared, AgentOpenError> {
    let plan = Plan::new(config)?;
    plan.fits(&Machine::new())?;
    Ok(Prepared { plan, store: store(config)? })
}

/// Checks and opens as [`prepare`] does, for two contexts of the model: see
/// [`Prepared::load_two`].
///
/// # Errors
/// [`AgentOpenError`] says what to change.
pub fn prepare_two(config: &Config) -> Result<Prepared, AgentOpenError> {
    let mut plan = Plan::new(config)?;
    plan.need.kv = plan.need.kv.saturating_mul(2);
    plan.need.compute = plan.need.compute.saturating_mul(2);
    plan.fits(&Machine::new())?;
    Ok(Prepared { plan, store: store(config)? })
}

/// A model that can be loaded, and an open store.
#[derive(Debug)]
pub struct Prepared {
    /// The model.
    pub plan: Plan,
    /// The store.
    pub store: Store,
}

impl Prepared {
    /// Loads the model and makes the agent.
    ///
    /// # Errors
    /// [`AgentOpenError`] about the model, its template or the system prompt.
    pub fn load(
        self,
        config: &Config,
        clock: Arc<dyn Clock + Send + Sync>,
        entropy: Arc<dyn Entropy + Send + Sync>,
    ) -> Result<LocalAgent, AgentOpenError> {
        let loaded = self.plan.load(config)?;
        self.agent(config, loaded, clock, entropy)
    }

    /// Loads the model once, makes the agent, and makes a second context with a KV cache of its own
    /// for whatever the agent is to be compared with.
    ///
    /// # Errors
    /// As [`Prepared::load`].
    pub fn load_two(
        self,
        config: &Config,
        clock: Arc<dyn Clock + Send + Sync>,
        entropy: Arc<dyn Entropy + Send + Sync>,
    ) -> Result<(LocalAgent, SecondContext), AgentOpenError> {
        let (model, encoder) = self.plan.load(config)?;
        let facts = model.facts();
        let (other, its_encoder) = context(
            Arc::clone(model.model()),
            &self.plan.info,
            facts.fingerprint,
            facts.n_ctx,
            config,
        )?;
        let options = options(config, &model);
        let second = SecondContext { model: other, encoder: its_encoder, options };
        Ok((self.agent(config, (model, encoder), clock, entropy)?, second))
    }

    fn agent(
        self,
        config: &Config,
        (model, encoder): (LlamaChat, Encoder<Model>),
        clock: Arc<dyn Clock + Send + Sync>,
        entropy: Arc<dyn Entropy + Send + Sync>,
    ) -> Result<LocalAgent, AgentOpenError> {
        let own = roles::load_all(&self.plan.roles, config)?;
        let options = options(config, &model);
        let embedder = ready(config, &self.store)?;
        let reranker = reranker(config)?;
        let store = Arc::new(self.store);
        let parts = Parts { model, encoder, store, embedder, clock, entropy };
        let agent = Agent::new(parts, options)?;
        let agent = own
            .into_iter()
            .fold(agent, |agent, (companion, own)| agent.with_own_model(companion, own));
        Ok(match reranker {
            Some(reranker) => agent.with_reranker(Arc::new(reranker)),
            None => agent,
        })
    }
}

/// A second context of an agent's model; see [`Prepared::load_two`].
#[derive(Debug)]
pub struct SecondContext {
    /// The model, on the same weights and with a KV cache of its own.
    pub model: LlamaChat,
    /// Encodes its prompts.
    pub encoder: Encoder<Model>,
    /// The agent's settings.
    pub options: Options,
}

/// The settings of an agent on `model`, as `config` has them.
pub fn options(config: &Config, model: &LlamaChat) -> Options {
    Options {
        system_prompt: config.system_prompt.value.as_str().into(),
        max_tokens: config.max_tokens.value,
        memory_tokens: config.memory_tokens.value,
        compact_at: config.compact_at.value,
        show_time: config.show_time.value,
        sampling: config.sampling(0),
        draw_seed: config.seed.value.is_none(),
        companions: config.companions.value,
        companion_size: config.companion_schema.value,
        tools: uses_tools(config, model.facts()),
        tool_protocol: config.tool_protocol.value,
    }
}

/// Whether a model is told of tools. One of less than about three billion parameters doesn't use them well,
/// and where the window is small what they find has no room.
pub fn uses_tools(config: &Config, model: ModelFacts) -> bool {
    match config.tools.value {
        Switch::On => true,
        Switch::Off => false,
        Switch::Auto => {
            let large = model.parameters.is_some_and(|parameters| parameters >= TOOLS_PARAMETERS);
            large && model.n_ctx >= TOOLS_WINDOW
        }
    }
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
    let file = data.join(file_name(&namespace)?);
    match file.try_exists() {
        Ok(true) => {}
        Ok(false) => return Err(NoStore::Missing { namespace, data: data.clone() }),
        Err(reason) => return Err(NoStore::Unreachable { file, reason }),
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
    /// Whether there is one can't be told.
    #[error("{}: can't be reached: {reason}", .file.display())]
    Unreachable {
        /// Where it would be.
        file: PathBuf,
        /// The system's words.
        reason: std::io::Error,
    },
    /// Its name can't be used.
    #[error(transparent)]
    Name(#[from] NamespaceError),
    /// It can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// The file of the configured embedder; `None` when there is to be none.
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

/// The configured embedder, with `store` knowing that its vectors are this one's. One that wasn't
/// asked for by name and fails is done without.
///
/// # Errors
/// [`AgentOpenError`] about the file of one that was asked for.
pub fn ready(config: &Config, store: &Store) -> Result<Option<Arc<dyn Embed>>, AgentOpenError> {
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

/// Bytes of memory that the configured embedder and reranker are going to take. One that can't be used
/// is told of when it is loaded.
pub fn readers_need(config: &Config) -> u64 {
    let embedder = embedder_file(config).and_then(|path| check_embedder(&path).ok());
    let embedder = embedder.map(|info| (info.gguf, PoolingOptions::default().max_tokens));
    let reranker = config.reranker.value.as_ref().and_then(|path| check_reranker(path).ok());
    let reranker = reranker.map(|info| (info.gguf, PoolingOptions::default().max_tokens));
    let needs = embedder.into_iter().chain(reranker).map(|(gguf, most)| reader_need(&gguf, most));
    needs.fold(0, u64::saturating_add)
}

/// Bytes of memory of a model that reads texts of at most `most` tokens, one such text at a time.
pub fn reader_need(gguf: &Gguf, most: u32) -> u64 {
    MemoryEstimate::of(gguf, most, KvType::F16, most).total()
}

fn fingerprint_of(path: &Path, config: &Config) -> Result<[u8; 32], AgentOpenError> {
    fingerprint::of_file(path, &config.data.value)
        .map_err(|reason| AgentOpenError::Unreadable { path: path.into(), reason })
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
    /// Companions with models of their own.
    pub roles: Vec<RolePlan>,
    /// Bytes of memory that the embedder and the reranker are going to take, if there are any that can
    /// be used.
    pub readers_need: u64,
}

impl Plan {
    /// Finds the model and settles the window; see [`window`].
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
        let mut budget = Budget::for_window(n_ctx)?;
        if let Some(tokens) = config.max_tokens.value {
            budget = budget.with_reply_reserve(tokens)?;
        }
        if let Some(tokens) = config.memory_tokens.value {
            budget.with_memory(tokens)?;
        }
        let need = MemoryEstimate::of(&info.gguf, n_ctx, config.kv_type.value, config.batch.value);
        let roles = roles::plan(config, &path)?;
        let readers_need = readers_need(config);
        Ok(Self { path, info, n_ctx, need, roles, readers_need })
    }

    /// Bytes of memory that the companions' own models are going to take.
    pub fn roles_need(&self) -> u64 {
        let needs = self.roles.iter().filter_map(|role| role.need);
        needs.fold(0, |sum, need| sum.saturating_add(need.total()))
    }

    /// Bytes of memory that all models together are going to take.
    pub fn total_need(&self) -> u64 {
        let others = self.roles_need().saturating_add(self.readers_need);
        self.need.total().saturating_add(others)
    }

    /// Whether `machine` has the memory.
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

/// Loads a model that was checked and makes a context of `n_ctx` tokens.
fn load(
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
fn context(
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

/// The window for a model that was trained for `trained` tokens: the configured one, or the
/// device's but no more than `trained`.
///
/// # Errors
/// [`AgentOpenError::ModelWindow`] for a model that no window suits, [`AgentOpenError::Window`] for a
/// window that doesn't suit the model.
pub fn window(config: &Config, trained: u32) -> Result<u32, AgentOpenError> {
    let trained = usable_window(trained)?;
    let wanted = config.window.value.unwrap_or(trained);
    let chosen = !matches!(config.window.origin, Origin::Device(_));
    if chosen && wanted > trained {
        return Err(AgentOpenError::Window { wanted, trained });
    }
    Ok(wanted.min(trained))
}

/// The window a model was trained for, if one can be used at all.
const fn usable_window(trained: u32) -> Result<u32, AgentOpenError> {
    if trained < Budget::MIN_WINDOW {
        return Err(AgentOpenError::ModelWindow { trained });
    }
    Ok(trained)
}

/// What others take beside the chat model, in words.
fn beside(mib: u64, who: &str) -> String {
    if mib == 0 { String::new() } else { format!(", {mib} for {who}") }
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
        /// Needed in all, in MiB.
        need: u64,
        /// Of that, the weights.
        weights: u64,
        /// Of that, the KV cache.
        kv: u64,
        /// Of that, companions with models of their own.
        roles: u64,
        /// Of that, the embedder and the reranker.
        readers: u64,
        /// What is free, in MiB.
        available: u64,
    },
    /// A companion's own model can't be used.
    #[error("--{key}: {source}")]
    Role {
        /// The flag that names it.
        key: String,
        /// What is wrong with it.
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

/// Smallest window in which tools are told of unasked, in tokens.
const TOOLS_WINDOW: u32 = 4_096;
/// Smallest model that is told of tools unasked, in parameters.
const TOOLS_PARAMETERS: u64 = 2_500_000_000;

/// File name of the model that the quick start fetches.
pub const STARTER: &str = "SmolLM2-135M-Instruct-Q4_1.gguf";

/// File name of the embedder that the quick start fetches.
pub const STARTER_EMBEDDER: &str = "all-MiniLM-L6-v2-f16.gguf";

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
pub const fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}
