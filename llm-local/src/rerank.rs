//! Scores of texts by how well they answer a query, each read together with it; see [`Reranker`].

use std::path::Path;
use std::sync::Arc;

use garret_core::model::PoolingError;
use garret_core::rerank::Rerank;
use llama_cpp_2::context::params::LlamaPoolingType;
use llama_cpp_2::token::LlamaToken;

use crate::backend::Backend;
use crate::check::{CheckError, check_reranker};
use crate::error::LoadError;
use crate::model::Model;
use crate::pooled::{ContextParams, Frame, PoolingContext, PoolingOptions, tokens};

/// A cross-encoder: a model that reads a query and a text as one, and says with one number how well
/// the text answers. Cloning makes another handle to the same one.
///
/// It sees what vectors, which are made of each text alone, can't, and costs a decode for each
/// text: it is for the first few hits of a search. The numbers order texts for one query; what
/// range they are in depends on the model. The same pair has the same number whatever it is asked
/// with, save for rounding.
///
/// Query and text stand between the special tokens that the file's vocabulary wants, as in `[CLS]
/// query [SEP] text [SEP]` or `<s> query </s></s> text </s>`. A text that is too long is read in
/// windows, at most [`Reranker::MOST_WINDOWS`] of them, and counts as its best one; of a query that
/// is too long the beginning and the end are read, and the better answer counts.
///
/// ```no_run
/// use garret_llm::{Backend, Reranker, PoolingOptions};
///
/// let path = std::path::Path::new("reranker.gguf");
/// let reranker = Reranker::load(Backend::start()?, path, PoolingOptions::default())?;
/// let scores = reranker.scores("Where is the lamp?", &["In the attic.", "It rained."])?;
/// assert_eq!(scores.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Limits: llama.cpp gives all tokens the segment 0, so that a BERT that was trained to tell query
/// and text by their segments (the ms-marco models) does with less than it knows; XLM-RoBERTa has
/// one segment anyway. Models that want a prompt written around both (Qwen3-Reranker) are refused.
/// Text is tokenised as for an [`Embedder`](crate::Embedder).
#[derive(Clone, Debug)]
pub struct Reranker {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    pooled: PoolingContext,
    frame: Frame,
    /// Special tokens between query and text.
    between: Vec<LlamaToken>,
}

impl Reranker {
    /// Loads the GGUF file at `path` and makes its context.
    ///
    /// # Errors
    /// As [`check_reranker`] and [`Model::load`]; also when an option can't work or the context
    /// can't be made.
    pub fn load(
        backend: Arc<Backend>,
        path: &Path,
        options: PoolingOptions,
    ) -> Result<Self, LoadError> {
        check_reranker(path)?;
        let model = Model::load(backend, path, options.model)?;
        let frame = Frame::of(&model);
        let between = between(&model);
        if between.is_empty() {
            let reason = "its vocabulary names no token between query and text".to_owned();
            return Err(CheckError::NotAReranker { path: path.into(), reason }.into());
        }
        let special = u32::try_from(frame.len() + between.len()).unwrap_or(u32::MAX);
        let options = ContextParams {
            name: "garret-reranker",
            threads: options.threads,
            max_tokens: options.max_tokens,
            least: special.saturating_add(2 * LEAST_OF_TEXT as u32),
            pooling: LlamaPoolingType::Rank,
        };
        let pooled = PoolingContext::new(model, options)?;
        Ok(Self { inner: Arc::new(Inner { pooled, frame, between }) })
    }

    /// Returns how well each of `texts` answers `query`, in order; more is better. Blocks until it
    /// is known.
    ///
    /// # Errors
    /// When llama.cpp fails, or the weights give no numbers.
    pub fn scores(&self, query: &str, texts: &[&str]) -> Result<Vec<f32>, PoolingError> {
        let (runs, texts_of_runs) = self.inner.runs(query, texts);
        let answers = self.inner.pooled.ask(runs)?;
        let mut best = vec![f32::NEG_INFINITY; texts.len()];
        for (text, answer) in texts_of_runs.into_iter().zip(&answers) {
            let score = answer.first().copied().ok_or(PoolingError::NotFinite)?;
            best[text] = best[text].max(score);
        }
        Ok(best)
    }

    /// Most tokens of a query that is read as a whole: half of what query and text may have
    /// together.
    pub fn max_query_tokens(&self) -> usize {
        self.inner.room() / 2
    }

    /// Most windows in which one text is read, together with one part of the query.
    pub const MOST_WINDOWS: usize = 4;

    /// The model behind it.
    pub fn model(&self) -> &Arc<Model> {
        self.inner.pooled.model()
    }
}

impl Rerank for Reranker {
    fn score_into(
        &self,
        query: &str,
        texts: &[&str],
        scores: &mut [f32],
    ) -> Result<(), PoolingError> {
        PoolingError::check_length(texts.len(), scores.len())?;
        scores.copy_from_slice(&self.scores(query, texts)?);
        Ok(())
    }
}

impl Inner {
    /// Returns the tokens that query and text have room for.
    fn room(&self) -> usize {
        self.pooled.window() - self.frame.len() - self.between.len()
    }

    /// Returns each window of each text with each part of the query before it, and which text that
    /// is.
    fn runs(&self, query: &str, texts: &[&str]) -> (Vec<Vec<LlamaToken>>, Vec<usize>) {
        let vocab = self.pooled.model().llama().vocab();
        let query = tokens(&vocab, query);
        let parts = ends(&query, self.room() / 2);
        let mut runs = Vec::new();
        let mut of = Vec::new();
        for (number, text) in texts.iter().enumerate() {
            // Beyond that many bytes none of the tokens that are read can begin: the longest word of a
            // vocabulary is far shorter.
            let most = self.room().saturating_mul(Reranker::MOST_WINDOWS * BYTES_OF_TOKEN);
            let text = tokens(&vocab, &text[..text.floor_char_boundary(most)]);
            for part in &parts {
                for window in windows(&text, self.room() - part.len()) {
                    let Frame { before, after } = &self.frame;
                    runs.push([before, *part, &self.between, window, after].concat());
                    of.push(number);
                }
            }
        }
        (runs, of)
    }
}

/// Returns all of a query, or its first and its last `most` tokens.
fn ends<T>(query: &[T], most: usize) -> Vec<&[T]> {
    match query.len().checked_sub(most) {
        None | Some(0) => vec![query],
        Some(over) => vec![&query[..most], &query[over..]],
    }
}

/// Returns all of a text, or what there is of it in windows of `size` tokens, each of which begins
/// with the last quarter of the one before.
fn windows<T>(text: &[T], size: usize) -> Vec<&[T]> {
    let step = (size - size / 4).max(1);
    let behind = text.len().saturating_sub(size).div_ceil(step);
    let starts = (0..=behind).take(Reranker::MOST_WINDOWS).map(|window| window * step);
    starts.map(|start| &text[start..text.len().min(start + size)]).collect()
}

/// Returns the tokens between query and text: llama.cpp's own rule for rerankers.
fn between(model: &Model) -> Vec<LlamaToken> {
    let vocab = model.llama().vocab();
    let eos = vocab.eos();
    let sep = vocab.sep();
    let eos = if eos == NO_TOKEN { sep } else { eos };
    let wanted = [(vocab.should_add_eos(), eos), (vocab.should_add_sep(), sep)];
    let wanted = wanted.into_iter().filter(|(add, token)| *add && *token != NO_TOKEN);
    wanted.map(|(_, token)| token).collect()
}

/// Id by which llama.cpp says that a vocabulary lacks a token.
const NO_TOKEN: LlamaToken = LlamaToken(-1);

/// Fewest tokens of a text, and of a query, that a window of use has room for.
const LEAST_OF_TEXT: usize = 8;
/// Bytes of the longest word that a token may stand for.
const BYTES_OF_TOKEN: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_in_windows_that_overlap() {
        let text: Vec<u32> = (0..30).collect();
        assert_eq!(windows(&text[..0], 8), [&text[..0]]);
        assert_eq!(windows(&text[..8], 8), [&text[..8]]);
        assert_eq!(windows(&text[..9], 8), [&text[..8], &text[6..9]]);
        assert_eq!(windows(&text[..20], 8), [&text[..8], &text[6..14], &text[12..20]]);
        assert_eq!(windows(&text, 8).len(), Reranker::MOST_WINDOWS, "as much as is bearable");
    }

    #[test]
    fn a_query_is_read_whole_or_at_both_ends() {
        let query: Vec<u32> = (0..9).collect();
        assert_eq!(ends(&query, 9), [&query[..]]);
        assert_eq!(ends(&query, 4), [&query[..4], &query[5..]]);
    }
}
