//! Errors, in words that say what to do.

use std::path::PathBuf;

use crate::check::CheckError;

/// Reason why a model, a context, an embedder or a reranker isn't there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// llama.cpp couldn't be initialised in this process.
    #[error("llama.cpp couldn't be started: {0}")]
    Backend(String),
    /// No file at the path.
    #[error("there is no model file at {}: check the path", path.display())]
    Missing {
        /// Path that was looked at.
        path: PathBuf,
    },
    /// The path leads to a directory, a socket or the like.
    #[error("{} isn't a file: give the path of a GGUF file", path.display())]
    NotAFile {
        /// Path that was given.
        path: PathBuf,
    },
    /// llama.cpp takes paths as UTF-8 without NUL only.
    #[error("llama.cpp can't open {}, whose name isn't plain UTF-8: rename it", path.display())]
    PathEncoding {
        /// Path that was given.
        path: PathBuf,
    },
    /// llama.cpp refused the file.
    #[error("{} can't be loaded ({reason}): check the file or fetch it again", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// llama.cpp's own words, or what was found out here.
        reason: String,
    },
    /// The window is larger than the model can make sense of.
    #[error(
        "a window of {wanted} tokens is more than the {trained} this model was trained for: \
         ask for at most {trained}"
    )]
    WindowTooLarge {
        /// Tokens asked for.
        wanted: u32,
        /// Tokens the model was trained for.
        trained: u32,
    },
    /// An option has a value that can't work.
    #[error("{option} can't be {value}: it must be {expected}")]
    BadOption {
        /// Name of the option.
        option: &'static str,
        /// Value that was given.
        value: String,
        /// Values that would do.
        expected: String,
    },
    /// llama.cpp couldn't make a context.
    #[error(
        "no context of {n_ctx} tokens could be made ({reason}): \
         free memory or ask for a smaller window"
    )]
    Context {
        /// Tokens asked for.
        n_ctx: u32,
        /// llama.cpp's own words.
        reason: String,
    },
    /// The model doesn't turn texts into vectors.
    #[error("this model is no embedder ({reason}): choose one that pools by mean, cls or last")]
    NotAnEmbedder {
        /// Reason, such as what the model does instead.
        reason: String,
    },
    /// The file isn't what it is given for.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// The operating system gave no thread.
    #[error("the model's thread couldn't be started: {0}")]
    Thread(#[from] std::io::Error),
}

/// Reason why a reply can't be started or ends early.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChatError {
    /// A prompt without tokens, so that there is nothing to continue.
    #[error("the prompt is empty: give at least one token")]
    EmptyPrompt,
    /// Bytes that are no state of this cache.
    #[error("the saved state is none of this model's in this window: the prompt is read again")]
    State,
    /// No room would be left for a reply.
    #[error("the prompt has {tokens} tokens, but only {limit} fit beside a reply: shorten it")]
    PromptTooLong {
        /// Length of the prompt.
        tokens: usize,
        /// Longest that is taken.
        limit: usize,
    },
    /// A token id the model doesn't have: the prompt was made for another model.
    #[error("prompt token {index} has id {id}, but the model's ids end at {last}: encode it again")]
    UnknownToken {
        /// Position in the prompt.
        index: usize,
        /// The id.
        id: i32,
        /// Largest id of the model.
        last: i32,
    },
    /// A sampling or length parameter has a value that can't work.
    #[error("{field} must be {expected}")]
    BadParameter {
        /// Name of the parameter.
        field: &'static str,
        /// Values that would do.
        expected: &'static str,
    },
    /// The grammar isn't GBNF with a rule `root`, or goes beyond the bounds.
    #[error("the grammar can't be used: {0}")]
    Grammar(String),
    /// The grammar allows no token of this vocabulary here.
    #[error("the grammar allows none of the model's tokens at this point: widen it")]
    GrammarDeadEnd,
    /// Too many requests wait already.
    #[error("{limit} requests are waiting for the model already: try again later")]
    Busy {
        /// Most requests held at once.
        limit: usize,
    },
    /// The cache has no free cells, even without any companion.
    #[error("the model's cache has no room for this request: shorten the prompt")]
    NoRoom,
    /// A NaN or an infinity came out.
    #[error("the model's weights give no numbers: check the file")]
    NotFinite,
    /// llama.cpp couldn't decode.
    #[error("llama.cpp failed to decode (code {0}): the model's cache was cleared, try again")]
    Decode(i32),
    /// A bug was contained.
    #[error("the model's thread panicked in this request: its cache was cleared, try again")]
    Panicked,
    /// The owner thread is gone.
    #[error("the model has stopped: load it again")]
    Stopped,
}
