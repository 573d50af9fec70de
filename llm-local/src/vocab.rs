//! Tokenizer, as far as prompts need one: plain text to tokens, and which tokens are special.
//!
//! [`Vocabulary`] is implemented for llama.cpp's models; tests bring small ones of their own.

use std::collections::HashMap;

use garret_core::token::Token;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token_type::LlamaTokenAttr;
use llama_cpp_2::vocab::VocabType;

use crate::model::Model;

/// A tokenizer that can be told to take all text as text.
pub trait Vocabulary {
    /// Number of tokens; ids go from 0 up to it.
    fn n_tokens(&self) -> usize;

    /// Every token that text can spell and that isn't ordinary text, and how prompts begin.
    fn specials(&self) -> Specials;

    /// Appends the tokens of `text` to `out`: control tokens are not recognised in it and nothing
    /// is put before or after. User-defined tokens are recognised, as llama.cpp can't do otherwise.
    ///
    /// # Errors
    /// [`TextTooLong`] for a text that the tokenizer can't address.
    fn tokenize(&self, text: &str, out: &mut Vec<Token>) -> Result<(), TextTooLong>;

    /// The name of the patterns by which the tokenizer splits a text first, if it does and they
    /// have one.
    fn splits_by(&self) -> Option<String> {
        None
    }

    /// The bytes that `token` stands for, perhaps part of a character, a special one as templates
    /// spell it; empty for an id that there isn't.
    fn detokenize(&self, token: Token) -> Vec<u8>;
}

/// A text is longer than the tokenizer takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a text of {bytes} bytes is too long for the tokenizer; shorten it")]
pub struct TextTooLong {
    /// Length of the text.
    pub bytes: usize,
}

/// Use of a special token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecialKind {
    /// Structure of the prompt; the tokenizer takes its spelling as text when told so.
    Control,
    /// Stands for what the vocabulary can't spell.
    Unknown,
    /// A word that is always one token, whatever the tokenizer is told.
    UserDefined,
}

/// A token that isn't ordinary text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecialToken {
    /// Id of the token.
    pub id: Token,
    /// Spelling of the token in templates.
    pub text: String,
    /// Use of the token.
    pub kind: SpecialKind,
    /// True if the model ends its turn with the token.
    pub ends_generation: bool,
    /// True if the token swallows white space on its left.
    pub strips_left: bool,
    /// True if the token swallows white space on its right.
    pub strips_right: bool,
}

/// The special tokens of a vocabulary.
#[derive(Clone, Debug, Default)]
pub struct Specials {
    /// All of them.
    pub tokens: Vec<SpecialToken>,
    /// The token a text begins with, and its spelling.
    pub bos: Option<(Token, String)>,
    /// The token a text ends with, and its spelling.
    pub eos: Option<(Token, String)>,
    /// True if every prompt has to begin with `bos`.
    pub add_bos: bool,
}

/// Special tokens indexed by spelling.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpecialIndex {
    tokens: Vec<SpecialToken>,
    by_text: HashMap<Box<str>, usize>,
    /// Distinct lengths in bytes, longest first.
    lengths: Vec<usize>,
    first_bytes: Vec<bool>,
}

/// Place where a special token is spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spelling<'a> {
    pub(crate) start: usize,
    pub(crate) token: &'a SpecialToken,
}

impl Spelling<'_> {
    pub(crate) fn end(&self) -> usize {
        self.start + self.token.text.len()
    }
}

impl SpecialIndex {
    /// Indexes `tokens`; empty spellings are left out.
    pub(crate) fn new(tokens: impl IntoIterator<Item = SpecialToken>) -> Self {
        let tokens: Vec<_> = tokens.into_iter().filter(|token| !token.text.is_empty()).collect();
        let mut index = Self { first_bytes: vec![false; 256], ..Self::default() };
        for (at, token) in tokens.iter().enumerate() {
            index.by_text.entry(token.text.as_str().into()).or_insert(at);
            index.lengths.push(token.text.len());
            if let Some(flag) = first_byte(&token.text).and_then(|b| index.first_bytes.get_mut(b)) {
                *flag = true;
            }
        }
        index.lengths.sort_unstable_by(|a, b| b.cmp(a));
        index.lengths.dedup();
        index.tokens = tokens;
        index
    }

    /// Finds spellings in `text` as llama.cpp does: longest tokens first, each from left to right,
    /// none overlapping another. The result is in order of position.
    pub(crate) fn find(&self, text: &str) -> Vec<Spelling<'_>> {
        let mut all = self.candidates(text);
        all.sort_by_key(|found| (usize::MAX - found.token.text.len(), found.start));
        let mut chosen: Vec<Spelling<'_>> = Vec::new();
        for found in all {
            let at = chosen.partition_point(|other| other.start < found.start);
            let clear_left = at
                .checked_sub(1)
                .and_then(|i| chosen.get(i))
                .is_none_or(|o| o.end() <= found.start);
            let clear_right = chosen.get(at).is_none_or(|other| found.end() <= other.start);
            if clear_left && clear_right {
                chosen.insert(at, found);
            }
        }
        chosen
    }

    /// Ids of all tokens.
    pub(crate) fn ids(&self) -> impl Iterator<Item = Token> + '_ {
        self.tokens.iter().map(|token| token.id)
    }

    /// Every spelling in `text`, in order of position, overlapping ones included.
    pub(crate) fn candidates(&self, text: &str) -> Vec<Spelling<'_>> {
        let mut found = Vec::new();
        for (start, byte) in text.bytes().enumerate() {
            if !self.first_bytes.get(usize::from(byte)).copied().unwrap_or(false) {
                continue;
            }
            for len in &self.lengths {
                let spelled = text.get(start..start + len).and_then(|word| self.by_text.get(word));
                if let Some(token) = spelled.and_then(|at| self.tokens.get(*at)) {
                    found.push(Spelling { start, token });
                }
            }
        }
        found
    }
}

fn first_byte(text: &str) -> Option<usize> {
    text.bytes().next().map(usize::from)
}

impl Vocabulary for Model {
    fn n_tokens(&self) -> usize {
        self.llama().n_tokens()
    }

    fn specials(&self) -> Specials {
        self.llama().specials()
    }

    fn tokenize(&self, text: &str, out: &mut Vec<Token>) -> Result<(), TextTooLong> {
        self.llama().tokenize(text, out)
    }

    fn splits_by(&self) -> Option<String> {
        self.llama().splits_by()
    }

    fn detokenize(&self, token: Token) -> Vec<u8> {
        self.llama().detokenize(token)
    }
}

impl Vocabulary for LlamaModel {
    fn n_tokens(&self) -> usize {
        usize::try_from(self.n_vocab()).unwrap_or(0)
    }

    fn specials(&self) -> Specials {
        let vocab = self.vocab();
        let spelled = |token: LlamaToken| {
            let text = (0..vocab.n_tokens()).contains(&token.0).then(|| vocab.text(token))??;
            Some((Token(token.0), text.to_string_lossy().into_owned()))
        };
        let special = |id: i32| {
            let token = LlamaToken(id);
            let attrs = vocab.attr(token);
            let kind = match () {
                () if attrs.contains(LlamaTokenAttr::Control) => SpecialKind::Control,
                () if attrs.contains(LlamaTokenAttr::Unknown) => SpecialKind::Unknown,
                () if attrs.contains(LlamaTokenAttr::UserDefined) => SpecialKind::UserDefined,
                () => return None,
            };
            Some(SpecialToken {
                id: Token(id),
                text: spelled(token)?.1,
                kind,
                ends_generation: vocab.is_eog(token),
                strips_left: attrs.contains(LlamaTokenAttr::LStrip),
                strips_right: attrs.contains(LlamaTokenAttr::RStrip),
            })
        };
        Specials {
            tokens: (0..vocab.n_tokens()).filter_map(special).collect(),
            bos: spelled(vocab.bos()),
            eos: spelled(vocab.eos()),
            add_bos: vocab.should_add_bos(),
        }
    }

    fn tokenize(&self, text: &str, out: &mut Vec<Token>) -> Result<(), TextTooLong> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(TextTooLong { bytes: text.len() });
        }
        let tokens = self.vocab().tokenize(text.as_bytes(), false, false);
        out.extend(tokens.into_iter().map(|token| Token(token.0)));
        Ok(())
    }

    fn splits_by(&self) -> Option<String> {
        let splits = self.vocab().vocab_type() == VocabType::BPE;
        splits.then(|| self.meta_val_str("tokenizer.ggml.pre").ok()).flatten()
    }

    fn detokenize(&self, token: Token) -> Vec<u8> {
        if !(0..self.n_vocab()).contains(&token.0) {
            return Vec::new();
        }
        self.vocab().token_to_piece(LlamaToken(token.0), true, None)
    }
}

/// llama.cpp addresses a text with 31 bits.
const MAX_TEXT_BYTES: usize = 1 << 30;
