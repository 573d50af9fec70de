//! Port for a chat model: llama.cpp in production, a scripted one in tests.
//!
//! The port is poll-based, so that core needs no executor: a reply is a stream of [`Event`]s that
//! ends with [`Event::Finished`] or an error.

use core::fmt;
use core::str::FromStr;
use core::task::{Context, Poll};

use crate::token::Token;

/// Use of a model. Each role decodes on its own sequence of one KV cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ModelRole {
    /// Answers the user.
    Main,
    /// Summarises what leaves the window.
    Compactor,
    /// Works out what the user is after.
    Inferrer,
    /// Builds, in time that nobody waits for, the prefix that is to replace the main one. Asked
    /// with [`Request::max_tokens`] 0; the next [`ModelRole::Main`] request that begins like it
    /// takes it over.
    Rebase,
}

/// Facts about a loaded model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelFacts {
    /// Tokens the context can hold.
    pub n_ctx: u32,
    /// SHA-256 over what changes token ids or logits: the weights file.
    pub fingerprint: [u8; 32],
    /// Number of its weights, if that is known.
    pub parameters: Option<u64>,
}

/// Type of the numbers in which a context keeps keys and values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KvType {
    /// 16-bit floats: exact and fast.
    #[default]
    F16,
    /// Blocks of 8-bit integers: half the memory, about half the prefill speed on a CPU; needs
    /// flash attention.
    Q8_0,
}

impl KvType {
    /// Returns the name in the configuration: `f16` or `q8_0`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::Q8_0 => "q8_0",
        }
    }
}

impl fmt::Display for KvType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for KvType {
    type Err = UnknownKvType;

    fn from_str(name: &str) -> Result<Self, UnknownKvType> {
        [Self::F16, Self::Q8_0].into_iter().find(|kv| kv.as_str() == name).ok_or(UnknownKvType)
    }
}

/// A type of KV cache that doesn't exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it must be f16 (exact) or q8_0 (half the memory)")]
pub struct UnknownKvType;

/// Choice of the next token. A field at its neutral value switches that stage off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// 0 picks the likeliest token; above, logits are divided by it. 0.0 to 5.0.
    pub temperature: f32,
    /// Keep the `top_k` likeliest tokens; 0 keeps all.
    pub top_k: u32,
    /// Keep the smallest set whose probability reaches it; 1.0 keeps all.
    pub top_p: f32,
    /// Keep tokens at least `min_p` times as likely as the likeliest; 0.0 keeps all.
    pub min_p: f32,
    /// Divide the logits of recent tokens by it; 1.0 changes nothing.
    pub repeat_penalty: f32,
    /// Number of recent tokens that the penalty looks at.
    pub repeat_last_n: u32,
    /// Seed of the random choice; the same seed, prompt and build give the same reply.
    pub seed: u32,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 0.7,
            top_k: 40,
            top_p: 0.95,
            min_p: 0.05,
            repeat_penalty: 1.1,
            repeat_last_n: 64,
            seed: 0,
        }
    }
}

/// A piece of work for a model.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Role on whose sequence the model decodes.
    pub role: ModelRole,
    /// The whole prompt; the model reuses the longest prefix its cache holds already.
    pub prompt: &'a [Token],
    /// Most tokens to generate. With 0 the prompt is brought into the cache and no more:
    /// [`Event::Prefilled`] and then [`Event::Finished`] with [`Finish::Length`].
    pub max_tokens: u32,
    /// Choice of the tokens.
    pub sampling: Sampling,
    /// GBNF grammar the reply must follow, with root rule `root`.
    pub grammar: Option<&'a str>,
}

/// Reason why a reply ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finish {
    /// The model ended its turn.
    Stop,
    /// `max_tokens` was reached.
    Length,
    /// [`Reply::cancel`] was called.
    Cancelled,
}

impl Finish {
    /// Returns the name on the wire: `stop`, `length` or `cancelled`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Event of a reply. They come in this order: `Prefilled` once, `Piece` any number of times,
/// `Finished` once. A cancelled reply may go straight to `Finished`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<B> {
    /// The prompt is in the cache and the first token comes next, or the reply was cancelled before
    /// and this is how far it came.
    Prefilled {
        /// Prompt tokens that were in the cache already.
        reused: u32,
        /// Prompt tokens decoded for this request.
        prefilled: u32,
    },
    /// A generated token. The bytes of consecutive pieces join to the reply; one piece may hold
    /// part of a character.
    Piece {
        /// Id of the token.
        token: Token,
        /// Bytes of the token; empty for a special one.
        bytes: B,
    },
    /// The end of the reply.
    Finished(Finish),
}

/// A model that can be asked for replies.
pub trait ChatModel {
    /// A reply in progress.
    type Reply: Reply<Error = Self::Error>;
    /// Reason why a reply can't be started or fails midway.
    type Error: core::error::Error + Send + Sync + 'static;

    /// Returns facts about the model that was loaded.
    fn facts(&self) -> ModelFacts;

    /// Starts a reply. Replies wait for each other; one for [`ModelRole::Main`] goes before
    /// waiting companions and preempts a running one between two tokens.
    ///
    /// # Errors
    /// When the request can't be met: a prompt that doesn't fit, a bad grammar, a model that
    /// stopped.
    fn start(&self, request: Request<'_>) -> Result<Self::Reply, Self::Error>;
}

/// A model whose cache can be kept while it isn't loaded.
pub trait Resumable: ChatModel {
    /// Bytes that stand for a part of the cache.
    type State: AsRef<[u8]> + Send + 'static;

    /// Returns the fingerprint of all that a state depends on beside its tokens. A state that was
    /// made under another one must not be restored: it may pass unnoticed, and the model then talks
    /// nonsense.
    fn state_fingerprint(&self) -> [u8; 32];

    /// Returns the state of what the main sequence holds of `prompt`, if it holds anything and the
    /// state takes at most `most` bytes. What it holds beyond that is given up. Blocks, after
    /// requests that go before.
    ///
    /// # Errors
    /// When the model has stopped or can't give its state.
    fn save(&self, prompt: &[Token], most: u64) -> Result<Option<Self::State>, Self::Error>;

    /// Makes the main sequence hold what [`Resumable::save`] gave, in place of what it holds, and
    /// returns how many tokens that are. Blocks, after requests that go before.
    ///
    /// `state` must be those very bytes: a checksum is the caller's affair.
    ///
    /// # Errors
    /// When the model refuses it; the main sequence holds nothing then.
    fn restore(&self, state: &[u8]) -> Result<u32, Self::Error>;
}

/// A reply in progress. Dropping it cancels it.
pub trait Reply: Unpin {
    /// Bytes of one piece.
    type Bytes: AsRef<[u8]>;
    /// Reason why the reply fails; that of [`ChatModel::Error`].
    type Error: core::error::Error + Send + Sync + 'static;

    /// Returns the next event; `None` after [`Event::Finished`] or an error.
    #[allow(clippy::type_complexity, reason = "the shape every stream has")]
    fn poll_event(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Event<Self::Bytes>, Self::Error>>>;

    /// Asks the model to stop within one decode batch; [`Event::Finished`] follows.
    fn cancel(&self);
}

/// Reason why a model that gives numbers for whole texts (an embedder, a reranker) gave none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PoolingError {
    /// A NaN or an infinity, or nothing at all, came out.
    #[error("the model's weights give no numbers: check the file")]
    NotFinite,
    /// The backend failed to decode, with a code of its own.
    #[error("the model failed to decode (code {0}): try again with fewer texts")]
    Decode(i32),
    /// A bug in the model's thread was contained.
    #[error("the model's thread panicked in this request: try again")]
    Panicked,
    /// The model's thread is gone.
    #[error("the model has stopped: load it again")]
    Stopped,
    /// The caller's slice isn't as long as what was asked for.
    #[error("a slice of {given} numbers was given for {needed}: give one of that length")]
    Length {
        /// Numbers that were asked for.
        needed: usize,
        /// Length of the slice.
        given: usize,
    },
    /// A reason of another backend, in its own words.
    #[error("{0}")]
    Other(&'static str),
}

impl PoolingError {
    /// Checks that a slice of `given` numbers has room for exactly the `needed` ones.
    ///
    /// # Errors
    /// [`PoolingError::Length`] when it hasn't.
    pub const fn check_length(needed: usize, given: usize) -> Result<(), Self> {
        if needed == given { Ok(()) } else { Err(Self::Length { needed, given }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kv_types_are_read_as_they_are_named() {
        for kv in [KvType::F16, KvType::Q8_0] {
            assert_eq!(kv.as_str().parse(), Ok(kv));
        }
        assert_eq!("q4_0".parse::<KvType>(), Err(UnknownKvType));
    }
}
