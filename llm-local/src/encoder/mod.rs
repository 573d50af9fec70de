//! [`Encoder`]: messages to exactly the tokens a model decodes, and the count of a text.
//!
//! The chat template gives special tokens and runs of text between them
//! ([`template`](crate::template)); special tokens go in by id and each run is tokenised as a whole
//! with special tokens off. Should the tokenizer still turn content into a token that structures
//! prompts (a user-defined token is recognised whatever it is told), the run is split inside that
//! spelling, so that it stays text.
//!
//! A reply that was kept with its tokens goes in by id, header before it and scaffolding after it
//! tokenised apart, exactly as it lies in the KV cache.
//!
//! Runs are cached by their text: a history that was encoded before costs no tokenisation. So are
//! words, where the tokenizer's are known to stand apart (`encoder::words`).
//!
//! Limits: a run above 32 KiB is tokenised in pieces, cut before white space where there is some,
//! since some tokenizers take quadratic time; its tokens can differ from llama.cpp's by one or two
//! at each cut, and are the same whenever it is encoded. With tokenizers that put a space before
//! every text (Llama 2, the first Mistral models), each such cut gets a space, and so does a forged
//! special token that had to be split, and text directly after a kept reply that no special token
//! ends.

use std::borrow::Cow;
use std::sync::Arc;

use garret_core::prompt::{Content, EncodeError, Message, PromptEncoder, ToolSpec};
use garret_core::token::{Token, TokenBuf};

use crate::template::{ChatTemplate, Item, TemplateError, Turn};
use crate::vocab::{SpecialIndex, TextTooLong, Vocabulary};

mod cache;
mod words;

use cache::Cache;
use words::Words;

/// Encodes prompts for one model.
#[derive(Debug)]
pub struct Encoder<V> {
    vocab: Arc<V>,
    template: ChatTemplate,
    n_tokens: usize,
    /// Flags of the ids: true where content must never turn into the id.
    guarded: Vec<bool>,
    cache: Cache,
    words: Words,
}

/// Reason why messages couldn't be encoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncoderError {
    /// The chat template refuses them.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A message is too long to be tokenised at all.
    #[error(transparent)]
    TooLong(#[from] TextTooLong),
    /// A reply was kept with tokens that this model doesn't have.
    #[error("message {index} was kept with token {id}, which this model lacks; drop its tokens")]
    ForeignTokens {
        /// Index of the message.
        index: usize,
        /// The id.
        id: i32,
    },
    /// Content becomes a structural token however it is split.
    #[error("a text becomes the structural token {id} of this model and can't be shown to it")]
    Forged {
        /// The id.
        id: i32,
    },
}

impl<V: Vocabulary> Encoder<V> {
    /// Creates an encoder for the model with this vocabulary and template.
    pub fn new(vocab: Arc<V>, template: ChatTemplate) -> Self {
        let n_tokens = vocab.n_tokens();
        let mut guarded = vec![false; n_tokens];
        for id in template.guarded().ids() {
            if let Some(flag) = index_of(id).and_then(|at| guarded.get_mut(at)) {
                *flag = true;
            }
        }
        let cache = Cache::new(CACHE_BYTES);
        let words = Words::new(&*vocab);
        Self { vocab, template, n_tokens, guarded, cache, words }
    }

    /// Returns the template that is rendered.
    pub fn template(&self) -> &ChatTemplate {
        &self.template
    }

    fn append_run(&mut self, run: &str, out: &mut TokenBuf<'_>) -> Result<(), Failure> {
        let tokens = match self.cache.get(run) {
            Some(tokens) => tokens,
            None => {
                let mut tokens = Vec::with_capacity(run.len() / 3 + 1);
                self.tokenize(run, &mut tokens)?;
                let tokens: Arc<[Token]> = tokens.into();
                self.cache.insert(run, tokens.clone());
                tokens
            }
        };
        out.extend(tokens.iter().copied()).map_err(|_| Failure::Full)
    }

    /// Appends the kept tokens of a message, less those that `next` puts in anyway.
    fn append_kept(
        &self,
        index: usize,
        message: &Message<'_>,
        next: Option<&Item>,
        out: &mut TokenBuf<'_>,
    ) -> Result<(), Failure> {
        let in_range = |token: &Token| index_of(*token).is_some_and(|at| at < self.n_tokens);
        if let Some(foreign) = message.tokens.iter().find(|token| !in_range(token)) {
            return Err(EncoderError::ForeignTokens { index, id: foreign.0 }.into());
        }
        let last = message.tokens.iter().last();
        let repeated = matches!((last, next), (Some(a), Some(Item::Special(b))) if a == *b);
        let count = message.tokens.len() - usize::from(repeated);
        out.extend(message.tokens.iter().take(count)).map_err(|_| Failure::Full)
    }

    /// Appends the tokens of `text`, none of which is a structural one.
    fn tokenize(&mut self, text: &str, out: &mut Vec<Token>) -> Result<(), EncoderError> {
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(piece_len(rest));
            self.tokenize_piece(piece, out)?;
            rest = after;
        }
        Ok(())
    }

    fn tokenize_piece(&mut self, text: &str, out: &mut Vec<Token>) -> Result<(), EncoderError> {
        let start = out.len();
        self.words.tokenize(&*self.vocab, text, out)?;
        if self.first_guarded(out, start).is_none() {
            return Ok(());
        }
        out.truncate(start);
        self.tokenize_split(text, split_points(self.template.guarded(), text), out)?;
        if self.first_guarded(out, start).is_none() {
            return Ok(());
        }
        out.truncate(start);
        self.tokenize_split(text, text.char_indices().map(|(at, _)| at).collect(), out)?;
        match self.first_guarded(out, start) {
            None => Ok(()),
            Some(Token(id)) => Err(EncoderError::Forged { id }),
        }
    }

    fn tokenize_split(
        &self,
        text: &str,
        points: Vec<usize>,
        out: &mut Vec<Token>,
    ) -> Result<(), TextTooLong> {
        let mut from = 0;
        for to in points.into_iter().chain([text.len()]) {
            match text.get(from..to) {
                Some("") | None => {}
                Some(part) => self.vocab.tokenize(part, out)?,
            }
            from = to;
        }
        Ok(())
    }

    fn first_guarded(&self, tokens: &[Token], from: usize) -> Option<Token> {
        let is_guarded = |token: &&Token| {
            index_of(**token).and_then(|at| self.guarded.get(at)).is_none_or(|flag| *flag)
        };
        tokens.get(from..)?.iter().find(is_guarded).copied()
    }
}

impl<V: Vocabulary> PromptEncoder for Encoder<V> {
    type Error = EncoderError;

    fn encode(
        &mut self,
        messages: &[Message<'_>],
        out: &mut TokenBuf<'_>,
        ends: &mut [usize],
    ) -> Result<(), EncodeError<EncoderError>> {
        let contents: Vec<Cow<'_, str>> = messages.iter().map(|m| joined(&m.content)).collect();
        let turns: Vec<Turn<'_>> = messages
            .iter()
            .zip(&contents)
            .map(|(message, content)| Turn {
                role: message.role,
                content,
                kept: !message.tokens.is_empty(),
            })
            .collect();
        let layout = self.template.layout(&turns, true).map_err(EncoderError::from)?;
        let start = out.len();
        let mut lengths = Vec::with_capacity(layout.items.len() + 1);
        lengths.push(0);
        for (at, item) in layout.items.iter().enumerate() {
            match item {
                Item::Special(token) => out.push(*token).map_err(|_| EncodeError::Full)?,
                Item::Run(run) => self.append_run(run, out)?,
                Item::Kept(index) => {
                    let next = layout.items.get(at + 1);
                    if let Some(message) = messages.get(*index) {
                        self.append_kept(*index, message, next, out)?;
                    }
                }
            }
            lengths.push(out.len() - start);
        }
        for (end, items) in ends.iter_mut().zip(&layout.ends) {
            *end = start + lengths.get(*items).copied().unwrap_or_default();
        }
        Ok(())
    }

    fn set_tools(&mut self, tools: &[ToolSpec<'_>]) -> bool {
        self.template.set_tools(tools)
    }

    /// Counts exactly below 4 KiB. Above, the text is counted in pieces of at most 4 KiB, cut at
    /// white space where there is some, which can differ from the whole by a token or two per
    /// piece.
    fn count(
        &mut self,
        content: &Content<'_>,
        limit: usize,
    ) -> Result<usize, EncodeError<EncoderError>> {
        let text = joined(content);
        let mut rest: &str = &text;
        let mut tokens = Vec::new();
        let mut count = 0;
        while !rest.is_empty() && count <= limit {
            let (chunk, after) = rest.split_at(chunk_len(rest, COUNT_CHUNK_BYTES));
            tokens.clear();
            self.tokenize(chunk, &mut tokens)?;
            count += tokens.len();
            rest = after;
        }
        Ok(count)
    }

    fn detokenize(&self, token: Token, out: &mut dyn FnMut(&[u8])) {
        out(&self.vocab.detokenize(token));
    }
}

/// Reason why a buffer isn't filled.
enum Failure {
    Full,
    Encoder(EncoderError),
}

impl From<EncoderError> for Failure {
    fn from(error: EncoderError) -> Self {
        Self::Encoder(error)
    }
}

impl From<Failure> for EncodeError<EncoderError> {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Full => Self::Full,
            Failure::Encoder(error) => Self::Encoder(error),
        }
    }
}

/// Returns the parts of `content` as one text, copied only if there are several.
fn joined<'a>(content: &Content<'a>) -> Cow<'a, str> {
    let mut parts = content.parts();
    let first = parts.next().unwrap_or_default();
    parts.fold(Cow::Borrowed(first), |text, part| text + part)
}

fn index_of(token: Token) -> Option<usize> {
    usize::try_from(token.0).ok()
}

/// Returns where to cut `text` so that no spelling of `guarded` is left whole: after the first
/// character of each, overlapping ones included.
fn split_points(guarded: &SpecialIndex, text: &str) -> Vec<usize> {
    let after_first = |start: usize| {
        text.get(start..).and_then(|rest| rest.chars().next()).map(|c| start + c.len_utf8())
    };
    let mut points: Vec<usize> =
        guarded.candidates(text).iter().filter_map(|found| after_first(found.start)).collect();
    points.dedup();
    points
}

/// Returns the bytes of the piece of `text` that is tokenised next: all of it, unless it is long.
fn piece_len(text: &str) -> usize {
    chunk_len(text, RUN_BYTES)
}

/// Returns a length of at most `most` bytes from the start of `text`, ending before white space if
/// there is some in the second half.
fn chunk_len(text: &str, most: usize) -> usize {
    if text.len() <= most {
        return text.len();
    }
    let end = text.floor_char_boundary(most.max(4));
    let tail = text.get(end / 2..end).and_then(|tail| tail.rfind([' ', '\n']));
    tail.map(|at| end / 2 + at).filter(|at| *at > 0).unwrap_or(end)
}

/// Bytes of one generation of cached runs: a prompt of 64K tokens takes about as many.
const CACHE_BYTES: usize = 1 << 20;
/// Largest piece that is tokenised in one go, in bytes.
const RUN_BYTES: usize = 32 << 10;
/// Largest piece that [`Encoder::count`] tokenises in one go, in bytes.
const COUNT_CHUNK_BYTES: usize = 4 << 10;
