//! What a figure was measured on.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use garret::agent::{Options, Parts};
use garret::config::{Config, Home, Sources, Switch};
use garret::open::{self, Plan};
use garret_core::model::ModelFacts;
use garret_hal::clock::SystemClock;
use garret_hal::entropy::SystemEntropy;
use garret_hal::sensors::{CpuSensor, Machine, MemorySensor};

/// What the environment and this device give, with `flags`, a chat model if one is named, and what is
/// remembered in `data`.
pub(crate) fn configuration(
    data: &Path,
    model: Option<&Path>,
    mut flags: Vec<(&'static str, String)>,
) -> Result<Config, Box<dyn Error>> {
    flags.push(("data", data.display().to_string()));
    if let Some(model) = model {
        flags.push(("model", model.display().to_string()));
    }
    let home = Home::from_environment(|name| std::env::var_os(name));
    let environment = garret::config::environment()?;
    let device = garret::config::device_profile();
    Ok(Config::resolve(Sources { flags, environment, file: None, device, home })?)
}

/// How an agent behaves by `config`, with the same replies to the same prompts.
pub(crate) fn options(config: &Config) -> Options {
    Options {
        system_prompt: config.system_prompt.value.as_str().into(),
        max_tokens: config.max_tokens.value,
        memory_tokens: config.memory_tokens.value,
        compact_at: config.compact_at.value,
        show_time: config.show_time.value,
        sampling: config.sampling(1),
        draw_seed: false,
        companions: config.companions.value,
        companion_size: config.companion_schema.value,
        tools: config.tools.value == Switch::On,
        tool_protocol: config.tool_protocol.value,
    }
}

/// What an agent is made of that remembers in the store of `config`, without an embedder.
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
    print_device();
    println!(
        "flags    garret {}, {}, batch {}, threads {}/{}, KV {}, window {}",
        env!("CARGO_PKG_VERSION"),
        BUILD,
        config.batch.value,
        config.threads.value,
        config.batch_threads.value,
        config.kv_type.value,
        plan.n_ctx,
    );
    let hash: String = facts.fingerprint.iter().map(|byte| format!("{byte:02x}")).collect();
    println!("model    {} sha256 {hash}", plan.info.name);
}

/// Prints what it runs on.
pub(crate) fn print_device() {
    let machine = Machine::new();
    let cpu = machine.cpu();
    let memory = machine.memory().map_or(0, |memory| memory.total >> 20);
    let name = cpu_name().unwrap_or_else(|| "unknown processor".into());
    println!("device   {name}, {} threads seen, {memory} MiB", cpu.logical);
}

/// How it was compiled.
pub(crate) const BUILD: &str =
    if cfg!(debug_assertions) { "debug build: not comparable" } else { "release build" };

fn cpu_name() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
