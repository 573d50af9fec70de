//! The configuration and the parts that a figure is measured with.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use garret::agent::{Options, Parts};
use garret::config::{Config, Sources, Switch};
use garret::open::{self, Plan};
use garret_core::model::{ChatModel, ModelFacts};
use garret_hal::clock::SystemClock;
use garret_hal::entropy::SystemEntropy;

use crate::machine;

/// Returns the configuration that the environment and this device give, with `flags`, a chat model
/// if one is named, and the data folder `data`.
pub(crate) fn configuration(
    data: &Path,
    model: Option<&Path>,
    mut flags: Vec<(&'static str, String)>,
) -> Result<Config, Box<dyn Error>> {
    flags.push(("data", data.display().to_string()));
    if let Some(model) = model {
        flags.push(("model", model.display().to_string()));
    }
    Ok(Config::resolve(Sources { flags, file: None, ..Sources::of_process()? })?)
}

/// Returns the settings of an agent as `config` has them, with the same replies to the same
/// prompts, and with tools only where they are asked for.
pub(crate) fn options(config: &Config, model: &impl ChatModel) -> Options {
    Options {
        sampling: config.sampling(1),
        draw_seed: false,
        tools: config.tools.value == Switch::On,
        ..open::options(config, model.facts())
    }
}

/// Returns the parts of an agent that remembers in the store of `config`, without an embedder.
pub(crate) fn parts<M, E>(
    config: &Config,
    model: M,
    encoder: E,
) -> Result<Parts<M, E>, Box<dyn Error>> {
    Ok(Parts {
        model,
        encoder,
        store: Arc::new(open::store(config)?),
        embedder: None,
        clock: Arc::new(SystemClock::new()),
        entropy: Arc::new(SystemEntropy),
    })
}

/// Prints device, build and model, so that a figure can be compared with another.
pub(crate) fn print(config: &Config, plan: &Plan, facts: ModelFacts) {
    machine::print_device();
    println!(
        "flags    garret {}, {}, batch {}, threads {}/{}, KV {}, window {}",
        env!("CARGO_PKG_VERSION"),
        machine::BUILD,
        config.batch.value,
        config.threads.value,
        config.batch_threads.value,
        config.kv_type.value,
        plan.n_ctx,
    );
    let hash: String = facts.fingerprint.iter().map(|byte| format!("{byte:02x}")).collect();
    println!("model    {} sha256 {hash}", plan.info.name);
}
