//! llama.cpp for Garret, through llama-cpp-2: this crate keeps the invariants those bindings leave
//! to their user.
//!
//! - [`Backend`] initialises llama.cpp once per process and turns its log into `tracing` events.
//! - [`Model`] is a file in memory, shared by contexts and threads.
//! - [`LlamaChat`] owns one context on one thread: the main role and its companions are sequences
//!   of one KV cache, prompts reuse the longest prefix the cache holds, replies stream through
//!   bounded channels, a cancelled or preempted decode returns at once.
//! - [`Embedder`] turns texts of any length into vectors.
//! - [`Reranker`] says how well texts answer a query.
//!
//! ```no_run
//! use garret_core::model::{ChatModel, Event, ModelRole, Reply, Request, Sampling};
//! use garret_core::token::Token;
//! use garret_llm::{Backend, ChatOptions, LlamaChat, Model, ModelOptions};
//!
//! let path = std::path::Path::new("model.gguf");
//! let model = Model::load(Backend::start()?, path, ModelOptions::default())?;
//! let chat = LlamaChat::spawn(model, ChatOptions::default())?;
//! let mut reply = chat.start(Request {
//!     role: ModelRole::Main,
//!     prompt: &[Token(1), Token(2)],
//!     max_tokens: 32,
//!     sampling: Sampling::default(),
//!     grammar: None,
//! })?;
//! smol::block_on(async {
//!     while let Some(event) = std::future::poll_fn(|cx| reply.poll_event(cx)).await {
//!         if let Event::Piece { bytes, .. } = event? {
//!             print!("{}", String::from_utf8_lossy(&bytes));
//!         }
//!     }
//!     Ok::<(), garret_llm::ChatError>(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Limits
//!
//! A failed assertion inside ggml ends the process, whatever is done here; so what matters is
//! stored before a model runs. Interrupting a decode works on the CPU; a GPU finishes its
//! micro-batch. Models with a recurrent state are decoded from the start whenever the prompt
//! changes anywhere but at its end.

mod backend;
mod chat;
pub mod check;
mod embed;
pub mod encoder;
mod error;
pub mod estimate;
pub mod gguf;
pub mod grammar;
mod log;
mod model;
mod pooled;
mod rerank;
pub mod template;
pub mod vocab;

pub use backend::Backend;
pub use chat::{ChatOptions, LlamaChat, LlamaReply, MAX_EVENTS, MAX_REQUESTS};
pub use embed::Embedder;
pub use error::{ChatError, LoadError};
pub use model::{Model, ModelOptions, SlidingWindow};
pub use pooled::PoolingOptions;
pub use rerank::Reranker;
