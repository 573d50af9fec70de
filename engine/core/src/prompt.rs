//! Messages of a prompt, and the port that turns them into exactly the tokens a model decodes.

use crate::token::{Token, TokenBuf, TokenBytes};

/// Speaker of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// Instructions that hold for the whole conversation.
    System,
    /// The person, or the program that speaks for one.
    User,
    /// The model.
    Assistant,
    /// A tool that the model called in the form of its template; see [`PromptEncoder::set_tools`].
    Tool,
}

impl Role {
    /// Returns the name that chat templates use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// Text made of up to [`Content::MAX_PARTS`] borrowed parts that are read as one.
///
/// Lets a shortened message be shown (head, marker, tail) without copying it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Content<'a> {
    parts: [&'a str; MAX_PARTS],
}

impl<'a> Content<'a> {
    /// Most parts one content can have.
    pub const MAX_PARTS: usize = MAX_PARTS;

    /// Creates content of exactly these parts, in this order.
    pub const fn from_parts<const N: usize>(given: [&'a str; N]) -> Self {
        const { assert!(N <= MAX_PARTS, "content has at most six parts") };
        let mut parts = [""; MAX_PARTS];
        let (slots, _) = parts.split_at_mut(N);
        slots.copy_from_slice(&given);
        Self { parts }
    }

    /// Returns the parts that aren't empty, in order.
    pub fn parts(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.parts.iter().copied().filter(|part| !part.is_empty())
    }

    /// Returns the length in bytes of UTF-8.
    pub fn len(&self) -> usize {
        self.parts.iter().fold(0, |sum, part| part.len().saturating_add(sum))
    }

    /// Returns whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'a> From<&'a str> for Content<'a> {
    fn from(text: &'a str) -> Self {
        Self::from_parts([text])
    }
}

/// Number of parts of a content, for [`Content::MAX_PARTS`].
const MAX_PARTS: usize = 6;

/// A message as the model is to see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Speaker of the message.
    pub role: Role,
    /// Text of the message. It is data: text in it that spells a special token stays text.
    pub content: Content<'a>,
    /// Token ids of a reply that this very model generated. They are used as they are in place of
    /// tokenising `content` again, so that the KV cache stays valid. Empty for any other message.
    pub tokens: TokenBytes<'a>,
}

impl<'a> Message<'a> {
    /// Creates a message whose content is to be tokenised.
    pub fn new(role: Role, content: impl Into<Content<'a>>) -> Self {
        Self { role, content: content.into(), tokens: TokenBytes::new(&[]) }
    }
}

/// A tool, as a model is told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolSpec<'a> {
    /// Name in a call: letters, digits, `-` and `_`.
    pub name: &'a str,
    /// Use of the tool, in words for the model.
    pub description: &'a str,
    /// Parameters that a call must have.
    pub parameters: &'a [ToolParameter<'a>],
}

/// A parameter of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolParameter<'a> {
    /// Name of the parameter.
    pub name: &'a str,
    /// Kind of its values.
    pub kind: ParameterKind,
}

/// Kind of a parameter's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParameterKind {
    /// Any text.
    Text,
    /// A whole number.
    Integer,
}

impl ParameterKind {
    /// Returns the name in a JSON schema.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Integer => "integer",
        }
    }
}

/// Turns messages into the token run that is decoded, and counts text.
///
/// What is counted is what is decoded: an implementation has one path for both. It must be
/// deterministic, and a run must be stable: the run of a longer conversation begins with the run of
/// a shorter one up to the end of their last common message, unless the chat template itself
/// renders the past differently.
pub trait PromptEncoder {
    /// Reason why a prompt couldn't be encoded.
    type Error: core::error::Error + Send + Sync + 'static;

    /// Appends to `out` the run of `messages`, followed by what the template puts before a reply.
    /// `ends[i]` receives the length of the run up to the end of message `i`; when `ends` is
    /// shorter than `messages`, the rest isn't reported.
    ///
    /// # Errors
    /// [`EncodeError::Full`] when the run doesn't fit into `out`; [`EncodeError::Encoder`] when the
    /// template refuses the messages.
    fn encode(
        &mut self,
        messages: &[Message<'_>],
        out: &mut TokenBuf<'_>,
        ends: &mut [usize],
    ) -> Result<(), EncodeError<Self::Error>>;

    /// Sets the tools that prompts which begin with a system message tell the model of, in the form
    /// of its own template; an empty slice sets none. The model then writes calls as
    /// [`TagScanner::with_calls`](crate::scan::TagScanner::with_calls) reads them, and
    /// [`Role::Tool`] answers them. Returns false, and sets no tools, when the template has no form
    /// for them that is known.
    fn set_tools(&mut self, tools: &[ToolSpec<'_>]) -> bool {
        tools.is_empty()
    }

    /// Counts the tokens of `content` by itself. Stops early and returns a number above `limit`
    /// once it is certain that the count exceeds `limit`, so that a huge text costs no more than a
    /// large one.
    ///
    /// # Errors
    /// [`EncodeError::Encoder`] when the tokenizer fails.
    fn count(
        &mut self,
        content: &Content<'_>,
        limit: usize,
    ) -> Result<usize, EncodeError<Self::Error>>;

    /// Gives the bytes that `token` stands for to `out`, perhaps in several pieces: a special token
    /// as templates spell it, nothing for an id that the vocabulary lacks. Those of all tokens of a
    /// run, one after another, are the prompt as a text.
    fn detokenize(&self, token: Token, out: &mut dyn FnMut(&[u8]));
}

/// Reason why a [`PromptEncoder`] gave no run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError<E> {
    /// The run is longer than the buffer.
    #[error("the prompt doesn't fit into the token buffer")]
    Full,
    /// The template or the tokenizer failed.
    #[error(transparent)]
    Encoder(#[from] E),
}
