//! `garret models`: what files are, from their headers alone.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use garret::config::Config;
use garret::open::{self, AgentOpenError, mib};
use garret_hal::sensors::{Machine, MemorySensor};
use garret_llm::PoolingOptions;
use garret_llm::check::{CheckError, check_chat, check_embedder, check_reranker};
use garret_llm::estimate::MemoryEstimate;
use garret_llm::gguf::Gguf;
use serde::Serialize;

use super::args::{ModelUse, Models, ModelsAction};
use super::{CommandResult, output};

/// Runs the command.
pub(super) fn run(config: &Config, models: &Models) -> CommandResult {
    match &models.action {
        ModelsAction::List { json } => list(config, *json),
        ModelsAction::Check { file, role, json } => {
            let found = UsableModel::at(file, config, *role)?;
            if *json {
                output::say_json(&found)?
            } else {
                output::say(&found.in_full())?
            }
            let fits = found.fits != Some(false);
            Ok(if fits { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
    }
}

fn list(config: &Config, json: bool) -> CommandResult {
    let folder = &config.models_dir.value;
    let files = gguf_files(folder).map_err(|error| {
        format!("{}: {error}; set --models-dir or run examples/quickstart.sh", folder.display())
    })?;
    if files.is_empty() {
        output::note(&format!("There are no .gguf files in {}.", folder.display()));
    }
    for file in files {
        match UsableModel::at(&file, config, None) {
            Ok(found) if json => output::say_json(&found)?,
            Ok(found) => output::say(&found.in_short())?,
            Err(error) => output::complain(&error),
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn gguf_files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "gguf") && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// A model that can be used.
#[derive(Serialize)]
struct UsableModel {
    file: PathBuf,
    role: &'static str,
    name: String,
    architecture: String,
    bytes: u64,
    /// Tokens it was trained for.
    context_length: u32,
    /// Window that `memory_mib` is for.
    window: Option<u32>,
    dimensions: Option<u32>,
    memory_mib: Option<u64>,
    /// MiB that the configured embedder and reranker need beside a chat model.
    beside_mib: Option<u64>,
    available_mib: Option<u64>,
    fits: Option<bool>,
}

impl UsableModel {
    /// Reads the file at `path` as a model for `role`; without one as a chat model, else as an
    /// embedder or a reranker.
    fn at(path: &Path, config: &Config, role: Option<ModelUse>) -> Result<Self, AgentOpenError> {
        match role {
            Some(ModelUse::Embedder) => return Self::embedder(path),
            Some(ModelUse::Reranker) => return Self::reranker(path),
            Some(ModelUse::Chat) | None => {}
        }
        match check_chat(path) {
            Ok(info) => Self::chat(path, config, &info.gguf, info.name, info.architecture),
            Err(CheckError::EmbedderAsChat { .. }) if role.is_none() => Self::embedder(path),
            Err(CheckError::Ranker { .. }) if role.is_none() => Self::reranker(path),
            Err(error) => Err(error.into()),
        }
    }

    fn embedder(path: &Path) -> Result<Self, AgentOpenError> {
        let info = check_embedder(path)?;
        let name = info.name;
        let architecture = info.architecture;
        let most = PoolingOptions::default().max_tokens;
        let read = Self::reader(path, "embedder", &info.gguf, most, name, architecture);
        Ok(Self { dimensions: Some(info.dimensions), ..read })
    }

    fn reranker(path: &Path) -> Result<Self, AgentOpenError> {
        let info = check_reranker(path)?;
        let most = PoolingOptions::default().max_tokens;
        Ok(Self::reader(path, "reranker", &info.gguf, most, info.name, info.architecture))
    }

    /// A model that reads texts and writes none.
    fn reader(
        path: &Path,
        role: &'static str,
        gguf: &Gguf,
        most: u32,
        name: String,
        architecture: String,
    ) -> Self {
        let need = open::reader_need(gguf, most);
        let available = Machine::new().memory().map(|memory| memory.available);
        Self {
            file: path.into(),
            role,
            name,
            architecture,
            bytes: gguf.file_bytes(),
            context_length: gguf.context_length().unwrap_or(0),
            window: None,
            dimensions: None,
            memory_mib: Some(mib(need)),
            beside_mib: None,
            available_mib: available.map(mib),
            fits: available.map(|bytes| need <= bytes),
        }
    }

    fn chat(
        path: &Path,
        config: &Config,
        gguf: &Gguf,
        name: String,
        architecture: String,
    ) -> Result<Self, AgentOpenError> {
        let trained = gguf.context_length().unwrap_or(0);
        let window = open::window(config, trained)?;
        let need = MemoryEstimate::of(gguf, window, config.kv_type.value, config.batch.value);
        let available = Machine::new().memory().map(|memory| memory.available);
        let beside = open::readers_need(config);
        let all = need.total().saturating_add(beside);
        Ok(Self {
            file: path.into(),
            role: "chat",
            name,
            architecture,
            bytes: gguf.file_bytes(),
            context_length: trained,
            window: Some(window),
            dimensions: None,
            memory_mib: Some(mib(need.total())),
            beside_mib: Some(mib(beside)).filter(|mib| *mib > 0),
            available_mib: available.map(mib),
            fits: available.map(|bytes| all <= bytes),
        })
    }

    fn in_short(&self) -> String {
        format!(
            "{:<9} {:>6} MiB  {:>6} tokens  {}",
            self.role,
            mib(self.bytes),
            self.context_length,
            self.file.display()
        )
    }

    fn in_full(&self) -> String {
        let mut text = format!(
            "{}\n  {} model `{}`, architecture {}, {} MiB, trained for {} tokens",
            self.file.display(),
            self.role,
            self.name,
            self.architecture,
            mib(self.bytes),
            self.context_length,
        );
        if let Some(dimensions) = self.dimensions {
            text += &format!("\n  vectors of {dimensions} numbers");
        }
        match (self.window, self.memory_mib) {
            (Some(window), Some(memory)) => {
                text += &format!("\n  a window of {window} tokens needs about {memory} MiB");
            }
            (None, Some(memory)) => text += &format!("\n  needs about {memory} MiB"),
            _ => {}
        }
        if let Some(beside) = self.beside_mib {
            text += &format!(", and {beside} MiB for embedder and reranker");
        }
        match (self.available_mib, self.fits) {
            (Some(free), Some(true)) => text += &format!("; {free} MiB are free"),
            (Some(free), _) => text += &format!(", but only {free} MiB are free"),
            _ => {}
        }
        text
    }
}
