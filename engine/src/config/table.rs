//! The keys there are.

/// One key of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its name in the file; upper-cased after `GARRET_` in the environment; with `-` for `_` after
    /// `--` on the command line.
    pub name: &'static str,
    /// What it does, in one line.
    pub help: &'static str,
}

impl Key {
    /// Name of its environment variable.
    pub fn variable(&self) -> String {
        format!("GARRET_{}", self.name.to_uppercase())
    }
}

/// All keys, in the order in which they are shown.
pub const KEYS: &[Key] = &[
    Key { name: "model", help: "GGUF file of the chat model" },
    Key {
        name: "compactor_model",
        help: "GGUF file of a model of its own that sums up; auto is the chat model",
    },
    Key {
        name: "inferrer_model",
        help: "GGUF file of a model of its own that infers; auto is the chat model",
    },
    Key { name: "embedder", help: "GGUF file of the embedder; off searches by words alone" },
    Key { name: "reranker", help: "GGUF file of a model that ranks the first hits again, or off" },
    Key { name: "models_dir", help: "folder in which models are looked for" },
    Key { name: "data", help: "folder that holds everything that is remembered" },
    Key { name: "namespace", help: "whose memory; namespaces share nothing" },
    Key { name: "window", help: "context window in tokens, at least 2048" },
    Key { name: "max_tokens", help: "most tokens of a reply" },
    Key {
        name: "memory_tokens",
        help: "most tokens of what is remembered from elsewhere; 0 turns that off",
    },
    Key {
        name: "compact_at",
        help: "percent of a full prompt from which on older turns are summed up; 0 never",
    },
    Key {
        name: "show_time",
        help: "tell the model the time, and the days of earlier messages: true or false",
    },
    Key {
        name: "companions",
        help: "off (compaction only), cold_start (when there is reason to) or turbo (every turn)",
    },
    Key {
        name: "companion_schema",
        help: "how much companions are asked: core, extended, or auto for what suits the model",
    },
    Key {
        name: "tools",
        help: "let the model look up what it doesn't see: on, off, or auto by its size and window",
    },
    Key {
        name: "tool_protocol",
        help: "how it calls tools: tags, native (as its template tells it), or auto: native if known",
    },
    Key {
        name: "system_prompt",
        help: "instructions for the model; empty leaves them to its template",
    },
    Key { name: "temperature", help: "0 always takes the likeliest token; up to 5" },
    Key { name: "top_k", help: "keep the k likeliest tokens; 0 keeps all" },
    Key { name: "top_p", help: "keep the likeliest tokens up to this probability" },
    Key { name: "min_p", help: "keep tokens this likely relative to the likeliest" },
    Key { name: "repeat_penalty", help: "1 doesn't punish repetition; up to 2" },
    Key { name: "repeat_last_n", help: "tokens the penalty looks back at" },
    Key { name: "seed", help: "seed of the random choice; auto draws one a turn" },
    Key { name: "threads", help: "threads that generate" },
    Key { name: "batch_threads", help: "threads that prefill" },
    Key { name: "batch", help: "tokens decoded in one call; smaller cancels sooner" },
    Key { name: "kv_type", help: "number format of the KV cache: f16 or q8_0" },
    Key {
        name: "snapshot",
        help: "keep the KV cache for the next start: off, shutdown, or idle (wears a device more)",
    },
    Key { name: "snapshot_mib", help: "most MiB of such a snapshot; a larger one isn't kept" },
    Key { name: "gpu_layers", help: "layers offloaded to a GPU" },
    Key { name: "log", help: "filter of log lines, such as warn or garret=debug" },
];

/// The known key nearest to `name`, if one is near enough to be what was meant.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase().replace('-', "_");
    KEYS.iter()
        .map(|key| (strsim::jaro_winkler(&name, key.name), key.name))
        .filter(|(score, _)| *score > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

pub(super) fn find_variable(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.variable() == name)
}

pub(super) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}
