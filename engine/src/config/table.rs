//! The table of all keys: a row is a key's documentation, name and type, the way in which its value
//! is made, the way in which it is shown, and a line of help. The fields of [`Config`], [`KEYS`],
//! and what reads and shows them come from it, so that none can know a key that others don't.

use std::path::{Path, PathBuf};

use garret_core::gate::Mode;
use garret_core::model::{KvType, Sampling};

use super::choices::{EmbedderChoice, SnapshotPolicy, Switch};
use super::home::Home;
use super::parse;
use super::read::{AUTO, Reader};
use super::setting::{ConfigError, Origin, Setting};
use crate::agent::ToolProtocol;
use crate::companion::form::Size;

/// One key of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its name in the file; upper-cased after `GARRET_` in the environment; with `-` for `_` after
    /// `--` on the command line.
    pub name: &'static str,
    /// One line about what it does.
    pub help: &'static str,
}

impl Key {
    /// Returns the name of its environment variable.
    pub(super) fn variable(&self) -> String {
        format!("GARRET_{}", self.name.to_uppercase())
    }
}

macro_rules! settings {
    ($(
        $(#[$doc:meta])+
        $name:ident: $type:ty, $way:ident($($argument:expr),+), $show:path, $help:literal;
    )+) => {
        /// Every setting.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub struct Config {
            $($(#[$doc])+ pub $name: Setting<$type>,)+
        }

        /// All keys, in the order in which they are shown.
        pub const KEYS: &[Key] = &[$(Key { name: stringify!($name), help: $help },)+];

        impl Config {
            pub(super) fn read(reader: &Reader) -> Result<Self, ConfigError> {
                Ok(Self { $($name: reader.$way(stringify!($name), $($argument),+)?,)+ })
            }

            /// Returns every key with its value as text and its origin, in the order of [`KEYS`].
            pub fn entries(&self) -> Vec<(&'static str, String, &Origin)> {
                vec![$((stringify!($name), $show(&self.$name.value), &self.$name.origin),)+]
            }
        }
    };
}

settings! {
    /// GGUF file of the chat model; `None` means the starter model, if it is there.
    model: Option<PathBuf>, optional(parse::path), show::path_or_auto,
        "GGUF file of the chat model";
    /// GGUF file of the model that writes summaries; `None` for the chat model.
    compactor_model: Option<PathBuf>, optional(parse::path), show::path_or_auto,
        "GGUF file of a model of its own that summarises; auto is the chat model";
    /// GGUF file of the model that works out what the user is after; `None` for the chat model.
    inferrer_model: Option<PathBuf>, optional(parse::path), show::path_or_auto,
        "GGUF file of a model of its own that infers; auto is the chat model";
    /// The embedder that search uses.
    embedder: EmbedderChoice, or(parse::embedder, EmbedderChoice::Auto), show::plain,
        "GGUF file of the embedder; off searches by words alone";
    /// GGUF file of a model that ranks the first hits of a search again; `None` for none.
    reranker: Option<PathBuf>, or(parse::reranker, None), show::path_or_off,
        "GGUF file of a model that ranks the first hits again, or off";
    /// Folder in which models are looked for.
    models_dir: PathBuf, or_home(parse::path, Home::models), show::path,
        "folder in which models are looked for";
    /// Folder that holds everything that is remembered.
    data: PathBuf, or_home(parse::path, Home::data), show::path,
        "folder that holds everything that is remembered";
    /// Name of the namespace, whose memory is used: namespaces share nothing.
    namespace: String, or(parse::text, "default".into()), show::plain,
        "whose memory; namespaces share nothing";
    /// Window in tokens; `None` means the device's, at most the model's.
    window: Option<u32>, optional_or_device(parse::window, |device| device.window), show::or_auto,
        "context window in tokens, at least 2048";
    /// Most tokens of a reply; `None` means the budget's reserve.
    max_tokens: Option<u32>, optional(parse::positive), show::or_auto,
        "most tokens of a reply";
    /// Most tokens of what is remembered from elsewhere, 0 for none; `None` means the budget's
    /// share.
    memory_tokens: Option<u32>, optional(parse::number), show::or_auto,
        "most tokens of what is remembered from elsewhere; 0 turns that off";
    /// Percent of a full prompt from which on older turns are summarised; 0 for never.
    compact_at: u32, or(parse::percent, 80), show::plain,
        "percent of a full prompt from which on older turns are summarised; 0 never";
    /// Tell the model the time with every message.
    show_time: bool, or(parse::boolean, true), show::plain,
        "tell the model the time, and the days of earlier messages: true or false";
    /// Readiness with which companions run.
    companions: Mode, or(parse::companions, Mode::default()), show::plain,
        "off (summaries only), cold_start (when there is reason to) or turbo (every turn)";
    /// Size of the companions' forms; `None` means what suits the model.
    companion_schema: Option<Size>, or(parse::companion_schema, None), show::or_auto,
        "how much companions are asked: core, extended, or auto for what suits the model";
    /// Permission for the model to look up what it doesn't see.
    tools: Switch, or(parse::switch, Switch::Auto), show::plain,
        "let the model look up what it doesn't see: on, off, or auto by its size and window";
    /// Way in which the model is told of tools and calls them.
    tool_protocol: ToolProtocol, or(parse::tool_protocol, ToolProtocol::Auto), show::plain,
        "how it calls tools: tags, native (as its template tells it), or auto: native if known";
    /// System prompt; when it is empty the model's template may bring its own.
    system_prompt: String, or(parse::text, DEFAULT_SYSTEM_PROMPT.into()), show::plain,
        "instructions for the model; empty leaves them to its template";
    /// See [`Sampling::temperature`].
    temperature: f32, or(parse::between::<0, 5>, Sampling::default().temperature), show::plain,
        "0 always takes the likeliest token; up to 5";
    /// See [`Sampling::top_k`].
    top_k: u32, or(parse::number, Sampling::default().top_k), show::plain,
        "keep the k likeliest tokens; 0 keeps all";
    /// See [`Sampling::top_p`].
    top_p: f32, or(parse::between::<0, 1>, Sampling::default().top_p), show::plain,
        "keep the likeliest tokens up to this probability";
    /// See [`Sampling::min_p`].
    min_p: f32, or(parse::between::<0, 1>, Sampling::default().min_p), show::plain,
        "keep tokens this likely relative to the likeliest";
    /// See [`Sampling::repeat_penalty`].
    repeat_penalty: f32, or(parse::between::<1, 2>, Sampling::default().repeat_penalty), show::plain,
        "1 doesn't punish repetition; up to 2";
    /// See [`Sampling::repeat_last_n`].
    repeat_last_n: u32, or(parse::memory, Sampling::default().repeat_last_n), show::plain,
        "tokens the penalty looks back at";
    /// See [`Sampling::seed`]; `None` draws one for each turn.
    seed: Option<u32>, optional(parse::number), show::or_auto,
        "seed of the random choice; auto draws one a turn";
    /// Threads that generate.
    threads: u32, or_device(parse::threads, |device| device.threads), show::plain,
        "threads that generate";
    /// Threads that prefill.
    batch_threads: u32, or_device(parse::threads, |device| device.batch_threads), show::plain,
        "threads that prefill";
    /// Tokens decoded in one call, which is also how fine a cancel is.
    batch: u32, or_device(parse::batch, |device| device.n_batch), show::plain,
        "tokens decoded in one call; smaller cancels sooner";
    /// Number format of the KV cache.
    kv_type: KvType, or_device(parse::kv_type, |device| device.kv_type), show::plain,
        "number format of the KV cache: f16 or q8_0";
    /// Moments at which the KV cache is kept for the next start.
    snapshot: SnapshotPolicy, or(parse::snapshot, SnapshotPolicy::Shutdown), show::plain,
        "keep the KV cache for the next start: off, shutdown, or idle (wears a device more)";
    /// Most MiB of such a snapshot.
    snapshot_mib: u32, or(parse::positive, DEFAULT_SNAPSHOT_MIB), show::plain,
        "most MiB of such a snapshot; a larger one isn't kept";
    /// Layers offloaded to a GPU, in builds that have one.
    gpu_layers: u32, or(parse::number, 0), show::plain,
        "layers offloaded to a GPU";
    /// Filter of log lines, in the syntax of `tracing_subscriber::EnvFilter`.
    log: String, or(parse::text, "warn".into()), show::plain,
        "filter of log lines, such as warn or garret=debug";
}

impl Config {
    /// Returns how tokens are chosen, with `seed` where none is configured.
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
}

mod show {
    //! Values as `garret config show` writes them, so that a file may have them.

    use super::{AUTO, Path, PathBuf};

    pub(super) fn plain(value: &impl ToString) -> String {
        value.to_string()
    }

    pub(super) fn or_auto(value: &Option<impl ToString>) -> String {
        value.as_ref().map_or_else(|| AUTO.into(), ToString::to_string)
    }

    pub(super) fn path(value: &Path) -> String {
        value.display().to_string()
    }

    pub(super) fn path_or_auto(value: &Option<PathBuf>) -> String {
        value.as_deref().map_or_else(|| AUTO.into(), path)
    }

    pub(super) fn path_or_off(value: &Option<PathBuf>) -> String {
        value.as_deref().map_or_else(|| "off".into(), path)
    }
}

/// Room for the whole window of the starter model, whose state takes 23 MB per 1,000 tokens.
const DEFAULT_SNAPSHOT_MIB: u32 = 256;

/// The system prompt of a model to which nobody says otherwise.
const DEFAULT_SYSTEM_PROMPT: &str = "You are a helpful assistant. Answer briefly and use what was said earlier in the conversation.";
