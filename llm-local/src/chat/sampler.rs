//! Choice of the next token.
//!
//! With a grammar the choice is made without it first and only the chosen token is checked; the
//! whole vocabulary is masked only when that token is refused. Masking costs about 10 ms at 49,000
//! ids, checking one token microseconds.

use std::io;

use garret_core::model::Sampling;
use garret_core::token::Token;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;

use crate::error::ChatError;
use crate::grammar;
use crate::model::Model;

/// Chooses the tokens of one reply.
#[derive(Debug)]
pub(super) struct Sampler {
    chain: LlamaSampler,
    grammar: Option<LlamaSampler>,
    candidates: Vec<LlamaTokenData>,
}

impl Sampler {
    /// Creates a sampler for a reply to a prompt that ends with `tail`.
    ///
    /// # Errors
    /// When a parameter is out of range or the grammar can't be used.
    pub(super) fn new(
        model: &Model,
        sampling: &Sampling,
        grammar: Option<&str>,
        tail: &[LlamaToken],
    ) -> Result<Self, ChatError> {
        check(sampling)?;
        let grammar = grammar.map(|text| compile(model, text)).transpose()?;
        let recent = tail.len().saturating_sub(sampling.repeat_last_n as usize);
        let mut chain = chain(model, sampling);
        for token in &tail[recent..] {
            accept(&mut chain, *token)?;
        }
        Ok(Self { chain, grammar, candidates: Vec::new() })
    }

    /// Chooses the next token by `logits` (one for each id, none of them NaN), which counts as
    /// said.
    pub(super) fn next(&mut self, model: &Model, logits: &[f32]) -> Result<LlamaToken, ChatError> {
        let token = match self.choose(logits, None, model) {
            Some(token) if self.allows(model, token) => token,
            Some(_) => self.choose_masked(logits, model).ok_or(ChatError::GrammarDeadEnd)?,
            None => return Err(ChatError::NotFinite),
        };
        accept(&mut self.chain, token)?;
        if let Some(grammar) = &mut self.grammar
            && !model.is_end(Token(token.0))
        {
            accept(grammar, token)?;
        }
        Ok(token)
    }

    /// Runs the chain over all ids, or over those that `mask` leaves.
    fn choose(
        &mut self,
        logits: &[f32],
        mask: Option<&mut LlamaSampler>,
        model: &Model,
    ) -> Option<LlamaToken> {
        let mut data = std::mem::take(&mut self.candidates);
        data.clear();
        let ids = (0..).map(LlamaToken);
        data.extend(ids.zip(logits).map(|(id, logit)| LlamaTokenData::new(id, *logit, 0.0)));
        let mut candidates = LlamaTokenDataArray::new(data, false);
        if let Some(mask) = mask {
            candidates.apply_sampler(mask);
            candidates.data.retain(|one| one.logit().is_finite() && speaks(model, one.id()));
        }
        let chosen = if candidates.data.is_empty() {
            None
        } else {
            candidates.apply_sampler(&mut self.chain);
            candidates.selected_token()
        };
        self.candidates = candidates.data;
        chosen
    }

    fn choose_masked(&mut self, logits: &[f32], model: &Model) -> Option<LlamaToken> {
        let mut grammar = self.grammar.take()?;
        let chosen = self.choose(logits, Some(&mut grammar), model);
        self.grammar = Some(grammar);
        chosen
    }

    /// Returns whether the grammar, if there is one, takes `token` now.
    fn allows(&mut self, model: &Model, token: LlamaToken) -> bool {
        let Some(grammar) = &mut self.grammar else { return true };
        let mut one = LlamaTokenDataArray::new(vec![LlamaTokenData::new(token, 1.0, 0.0)], false);
        one.apply_sampler(grammar);
        speaks(model, token) && one.data.first().is_some_and(|left| left.logit().is_finite())
    }
}

/// Returns whether a grammar may see `token`: the end, or text. The text of a control token would
/// satisfy the grammar, but isn't part of the reply.
fn speaks(model: &Model, token: LlamaToken) -> bool {
    !model.is_control(token) || model.is_end(Token(token.0))
}

fn accept(sampler: &mut LlamaSampler, token: LlamaToken) -> Result<(), ChatError> {
    sampler.try_accept(token).map_err(|_| ChatError::GrammarDeadEnd)
}

/// Temperature under which the likeliest token is picked: there is next to no chance of another,
/// and logits divided by much less overflow.
const COLDEST: f32 = 1e-3;

fn chain(model: &Model, sampling: &Sampling) -> LlamaSampler {
    let signed = |value: u32| i32::try_from(value).unwrap_or(i32::MAX);
    let mut stages = Vec::new();
    if sampling.repeat_penalty != 1.0 && sampling.repeat_last_n > 0 {
        let last = signed(sampling.repeat_last_n);
        let penalty = sampling.repeat_penalty;
        stages.push(LlamaSampler::penalties(model.n_vocab(), last, penalty, 0.0, 0.0));
    }
    if sampling.temperature < COLDEST {
        stages.push(LlamaSampler::greedy());
        return LlamaSampler::chain(stages, true);
    }
    if sampling.top_k > 0 {
        stages.push(LlamaSampler::top_k(signed(sampling.top_k)));
    }
    if sampling.top_p < 1.0 {
        stages.push(LlamaSampler::top_p(sampling.top_p, 1));
    }
    if sampling.min_p > 0.0 {
        stages.push(LlamaSampler::min_p(sampling.min_p, 1));
    }
    stages.push(LlamaSampler::temp(sampling.temperature));
    // llama.cpp draws a seed of its own for the largest number.
    stages.push(LlamaSampler::dist(sampling.seed.min(u32::MAX - 1)));
    LlamaSampler::chain(stages, true)
}

fn check(sampling: &Sampling) -> Result<(), ChatError> {
    let bounds = [
        ("temperature", sampling.temperature, 0.0..=5.0, "between 0.0 and 5.0"),
        ("top_p", sampling.top_p, 0.0..=1.0, "between 0.0 and 1.0"),
        ("min_p", sampling.min_p, 0.0..=1.0, "between 0.0 and 1.0"),
        ("repeat_penalty", sampling.repeat_penalty, 0.1..=10.0, "between 0.1 and 10.0"),
    ];
    for (field, value, range, expected) in bounds {
        if !range.contains(&value) {
            return Err(ChatError::BadParameter { field, expected });
        }
    }
    if sampling.repeat_last_n > LONGEST_MEMORY {
        let expected = "at most 65536";
        return Err(ChatError::BadParameter { field: "repeat_last_n", expected });
    }
    Ok(())
}

/// Most tokens the repeat penalty can look back on; its buffer is allocated at once.
const LONGEST_MEMORY: u32 = 65_536;

/// Parses a grammar on a stack that is large enough for whatever passes the bounds.
fn compile(model: &Model, text: &str) -> Result<LlamaSampler, ChatError> {
    grammar::check(text).map_err(|error| ChatError::Grammar(error.to_string()))?;
    let parsed = std::thread::scope(|scope| {
        let parser = std::thread::Builder::new().name("garret-grammar".into());
        let parse = || LlamaSampler::grammar(model.llama(), text, "root");
        let thread = parser.stack_size(PARSER_STACK).spawn_scoped(scope, parse)?;
        thread.join().map_err(|_| io::Error::other("its parser panicked"))
    });
    parsed
        .map_err(|error| ChatError::Grammar(error.to_string()))?
        .map_err(|_| ChatError::Grammar("it doesn't parse, or has no rule `root`".into()))
}

/// Stack of the parser in bytes. Left recursion is looked for by recursion, nested at most once per
/// rule: fewer than 50,000 rules pass the bounds, and a frame takes a few hundred bytes.
const PARSER_STACK: usize = 32 << 20;
