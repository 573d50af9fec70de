//! Configuration: flags over `GARRET_*` variables over a TOML file over the device profile over
//! defaults, with the origin of every value kept.
//!
//! A key has one name everywhere: `max_tokens` in the file, `GARRET_MAX_TOKENS` in the environment,
//! `--max-tokens` on the command line. Unknown keys are errors that suggest the nearest known one;
//! so are values that don't parse or lie out of range.
//!
//! ```
//! use garret::config::{Config, Sources};
//!
//! let config = Config::resolve(Sources {
//!     file: Some(("garret.toml".into(), "window = 4096\ndata = 'd'\nmodels_dir = 'm'".into())),
//!     ..Sources::default()
//! })?;
//! assert_eq!(config.window.value, Some(4096));
//! assert_eq!(config.window.origin.to_string(), "file garret.toml");
//! # Ok::<(), garret::config::ConfigError>(())
//! ```

mod keys;
mod layers;
mod parse;

use std::fmt;
use std::path::PathBuf;

use garret_core::gate::Mode;
use garret_core::model::{KvType, Sampling};
use garret_hal::profile::DeviceProfile;

use crate::agent::ToolProtocol;
use crate::companion::form::Size;

pub use keys::{KEYS, Key};
pub use layers::{Home, Sources, default_file, environment};

/// A value and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting<T> {
    /// The value in force.
    pub value: T,
    /// Who set it.
    pub origin: Origin,
}

/// Where a value came from, strongest first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// The command line.
    Flag,
    /// An environment variable.
    Environment(String),
    /// A configuration file.
    File(PathBuf),
    /// The profile of the device that was detected.
    Device(String),
    /// Garret's default.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("flag"),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Device(name) => write!(f, "device {name}"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// Which embedder is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EmbedderChoice {
    /// The starter embedder, if it is in the models folder.
    Auto,
    /// None: search goes by words alone.
    Off,
    /// This file.
    File(PathBuf),
}

impl fmt::Display for EmbedderChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Off => f.write_str("off"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// When the KV cache is kept for the next start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotPolicy {
    /// Never.
    Off,
    /// When the program ends.
    Shutdown,
    /// Then, and while nobody waits.
    Idle,
}

impl fmt::Display for SnapshotPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::Shutdown => "shutdown",
            Self::Idle => "idle",
        })
    }
}

/// On, off, or as it is best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Switch {
    /// As it is best for the model and the machine.
    #[default]
    Auto,
    /// On.
    On,
    /// Off.
    Off,
}

impl fmt::Display for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::On => "on",
            Self::Off => "off",
        })
    }
}

/// Every setting.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// GGUF file of the chat model; `None` means the starter model, if it is there.
    pub model: Setting<Option<PathBuf>>,
    /// GGUF file of the model that sums up; `None` for the chat model.
    pub compactor_model: Setting<Option<PathBuf>>,
    /// GGUF file of the model that works out what the user is after; `None` for the chat model.
    pub inferrer_model: Setting<Option<PathBuf>>,
    /// Which embedder search uses.
    pub embedder: Setting<EmbedderChoice>,
    /// GGUF file of a model that ranks the first hits of a search again; `None` for none.
    pub reranker: Setting<Option<PathBuf>>,
    /// Folder in which models are looked for.
    pub models_dir: Setting<PathBuf>,
    /// Folder that holds everything that is remembered.
    pub data: Setting<PathBuf>,
    /// Whose memory: namespaces share nothing.
    pub namespace: Setting<String>,
    /// Window in tokens; `None` means the device's, at most the model's.
    pub window: Setting<Option<u32>>,
    /// Most tokens of a reply; `None` means the budget's reserve.
    pub max_tokens: Setting<Option<u32>>,
    /// Most tokens of what is remembered from elsewhere, 0 for none; `None` means the budget's share.
    pub memory_tokens: Setting<Option<u32>>,
    /// Tell the model the time with every message.
    pub show_time: Setting<bool>,
    /// How readily companions run.
    pub companions: Setting<Mode>,
    /// How much companions are asked; `None` means what suits the model.
    pub companion_schema: Setting<Option<Size>>,
    /// Percent of a full prompt from which on older turns are summed up; 0 for never.
    pub compact_at: Setting<u32>,
    /// Whether the model can look up what it doesn't see.
    pub tools: Setting<Switch>,
    /// How the model is told of tools and calls them.
    pub tool_protocol: Setting<ToolProtocol>,
    /// The system prompt; when it is empty the model's template may bring its own.
    pub system_prompt: Setting<String>,
    /// See [`Sampling::temperature`].
    pub temperature: Setting<f32>,
    /// See [`Sampling::top_k`].
    pub top_k: Setting<u32>,
    /// See [`Sampling::top_p`].
    pub top_p: Setting<f32>,
    /// See [`Sampling::min_p`].
    pub min_p: Setting<f32>,
    /// See [`Sampling::repeat_penalty`].
    pub repeat_penalty: Setting<f32>,
    /// See [`Sampling::repeat_last_n`].
    pub repeat_last_n: Setting<u32>,
    /// See [`Sampling::seed`]; `None` draws one for each turn.
    pub seed: Setting<Option<u32>>,
    /// Threads that generate.
    pub threads: Setting<u32>,
    /// Threads that prefill.
    pub batch_threads: Setting<u32>,
    /// Tokens decoded in one call, which is also how fine a cancel is.
    pub batch: Setting<u32>,
    /// Number format of the KV cache.
    pub kv_type: Setting<KvType>,
    /// When the KV cache is kept for the next start.
    pub snapshot: Setting<SnapshotPolicy>,
    /// Most MiB of such a snapshot.
    pub snapshot_mib: Setting<u32>,
    /// Layers offloaded to a GPU, in builds that have one.
    pub gpu_layers: Setting<u32>,
    /// Filter of log lines, in the syntax of `tracing_subscriber::EnvFilter`.
    pub log: Setting<String>,
}

impl Config {
    /// Resolves all layers.
    ///
    /// # Errors
    /// [`ConfigError`] names the key, the layer and what would be right.
    pub fn resolve(sources: Sources) -> Result<Self, ConfigError> {
        let device = sources.device.clone();
        let home = sources.home.clone();
        let layers = layers::Layers::new(sources)?;
        let usual = Sampling::default();
        let get = Reader { layers: &layers, device: &device };
        Ok(Self {
            model: get.optional("model", parse::path)?,
            compactor_model: get.optional("compactor_model", parse::path)?,
            inferrer_model: get.optional("inferrer_model", parse::path)?,
            embedder: get.or("embedder", parse::embedder, EmbedderChoice::Auto)?,
            reranker: get.or("reranker", parse::reranker, None)?,
            models_dir: get.or_home("models_dir", parse::path, home.models())?,
            data: get.or_home("data", parse::path, home.data())?,
            namespace: get.or("namespace", parse::text, "default".into())?,
            window: get.optional_or_device("window", parse::window, device.window)?,
            max_tokens: get.optional("max_tokens", parse::positive)?,
            memory_tokens: get.optional("memory_tokens", parse::number)?,
            compact_at: get.or("compact_at", parse::percent, 80)?,
            show_time: get.or("show_time", parse::boolean, true)?,
            companions: get.or("companions", parse::companions, Mode::default())?,
            companion_schema: get.or("companion_schema", parse::companion_schema, None)?,
            tools: get.or("tools", parse::switch, Switch::Auto)?,
            tool_protocol: get.or("tool_protocol", parse::tool_protocol, ToolProtocol::Auto)?,
            system_prompt: get.or("system_prompt", parse::text, DEFAULT_SYSTEM_PROMPT.into())?,
            temperature: get.or("temperature", parse::between::<0, 5>, usual.temperature)?,
            top_k: get.or("top_k", parse::number, usual.top_k)?,
            top_p: get.or("top_p", parse::between::<0, 1>, usual.top_p)?,
            min_p: get.or("min_p", parse::between::<0, 1>, usual.min_p)?,
            repeat_penalty: get.or("repeat_penalty", parse::penalty, usual.repeat_penalty)?,
            repeat_last_n: get.or("repeat_last_n", parse::memory, usual.repeat_last_n)?,
            seed: get.optional("seed", parse::number)?,
            threads: get.or_device("threads", parse::threads, device.threads)?,
            batch_threads: get.or_device("batch_threads", parse::threads, device.batch_threads)?,
            batch: get.or_device("batch", parse::batch, device.n_batch)?,
            kv_type: get.or_device("kv_type", parse::kv_type, device.kv_type)?,
            snapshot: get.or("snapshot", parse::snapshot, SnapshotPolicy::Shutdown)?,
            snapshot_mib: get.or("snapshot_mib", parse::positive, DEFAULT_SNAPSHOT_MIB)?,
            gpu_layers: get.or("gpu_layers", parse::number, 0)?,
            log: get.or("log", parse::text, "warn".into())?,
        })
    }

    /// How tokens are chosen, with `seed` where none is configured.
    pub fn sampling(&self, seed: u32) -> Sampling {
        Sampling {
            temperature: self.temperature.value,
            top_k: self.top_k.value,
            top_p: self.top_p.value,
            min_p: self.min_p.value,
            repeat_penalty: self.repeat_penalty.value,
            repeat_last_n: self.repeat_last_n.value,
            seed: self.seed.value.unwrap_or(seed),
        }
    }

    /// Every key with its value as text and its origin, in the order of [`KEYS`].
    pub fn entries(&self) -> Vec<(&'static str, String, &Origin)> {
        KEYS.iter()
            .map(|key| {
                let (value, origin) = self.entry(key.name);
                (key.name, value, origin)
            })
            .collect()
    }

    fn entry(&self, name: &str) -> (String, &Origin) {
        fn some<T: ToString>(setting: &Setting<Option<T>>) -> (String, &Origin) {
            (setting.value.as_ref().map_or_else(|| "auto".into(), T::to_string), &setting.origin)
        }
        fn one<T: ToString>(setting: &Setting<T>) -> (String, &Origin) {
            (setting.value.to_string(), &setting.origin)
        }
        fn path(setting: &Setting<PathBuf>) -> (String, &Origin) {
            (setting.value.display().to_string(), &setting.origin)
        }
        fn model(setting: &Setting<Option<PathBuf>>) -> (String, &Origin) {
            let file = setting.value.as_ref().map(|path| path.display().to_string());
            (file.unwrap_or_else(|| AUTO.into()), &setting.origin)
        }
        match name {
            "model" => model(&self.model),
            "compactor_model" => model(&self.compactor_model),
            "inferrer_model" => model(&self.inferrer_model),
            "embedder" => one(&self.embedder),
            "reranker" => (
                self.reranker
                    .value
                    .as_ref()
                    .map_or_else(|| "off".into(), |p| p.display().to_string()),
                &self.reranker.origin,
            ),
            "models_dir" => path(&self.models_dir),
            "data" => path(&self.data),
            "namespace" => one(&self.namespace),
            "window" => some(&self.window),
            "max_tokens" => some(&self.max_tokens),
            "memory_tokens" => some(&self.memory_tokens),
            "compact_at" => one(&self.compact_at),
            "show_time" => one(&self.show_time),
            "companions" => one(&self.companions),
            "companion_schema" => some(&self.companion_schema),
            "tools" => one(&self.tools),
            "tool_protocol" => one(&self.tool_protocol),
            "system_prompt" => one(&self.system_prompt),
            "temperature" => one(&self.temperature),
            "top_k" => one(&self.top_k),
            "top_p" => one(&self.top_p),
            "min_p" => one(&self.min_p),
            "repeat_penalty" => one(&self.repeat_penalty),
            "repeat_last_n" => one(&self.repeat_last_n),
            "seed" => some(&self.seed),
            "threads" => one(&self.threads),
            "batch_threads" => one(&self.batch_threads),
            "batch" => one(&self.batch),
            "kv_type" => one(&self.kv_type),
            "snapshot" => one(&self.snapshot),
            "snapshot_mib" => one(&self.snapshot_mib),
            "gpu_layers" => one(&self.gpu_layers),
            _ => one(&self.log),
        }
    }
}

/// Room for the whole window of the starter model, whose state takes 23 MB per 1,000 tokens.
const DEFAULT_SNAPSHOT_MIB: u32 = 256;

/// Why a configuration is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A key that doesn't exist.
    #[error("{origin}: unknown key `{key}`{}", suggestion(.nearest.as_deref()))]
    UnknownKey {
        /// Where it stands.
        origin: Origin,
        /// As written.
        key: String,
        /// The known key nearest to it, if one is near.
        nearest: Option<String>,
    },
    /// A value that can't be used.
    #[error("{origin}: `{key}` can't be `{value}`: {expected}")]
    BadValue {
        /// Where it stands.
        origin: Origin,
        /// The key.
        key: &'static str,
        /// As written.
        value: String,
        /// What would be right.
        expected: String,
    },
    /// A folder that lies in the user's home unless it is configured, and there is no home.
    #[error("HOME isn't set, so there is no place for `{key}`: set HOME, or configure `{key}`")]
    NoHome {
        /// The key.
        key: &'static str,
    },
    /// A file that isn't TOML.
    #[error("{}: not valid TOML: {reason}", .path.display())]
    NotToml {
        /// The file.
        path: PathBuf,
        /// The parser's words, with line and column.
        reason: String,
    },
    /// A file that can't be read.
    #[error("{}: can't be read: {reason}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's words.
        reason: String,
    },
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(
        || "; `garret config show` lists all keys".into(),
        |nearest| format!("; did you mean `{nearest}`?"),
    )
}

/// Looks a key up in all layers and parses what it finds.
struct Reader<'a> {
    layers: &'a layers::Layers,
    device: &'a DeviceProfile,
}

type Parse<T> = fn(&str) -> Result<T, String>;

impl Reader<'_> {
    fn find<T>(
        &self,
        key: &'static str,
        parse: Parse<T>,
    ) -> Result<Option<Setting<T>>, ConfigError> {
        let Some((origin, text)) = self.layers.find(key) else { return Ok(None) };
        match parse(text) {
            Ok(value) => Ok(Some(Setting { value, origin: origin.clone() })),
            Err(expected) => Err(ConfigError::BadValue {
                origin: origin.clone(),
                key,
                value: text.into(),
                expected,
            }),
        }
    }

    fn or<T>(
        &self,
        key: &'static str,
        parse: Parse<T>,
        default: T,
    ) -> Result<Setting<T>, ConfigError> {
        let found = self.find(key, parse)?;
        Ok(found.unwrap_or(Setting { value: default, origin: Origin::Default }))
    }

    fn or_home(
        &self,
        key: &'static str,
        parse: Parse<PathBuf>,
        default: Option<PathBuf>,
    ) -> Result<Setting<PathBuf>, ConfigError> {
        match (self.find(key, parse)?, default) {
            (Some(found), _) => Ok(found),
            (None, Some(value)) => Ok(Setting { value, origin: Origin::Default }),
            (None, None) => Err(ConfigError::NoHome { key }),
        }
    }

    fn or_device<T>(
        &self,
        key: &'static str,
        parse: Parse<T>,
        value: T,
    ) -> Result<Setting<T>, ConfigError> {
        let origin = Origin::Device(self.device.name.to_string());
        Ok(self.find(key, parse)?.unwrap_or(Setting { value, origin }))
    }

    fn optional<T>(
        &self,
        key: &'static str,
        parse: Parse<T>,
    ) -> Result<Setting<Option<T>>, ConfigError> {
        if let Some((origin, AUTO)) = self.layers.find(key) {
            return Ok(Setting { value: None, origin: origin.clone() });
        }
        Ok(match self.find(key, parse)? {
            Some(Setting { value, origin }) => Setting { value: Some(value), origin },
            None => Setting { value: None, origin: Origin::Default },
        })
    }

    fn optional_or_device<T>(
        &self,
        key: &'static str,
        parse: Parse<T>,
        value: T,
    ) -> Result<Setting<Option<T>>, ConfigError> {
        if let Some((_, AUTO)) = self.layers.find(key) {
            let origin = Origin::Device(self.device.name.clone());
            return Ok(Setting { value: Some(value), origin });
        }
        let Setting { value, origin } = self.or_device(key, parse, value)?;
        Ok(Setting { value: Some(value), origin })
    }
}

/// How a setting is given back to whoever chooses it by default.
const AUTO: &str = "auto";

/// What the model is told when nobody says otherwise.
pub const DEFAULT_SYSTEM_PROMPT: &str = "You are a helpful assistant. Answer briefly and use what was said earlier in the conversation.";

#[cfg(test)]
mod tests;
