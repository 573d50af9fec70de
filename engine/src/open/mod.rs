//! The way from a configuration to an agent on llama.cpp. Every check that can be made before the
//! model is loaded is made before, so that a wrong file, window or machine gets a sentence.

mod error;
mod fingerprint;
mod load;
mod plan;
mod readers;
mod roles;
mod store;
mod window;

use std::sync::Arc;

use garret_core::model::{ChatModel as _, ModelFacts};
use garret_core::time::{Clock, Entropy};
use garret_hal::clock::SystemClock;
use garret_hal::entropy::SystemEntropy;
use garret_hal::sensors::Machine;
use garret_llm::encoder::Encoder;
use garret_llm::{LlamaChat, Model};
use garret_storage::Store;

use crate::agent::{Agent, Options, Parts};
use crate::config::{Config, Switch};

pub use error::{AgentOpenError, STARTER, mib};
pub use fingerprint::known_models;
pub use plan::Plan;
pub use readers::{
    STARTER_EMBEDDER, attached_embedder, embedder, embedder_file, reader_need, readers_need,
    reranker,
};
pub use roles::RolePlan;
pub use store::{NoStore, existing_store, store};
pub use window::window;

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
        let (other, its_encoder) = load::context(
            Arc::clone(model.model()),
            &self.plan.info,
            facts.fingerprint,
            facts.n_ctx,
            config,
        )?;
        let options = options(config, model.facts());
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
        let options = options(config, model.facts());
        let embedder = attached_embedder(config, &self.store)?;
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
    /// The encoder of its prompts.
    pub encoder: Encoder<Model>,
    /// The agent's settings.
    pub options: Options,
}

/// Returns the settings of an agent on `model`, as `config` has them.
pub fn options(config: &Config, model: ModelFacts) -> Options {
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
        tools: uses_tools(config, model),
        tool_protocol: config.tool_protocol.value,
    }
}

/// Returns true for a model that is told of tools. One of less than about three billion parameters
/// doesn't use them well, and where the window is small what they find has no room.
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

/// Smallest window in which tools are told of unasked, in tokens.
const TOOLS_WINDOW: u32 = 4_096;
/// Smallest model that is told of tools unasked, in parameters.
const TOOLS_PARAMETERS: u64 = 2_500_000_000;
