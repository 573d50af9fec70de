//! Texts as vectors: who asks the embedder, and for what. The port itself is core's [`Embed`].

mod rotations;
mod work;

pub use garret_core::embed::Embed;
use garret_core::model::PoolingError;
pub use work::{WorkError, attach, embed_all, embed_idle, query};

/// Returns the vectors of `texts`, in their order.
pub(crate) fn vectors(embedder: &dyn Embed, texts: &[&str]) -> Result<Vec<Vec<f32>>, PoolingError> {
    let dimensions = embedder.dimensions();
    let mut all = vec![0.0; texts.len() * dimensions];
    embedder.embed_into(texts, &mut all)?;
    Ok((0..texts.len()).map(|at| all[at * dimensions..][..dimensions].to_vec()).collect())
}
