//! Vectors of a store: its methods.
//!
//! Whoever needs both the vectors' lock and the records' takes the vectors' first.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use garret_core::medium::{Medium, MediumError};
use garret_core::vector::{Kernels, Scalar};
use redb::ReadableDatabase as _;

use crate::facts::table::FACTS;
use crate::files::part::{Media, Part};
use crate::ground::database::open_if_there as if_there;
use crate::ground::error::ReadError;
use crate::ground::table::{REPLIES, TURNS, turn_key};
use crate::index::Fresh;
use crate::store::Store;
use crate::vectors::waiting::Waiting;
use crate::vectors::{Rotation, Side, Spec, UnitKey, VectorError, VectorStore};

/// The vectors of a store: none before there is an embedder, or something to erase.
#[derive(Debug, Default)]
pub(crate) struct Vectors {
    store: RwLock<Option<VectorStore>>,
    pub(crate) waiting: Waiting,
}

impl Vectors {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Option<VectorStore>> {
        self.store.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Option<VectorStore>> {
        self.store.write().unwrap_or_else(|poisoned| self.sound(poisoned))
    }

    /// For who has the records' lock already, and so can't wait for this one.
    pub(crate) fn try_write(&self) -> Option<RwLockWriteGuard<'_, Option<VectorStore>>> {
        match self.store.try_write() {
            Ok(vectors) => Some(vectors),
            Err(TryLockError::Poisoned(poisoned)) => Some(self.sound(poisoned)),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Notes what was written to the records. Called while the store is locked.
    pub(crate) fn note(&self, fresh: &Fresh) {
        self.waiting.note(fresh);
    }

    /// The records may hold something else than was noted.
    pub(crate) fn forget(&self) {
        self.waiting.forget();
    }

    /// A panic came in the way of a change: what is in the files counts.
    fn sound<'a>(
        &self,
        poisoned: PoisonError<RwLockWriteGuard<'a, Option<VectorStore>>>,
    ) -> RwLockWriteGuard<'a, Option<VectorStore>> {
        let vectors = poisoned.into_inner();
        if let Some(store) = &*vectors {
            store.failed.store(true, Ordering::Relaxed);
        }
        self.store.clear_poison();
        vectors
    }
}

impl Store {
    /// Says which embedder makes vectors from now on, and looks for those that it made before.
    /// Those of another one aren't found any more; the first [`Store::add_vectors`] discards them.
    ///
    /// `fingerprint` stands for the model and for whatever else decides what it makes of a text,
    /// `rotation` for the coarse form of its vectors where that is known; see
    /// [`Spec`](crate::vectors::Spec). Nothing is written.
    ///
    /// # Errors
    /// [`VectorError::UnusableDimensions`], and [`VectorError::Medium`] where a file can't be read.
    /// What was set before stays then.
    pub fn set_embedder(
        &self,
        fingerprint: [u8; 32],
        dims: usize,
        kernels: Arc<dyn Kernels>,
        rotation: Option<Rotation>,
    ) -> Result<(), VectorError> {
        let mut vectors = self.vectors.write();
        // What was added under the one before is whole in its files before they are read.
        if let Some(before) = &*vectors {
            before.flush()?;
        }
        let spec = Spec { fingerprint, dims, rotation };
        *vectors = Some(VectorStore::open(files(self.media()), kernels, Some(spec))?);
        Ok(())
    }

    /// Hands the vectors to `f`, to be searched; none before there is an embedder. Neither writers
    /// nor readers of records wait for it, but `f` mustn't use the store.
    pub fn with_vectors<R>(&self, f: impl FnOnce(&VectorStore) -> R) -> Option<R> {
        self.vectors.read().as_ref().filter(|vectors| vectors.spec.is_some()).map(f)
    }

    /// Says which embedder makes vectors now and how many there are of it, if there is one.
    pub(crate) fn embedded(&self) -> Option<([u8; 32], usize)> {
        let vectors = self.vectors.read();
        let vectors = vectors.as_ref()?;
        vectors.spec.as_ref().map(|spec| (spec.fingerprint, vectors.len()))
    }

    /// Units whose vector isn't what was written, or that there is no record of, and how many were
    /// looked at; `None` without an embedder.
    pub(crate) fn wrong_vectors(&self) -> Result<Option<(Vec<UnitKey>, usize)>, VectorError> {
        let vectors = self.vectors.read();
        let Some(vectors) = vectors.as_ref().filter(|vectors| vectors.spec.is_some()) else {
            return Ok(None);
        };
        let mut wrong = vectors.damaged()?;
        // Taken under the vectors' lock: whoever removes a record removes its vector before.
        let unread = |error: ReadError| VectorError::Records(error.to_string());
        let orphans = self.on_snapshot(|records, _| {
            let (turns, replies) = (records.open_table(TURNS)?, records.open_table(REPLIES)?);
            let facts = if_there(records, FACTS)?;
            let mut orphans = Vec::new();
            for key in vectors.keys() {
                let is_there = match key {
                    UnitKey::Words { session, turn } => {
                        turns.get(&turn_key(session, turn))?.is_some()
                    }
                    UnitKey::Reply { session, turn } => {
                        replies.get(&turn_key(session, turn))?.is_some()
                    }
                    UnitKey::Fact { id } => match &facts {
                        Some(facts) => facts.get(&id.to_be_bytes())?.is_some(),
                        None => false,
                    },
                };
                orphans.extend((!is_there).then_some(key));
            }
            Ok(orphans)
        });
        wrong.extend(orphans.map_err(unread)?);
        Ok(Some((wrong, vectors.len())))
    }

    /// Adds vectors of what [`Store::unembedded`] gave, durably, and says how many it added. Units
    /// that have been removed meanwhile, or have a vector, are passed over.
    ///
    /// # Errors
    /// [`VectorError`]; some may have been added then. What is missing, `unembedded` gives again.
    pub fn add_vectors(&self, units: &[(UnitKey, Vec<f32>)]) -> Result<usize, VectorError> {
        let mut vectors = self.vectors.write();
        let Some(store) = vectors.as_mut() else { return Err(VectorError::NoEmbedder) };
        // Under the vectors' lock: what is removed from now on waits to be removed here as well.
        let mut there = Vec::with_capacity(units.len());
        for (key, vector) in units {
            if self.holds(*key)? {
                there.push((*key, vector));
            }
        }
        let added = store.insert(&there)?;
        drop(vectors);
        if let Some(store) = &*self.vectors.read() {
            store.flush()?;
        }
        Ok(added)
    }

    /// Idle work on the vectors, as [`VectorStore::maintain`] says; searches go on while a rotation
    /// is learned. Says whether anything changed.
    ///
    /// # Errors
    /// [`VectorError::Medium`].
    pub fn tend_vectors(&self) -> Result<bool, VectorError> {
        let better = self.with_vectors(VectorStore::better_rotation).flatten();
        let mut vectors = self.vectors.write();
        let Some(store) = vectors.as_mut() else { return Ok(false) };
        let dropped = store.drop_damaged()?;
        match better {
            Some(rotation) => store.adopt(rotation).map(|changed| changed || dropped),
            None => Ok(dropped),
        }
    }

    /// Removes the vectors of units that are `gone`, durably, of whatever embedder, and then does
    /// `act`, before anybody adds others. For removals of records: vectors go first, since a
    /// vector without its record would never be found out.
    pub(crate) fn without_vectors<T>(
        &self,
        gone: &dyn Fn(UnitKey) -> bool,
        act: impl FnOnce() -> T,
    ) -> Result<T, VectorError> {
        let mut vectors = self.vectors.write();
        erase(&mut vectors, self.media(), gone)?;
        Ok(act())
    }

    /// Tells whether there is a record of a unit.
    fn holds(&self, key: UnitKey) -> Result<bool, VectorError> {
        let found = match key {
            UnitKey::Words { session, turn } => self.reading(|open| {
                let turns = open.database.begin_read()?.open_table(TURNS)?;
                Ok(turns.get(&turn_key(session, turn))?.is_some())
            }),
            UnitKey::Reply { session, turn } => self.reading(|open| {
                let replies = open.database.begin_read()?.open_table(REPLIES)?;
                Ok(replies.get(&turn_key(session, turn))?.is_some())
            }),
            UnitKey::Fact { id } => self.fact(crate::FactId(id)).map(|fact| fact.is_some()),
        };
        found.map_err(|error| VectorError::Records(error.to_string()))
    }
}

/// Removes all vectors but those of units that are `there`, and every trace of others, such as rows
/// that a power cut left without an entry.
pub(crate) fn erase_all_but(
    vectors: &mut Option<VectorStore>,
    media: &Arc<Media>,
    there: &dyn Fn(UnitKey) -> bool,
) -> Result<(), VectorError> {
    erase(vectors, media, &|key| !there(key))?;
    match vectors {
        // No fact has this number: a removal begins with what isn't anybody's.
        Some(store) => store.remove(&[UnitKey::Fact { id: 0 }]).map(drop),
        None => Ok(()),
    }
}

/// Removes what is gone from the files, if there are any.
fn erase(
    vectors: &mut Option<VectorStore>,
    media: &Arc<Media>,
    gone: &dyn Fn(UnitKey) -> bool,
) -> Result<(), VectorError> {
    if vectors.is_none() && (media.exists(Part::Full) || media.exists(Part::Coarse)) {
        *vectors = Some(VectorStore::open(files(media), Arc::new(Scalar), None)?);
    }
    match vectors {
        Some(store) => store.retain(&|key| !gone(key)).map(drop),
        None => Ok(()),
    }
}

/// The files of vectors among the parts of a namespace.
fn files(
    media: &Arc<Media>,
) -> impl Fn(Side, bool) -> Result<Option<Arc<dyn Medium>>, MediumError> + Send + Sync + 'static {
    let media = media.clone();
    move |side, create| {
        let part = match side {
            Side::Coarse => Part::Coarse,
            Side::Whole => Part::Full,
        };
        let wanted = if create { media.has(part) } else { media.exists(part) };
        match wanted.then(|| media.open(part)) {
            None => Ok(None),
            // Not this store's to read, so nothing of it is there.
            Some(Err(MediumError::Denied)) if !create => Ok(None),
            Some(opened) => opened.map(Some),
        }
    }
}
