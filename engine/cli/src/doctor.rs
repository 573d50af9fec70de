//! `garret doctor`: does this machine, with this configuration, work?

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use garret::Cancel;
use garret::config::{Config, EmbedderChoice};
use garret::open::{self, Plan, mib};
use garret_core::id::SessionId;
use garret_core::time::{Clock, Confidence};
use garret_hal::clock::SystemClock;
use garret_hal::sensors::{
    DiskSensor, Machine, MemorySensor, PressureSensor, Resource, ThermalSensor,
};
use garret_llm::template::SystemSupport;
use rustix::fs::Access;

use super::{CommandResult, output};

/// Runs the command: one line for each finding; the exit status is 1 when something must be mended.
pub(super) fn run(config: &Config) -> CommandResult {
    let mut report = Report::default();
    build(&mut report)?;
    machine(&mut report, config)?;
    data(&mut report, config)?;
    model(&mut report, config)?;
    embedder(&mut report, config)?;
    reranker(&mut report, config)?;
    Ok(if report.failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

#[derive(Default)]
struct Report {
    failed: bool,
}

impl Report {
    fn good(&mut self, what: &str, finding: &str) -> std::io::Result<()> {
        output::say(&format!("ok    {what:<10} {finding}"))
    }

    fn warn(&mut self, what: &str, finding: &str) -> std::io::Result<()> {
        output::say(&format!("note  {what:<10} {finding}"))
    }

    fn fail(&mut self, what: &str, finding: &str) -> std::io::Result<()> {
        self.failed = true;
        output::say(&format!("FAIL  {what:<10} {finding}"))
    }
}

fn build(report: &mut Report) -> std::io::Result<()> {
    let features = [
        ("cuda", cfg!(feature = "cuda")),
        ("metal", cfg!(feature = "metal")),
        ("openmp", cfg!(feature = "openmp")),
        ("vulkan", cfg!(feature = "vulkan")),
    ];
    let on: Vec<_> = features.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect();
    let on = if on.is_empty() { "CPU only".into() } else { on.join(", ") };
    let version = env!("CARGO_PKG_VERSION");
    report.good("build", &format!("garret {version} for {}, {on}", std::env::consts::ARCH))
}

fn machine(report: &mut Report, config: &Config) -> std::io::Result<()> {
    let machine = Machine::new();
    let profile = garret::config::device_profile();
    report.good(
        "device",
        &format!(
            "{}: {} threads, batches of {}, window {}, {} KV cache",
            profile.name, profile.threads, profile.n_batch, profile.window, profile.kv_type
        ),
    )?;
    match machine.memory() {
        Some(memory) => report.good(
            "memory",
            &format!("{} MiB free of {}", mib(memory.available), mib(memory.total)),
        )?,
        None => report.warn("memory", "unknown: /proc/meminfo can't be read")?,
    }
    match SystemClock::new().wall().confidence {
        Confidence::Good => report.good("clock", "synchronised or battery-backed")?,
        Confidence::Wrong => report.warn("clock", "wrong: dates will be, too; set the clock")?,
        _ => report.warn("clock", "may be wrong: no battery-backed clock, not synchronised")?,
    }
    if let Some(hottest) = machine.hottest() {
        let celsius = hottest / 1_000;
        let finding = format!("{celsius} degrees Celsius");
        if celsius < HOT {
            report.good("heat", &finding)?
        } else {
            report.warn("heat", &finding)?
        }
    }
    let resources = [("cpu", Resource::Cpu), ("memory", Resource::Memory), ("io", Resource::Io)];
    for (name, resource) in resources {
        let Some(pressure) = machine.pressure(resource) else { continue };
        if pressure.avg60 > HIGH_PRESSURE {
            let share = pressure.avg60;
            report
                .warn("pressure", &format!("{share:.0}% of the last minute waited for {name}"))?;
        }
    }
    let folder = config.data.value.ancestors().find(|path| path.exists());
    match folder.and_then(|path| machine.disk(path)) {
        Some(disk) if mib(disk.available) < LITTLE_DISK_MIB => {
            report.warn("disk", &format!("only {} MiB free", mib(disk.available)))
        }
        Some(disk) => report.good("disk", &format!("{} MiB free", mib(disk.available))),
        None => report.warn("disk", "unknown"),
    }
}

fn data(report: &mut Report, config: &Config) -> Result<(), Box<dyn std::error::Error>> {
    let folder = config.data.value.display();
    let namespace = &config.namespace.value;
    let what = match open::existing_store(config) {
        Ok(store) => match store.sessions() {
            Ok(sessions) => Ok(format!("conversations kept: {}", sessions.len())),
            Err(error) => Err(error.to_string()),
        },
        Err(open::NoStore::Missing { .. }) => match unusable(&config.data.value) {
            None => Ok("nothing stored yet".into()),
            Some(reason) => Err(reason),
        },
        Err(error) => Err(error.to_string()),
    };
    match what {
        Ok(what) => report.good("data", &format!("{folder}, namespace `{namespace}`: {what}"))?,
        Err(error) => report.fail("data", &error)?,
    }
    Ok(())
}

/// Says why nothing can be stored in `folder`, which may not be there yet.
fn unusable(folder: &Path) -> Option<String> {
    let nearest = folder.ancestors().find(|path| path.symlink_metadata().is_ok())?;
    let nearest = if nearest.as_os_str().is_empty() { Path::new(".") } else { nearest };
    let at = nearest.display();
    if !nearest.is_dir() {
        return Some(format!("{at} is no folder: choose another one (--data)"));
    }
    let needed = Access::WRITE_OK | Access::EXEC_OK;
    let denied = rustix::fs::access(nearest, needed).err()?;
    Some(format!("{at} can't be written to ({denied}): mend that or choose another (--data)"))
}

fn model(report: &mut Report, config: &Config) -> std::io::Result<()> {
    let plan = match Plan::new(config) {
        Ok(plan) => plan,
        Err(error) => return report.fail("model", &error.to_string()),
    };
    let info = &plan.info;
    report.good(
        "model",
        &format!("{} ({}), {}", info.name, info.architecture, plan.path.display()),
    )?;
    for role in &plan.roles {
        let name = &role.info.name;
        let path = role.path.display();
        let finding = format!("a model of its own: {name}, {path}, {} tokens", role.n_ctx);
        report.good(role.companion.as_str(), &finding)?;
    }
    if let Err(error) = plan.fits(&Machine::new()) {
        return report.fail("room", &error.to_string());
    }
    let total = mib(plan.total_need());
    report.good("room", &format!("{total} MiB for {} tokens", plan.n_ctx))?;
    smoke(report, config)
}

/// Loads the embedder and lets it embed a few words.
fn embedder(report: &mut Report, config: &Config) -> std::io::Result<()> {
    let Some(path) = open::embedder_file(config) else {
        let folder = config.models_dir.value.display();
        return match config.embedder.value {
            EmbedderChoice::Off => report.good("embedder", "off: search goes by words alone"),
            _ => report.warn(
                "embedder",
                &format!(
                    "none in {folder}, so search goes by words alone: give --embedder FILE, or run \
                     examples/quickstart.sh, which fetches {}",
                    open::STARTER_EMBEDDER
                ),
            ),
        };
    };
    let scratch = Scratch::new();
    match one_vector(&scratch.config(config)) {
        Ok(what) => report.good("embedder", &format!("{}: {what}", path.display())),
        Err(error) => report.fail("embedder", &error.to_string()),
    }
}

/// Loads the reranker, if one is configured, and lets it compare a few words.
fn reranker(report: &mut Report, config: &Config) -> std::io::Result<()> {
    let Some(path) = &config.reranker.value else { return Ok(()) };
    match one_pair(config) {
        Ok(what) => report.good("reranker", &format!("{}: {what}", path.display())),
        Err(error) => report.fail("reranker", &error.to_string()),
    }
}

fn one_pair(config: &Config) -> Result<String, Box<dyn std::error::Error>> {
    let began = Instant::now();
    let reranker = open::reranker(config)?.ok_or("there is none")?;
    let loaded = began.elapsed().as_millis();
    let began = Instant::now();
    reranker.scores("Where is the lamp?", &["The lamp is in the attic."])?;
    let read = began.elapsed().as_millis();
    Ok(format!("loaded in {loaded} ms, read a sentence in {read} ms"))
}

fn one_vector(config: &Config) -> Result<String, Box<dyn std::error::Error>> {
    let began = Instant::now();
    let embedder = open::embedder(config)?.ok_or("there is none")?;
    let loaded = began.elapsed().as_millis();
    let began = Instant::now();
    embedder.embed(&["Where is the lamp?"])?;
    let embedded = began.elapsed().as_millis();
    let dimensions = embedder.dimensions();
    Ok(format!("{dimensions} numbers, loaded in {loaded} ms, embedded a sentence in {embedded} ms"))
}

/// A folder of its own for what loading a model leaves behind; removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        Self(std::env::temp_dir().join(format!("garret-doctor-{}", std::process::id())))
    }

    /// The same configuration with this folder for its data.
    fn config(&self, config: &Config) -> Config {
        let mut config = config.clone();
        config.data.value.clone_from(&self.0);
        config
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::debug!(%error, "scratch folder not removed");
        }
    }
}

/// Loads the model and lets it say one token, remembering nothing.
fn smoke(report: &mut Report, config: &Config) -> std::io::Result<()> {
    let scratch = Scratch::new();
    let mut config = scratch.config(config);
    config.max_tokens.value = Some(1);
    match one_token(report, &config) {
        Ok(()) => Ok(()),
        Err(error) => report.fail("answer", &error.to_string()),
    }
}

fn one_token(report: &mut Report, config: &Config) -> Result<(), Box<dyn std::error::Error>> {
    let began = Instant::now();
    let mut agent = open::agent(config)?;
    let loaded = began.elapsed().as_millis();
    report.good(
        "template",
        match agent.encoder().template().system_support() {
            SystemSupport::Native => "renders, with system prompts",
            SystemSupport::Merged => "renders; system prompts go into the first message",
        },
    )?;
    let session: SessionId = "doctor".parse()?;
    let began = Instant::now();
    let outcome = smol::block_on(agent.turn(&session, "Say yes.", &Cancel::new(), &mut |_| {}))?;
    if outcome.receipt.reply_tokens == 0 {
        return Err("the model ended its turn without a word".into());
    }
    let said = began.elapsed().as_millis();
    report.good("answer", &format!("loaded in {loaded} ms, said a token in {said} ms"))?;
    Ok(())
}

/// Percent of a minute in which something waited, from which a chat is slow.
const HIGH_PRESSURE: f32 = 40.0;

/// Degrees Celsius from which a small board slows down.
const HOT: i32 = 80;

/// MiB under which a conversation may soon find the disk full.
const LITTLE_DISK_MIB: u64 = 200;
