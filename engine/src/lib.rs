//! Garret gives a local model a memory: what was said is durable, a prompt never exceeds the
//! window, and a receipt says what each turn cost.
//!
//! A namespace of memory by itself needs no model:
//!
//! ```
//! use garret::config::{Config, Sources};
//! use garret_core::time::{Confidence, WallTime};
//! use garret_storage::search::Search;
//!
//! # let folder = tempfile::tempdir()?;
//! # let text = format!("data = {:?}\nmodels_dir = 'm'", folder.path().join("data"));
//! // Flags, `GARRET_*` and the user's own file come in the same way.
//! let file = Some(("garret.toml".into(), text));
//! let config = Config::resolve(Sources { file, ..Sources::default() })?;
//! let store = garret::open::store(&config)?;
//!
//! let at = WallTime { unix_ms: 1_767_225_600_000, confidence: Confidence::Good };
//! store.accept(&"garden".parse()?, "The bees swarmed, they hang in the oak.", at)?;
//! let hits = store.find(&Search::new("where are the bees", 3))?.hits;
//! assert_eq!(hits[0].text, "The bees swarmed, they hang in the oak.");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With a model, [`open::agent`] makes an [`agent::Agent`] of a [`config::Config`], and
//! [`Agent::turn`](agent::Agent::turn) answers. `examples/` has the smallest programs, and a model
//! of your own stands behind the ports of `garret-core` as well as llama.cpp does.
//!
//! The [`manual`] has the guide for users, the architecture, the glossary, the decisions and how to
//! contribute.
//!
//! # The map
//!
//! | room | for |
//! |---|---|
//! | [`agent`] | a turn, from words to a durable reply; idle work |
//! | [`companion`] | short requests to a model beside the conversation |
//! | [`config`], [`open`] | settings, and what is made of them: an agent on llama.cpp |
//! | [`receipt`], [`trace`] | what a turn cost; what the model saw |
//! | [`tools`] | what a model, or its user, looks up in what is stored |
//! | [`export`] | a conversation with what the model saw, as JSON or Markdown |
//! | [`Cancel`] | what ends a reply |
//! | [`manual`] | the guide, the architecture, the glossary, and more |
//! | [`garret_core`], as `garret::core` | vocabulary, ports, decisions from values alone |
//! | [`garret_storage`], as `garret::storage` | what was said, durable; facts, summaries, search |
//! | [`garret_hal`], as `garret::hal` | clock, entropy, media, sensors, profiles |
//! | `garret_language` | what a word, a sentence, a name or a date is |
//! | `garret_llm` | llama.cpp: templates, exact tokens, the KV cache |
//! | `garret_cli` | the program `garret`, and its comparison with a plain chat |
//!
//! [`manual::architecture`] has a section for each room, private ones too, and says where to change
//! what.
//!
//! # Limits
//!
//! One process has a namespace at a time, and an agent answers one message at a time. Windows from
//! 2,048 tokens. A model needs a chat template. Search has no vectors without an embedder.
//!
//! # Dependencies
//!
//! - `garret-core`, `garret-hal`, `garret-language`, `garret-llm`, `garret-storage`: other parts.
//! - `postcard`: receipts, traces and states as they are stored.
//! - `regex-lite`: patterns in linear time, for `grep`.
//! - `serde`, `serde_json`: receipts and exports as others read them.
//! - `sha2`: fingerprints of models, and whether a prompt may begin as it did.
//! - `smol`: a turn waits for a model, a stop and nothing else.
//! - `strsim`: the key that was meant by a misspelled one.
//! - `thiserror`: error messages beside the errors.
//! - `toml`: the configuration file.
//! - `tracing`: log lines.
//!
//! Features `cuda`, `metal`, `openmp` and `vulkan` build llama.cpp with that backend.

#![forbid(unsafe_code)]

pub mod agent;
pub mod anticipate;
mod cancel;
pub mod companion;
pub mod config;
pub mod embed;
pub mod escape_control;
pub mod export;
pub mod manual;
pub mod open;
mod prompt;
pub mod receipt;
pub mod remember;
pub mod rerank;
mod state;
mod summarise;
pub mod tools;
pub mod trace;

pub use cancel::Cancel;
pub use garret_core as core;
pub use garret_hal as hal;
pub use garret_storage as storage;
