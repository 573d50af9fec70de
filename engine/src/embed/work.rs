//! Vectors for texts that have none yet: a few at a time, so that it can stop at any moment and go on later.

use std::collections::HashSet;
use std::sync::Arc;

use garret_core::model::PoolingError;
use garret_core::vector::Kernels;
use garret_storage::vectors::{UnitKey, VectorError};
use garret_storage::{ReadError, Store};
use smol::unblock;

use super::{Embed, rotations, vectors};

/// Has the vectors of `store` be those of `embedder`; others are no longer found.
///
/// # Errors
/// [`VectorError`] when their files can't be read.
pub fn attach(
    store: &Store,
    embedder: &dyn Embed,
    kernels: Arc<dyn Kernels>,
) -> Result<(), VectorError> {
    let fingerprint = embedder.fingerprint();
    let rotation = rotations::known(&fingerprint);
    store.set_embedder(fingerprint, embedder.dimensions(), kernels, rotation)
}

/// Gives every document of `store` that has none a vector, and returns how many it gave. `go_on` is
/// asked between two calls of the model and gets the number so far; whatever was done when it says
/// no is kept.
///
/// # Errors
/// [`WorkError`]; whatever was done before is kept.
pub fn embed_all(
    store: &Store,
    embedder: &dyn Embed,
    go_on: &mut dyn FnMut(usize) -> bool,
) -> Result<usize, WorkError> {
    let mut done = 0;
    let mut unusable = HashSet::new();
    loop {
        let mut documents = store.unembedded(PAGE.saturating_add(unusable.len()))?;
        documents.retain(|(key, _)| !unusable.contains(key));
        if documents.is_empty() {
            store.tend_vectors()?;
            return Ok(done);
        }
        for group in documents.chunks(GROUP) {
            let mut vectors = Vec::with_capacity(group.len());
            let mut stopped = false;
            for batch in group.chunks(BATCH) {
                stopped = !go_on(done + vectors.len());
                if stopped {
                    break;
                }
                embed(embedder, batch, &mut vectors, &mut unusable)?;
            }
            done += store.add_vectors(&vectors)?;
            if stopped {
                return Ok(done);
            }
        }
    }
}

/// Gives vectors like [`embed_all`]; dropping the future ends it with the call of the embedder that
/// runs, of which nothing is kept.
///
/// # Errors
/// [`WorkError`]; whatever was done before is kept.
pub async fn embed_idle(store: &Arc<Store>, embedder: &Arc<dyn Embed>) -> Result<usize, WorkError> {
    let mut made = Made { store, vectors: Vec::new(), done: 0 };
    let mut unusable = HashSet::new();
    loop {
        let mut documents = store.unembedded(PAGE.saturating_add(unusable.len()))?;
        documents.retain(|(key, _)| !unusable.contains(key));
        if documents.is_empty() {
            let store = Arc::clone(store);
            unblock(move || store.tend_vectors()).await?;
            return Ok(made.done);
        }
        while !documents.is_empty() {
            let batch: Vec<_> = documents.drain(..documents.len().min(BATCH)).collect();
            let embedder = Arc::clone(embedder);
            let (vectors, without) = unblock(move || {
                let mut vectors = Vec::new();
                let mut without = HashSet::new();
                embed(&*embedder, &batch, &mut vectors, &mut without)?;
                Ok::<_, WorkError>((vectors, without))
            })
            .await?;
            unusable.extend(without);
            made.vectors.extend(vectors);
            if made.vectors.len() >= GROUP {
                made.store()?;
            }
        }
        made.store()?;
    }
}

/// Vectors on their way to the store, with one sync for a group; those of an unfinished group are
/// stored when it is dropped.
struct Made<'a> {
    store: &'a Store,
    vectors: Vec<(UnitKey, Vec<f32>)>,
    done: usize,
}

impl Made<'_> {
    fn store(&mut self) -> Result<(), VectorError> {
        let vectors = std::mem::take(&mut self.vectors);
        if !vectors.is_empty() {
            self.done += self.store.add_vectors(&vectors)?;
        }
        Ok(())
    }
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.store() {
            tracing::warn!(%error, "what was said gets its vectors later");
        }
    }
}

/// Returns the vector of a query to `store`, for [`Search::vector`](garret_storage::search::Search::vector);
/// `None` where there is none, or nothing to compare it with. An embedder that fails is logged: that is
/// no reason not to search.
pub fn query(store: &Store, embedder: &dyn Embed, text: &str) -> Option<Vec<f32>> {
    if store.with_vectors(|vectors| vectors.is_empty()).unwrap_or(true) {
        return None;
    }
    let made = store.without_names(text).map_err(WorkError::from);
    let made = made.and_then(|text| Ok(vectors(embedder, &[&text])?));
    let made = made.inspect_err(|error| tracing::warn!(%error, "searched by words alone"));
    made.ok().and_then(|vectors| vectors.into_iter().next()).filter(|vector| is_usable(vector))
}

/// Returns whether a vector has a direction.
fn is_usable(vector: &[f32]) -> bool {
    vector.iter().all(|x| x.is_finite()) && vector.iter().any(|x| *x != 0.0)
}

/// Appends the vectors of `documents` to `made`, and to `unusable` the keys of those that have none: a text may
/// hold nothing that the embedder knows.
fn embed(
    embedder: &dyn Embed,
    documents: &[(UnitKey, String)],
    made: &mut Vec<(UnitKey, Vec<f32>)>,
    unusable: &mut HashSet<UnitKey>,
) -> Result<(), WorkError> {
    let texts: Vec<_> = documents.iter().map(|(_, text)| text.as_str()).collect();
    for ((key, _), vector) in documents.iter().zip(vectors(embedder, &texts)?) {
        if is_usable(&vector) {
            made.push((*key, vector));
        } else {
            unusable.insert(*key);
        }
    }
    Ok(())
}

/// The error of giving vectors.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkError {
    /// The texts to be embedded can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The model failed.
    #[error("no vectors were made: {0}")]
    Embed(PoolingError),
    /// The vectors can't be stored.
    #[error(transparent)]
    Vectors(#[from] VectorError),
}

// By hand: derived, the embedder's words would be its source, too, and be said twice in a chain.
impl From<PoolingError> for WorkError {
    fn from(error: PoolingError) -> Self {
        Self::Embed(error)
    }
}

/// Documents looked up at once; looking takes a pass over all of them.
const PAGE: usize = 1_024;
/// Vectors stored together, with one sync.
const GROUP: usize = 64;
/// Texts of one call of the model; nobody waits for more than these.
const BATCH: usize = 8;
