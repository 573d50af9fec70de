//! Port for a reranker: how well texts answer a query, each read together with it.
//!
//! ```
//! use garret_core::model::PoolingError;
//! use garret_core::rerank::Rerank;
//!
//! /// Scores a text by how often it holds the query.
//! #[derive(Debug)]
//! struct Counting;
//!
//! impl Rerank for Counting {
//!     fn score_into(
//!         &self,
//!         query: &str,
//!         texts: &[&str],
//!         scores: &mut [f32],
//!     ) -> Result<(), PoolingError> {
//!         PoolingError::check_length(texts.len(), scores.len())?;
//!         for (text, score) in texts.iter().zip(scores) {
//!             *score = text.matches(query).count() as f32;
//!         }
//!         Ok(())
//!     }
//! }
//!
//! let mut scores = [0.0; 2];
//! Counting.score_into("bees", &["bees and bees", "an oak"], &mut scores)?;
//! assert_eq!(scores, [2.0, 0.0]);
//! # Ok::<(), PoolingError>(())
//! ```
//!
//! Limits: a call blocks until all its scores are there; who may be called off asks for a few texts
//! at a time.

use core::fmt;

use crate::model::PoolingError;

/// A reranker: a model that scores how well texts answer a query.
pub trait Rerank: Send + Sync + fmt::Debug {
    /// Writes a finite number for each of `texts` to `scores`, in their order: the greater, the
    /// better the text answers. Numbers of one query can be compared, those of different queries
    /// can't. Blocks until they are there.
    ///
    /// # Errors
    /// [`PoolingError::Length`] when `scores` is longer or shorter than `texts`; another one when the
    /// model fails. What `scores` holds after an error means nothing.
    fn score_into(
        &self,
        query: &str,
        texts: &[&str],
        scores: &mut [f32],
    ) -> Result<(), PoolingError>;
}
