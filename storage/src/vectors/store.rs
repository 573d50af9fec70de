//! Vectors of a store: its methods.
//!
//! Whoever needs both the vectors' lock and the records' takes the vectors' first.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use garret_core::medium::{Medium, MediumError};
use garret_core::vector::{Kernels, Scalar};
use redb::{ReadTransaction, ReadableDatabase as _};

use super::{Rotation, Side, Spec, UnitKey, VectorError, VectorStore};
use crate::error::{Fault, ReadError};
use crate::facts::read::{for_each, open as if_there};
use crate::facts::table::FACTS;
use crate::part::{Media, Part};
use crate::record::{ReplyRecord, TurnRecord, speaker};
use crate::search::without_names;
use crate::store::Store;
use crate::table::{REPLIES, SPEAKERS, TURNS, TurnKey, seq_of, session_of, turn_key};

/// The vectors of a store: none before there is an embedder, or something to erase.
#[derive(Debug, Default)]
pub(crate) struct Vectors(RwLock<Option<VectorStore>>);

impl Vectors {
    fn read(&self) -> RwLockReadGuard<'_, Option<VectorStore>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Option<VectorStore>> {
        self.0.write().unwrap_or_else(|poisoned| self.sound(poisoned))
    }

    /// For who has the records' lock already, and so can't wait for this one.
    pub(crate) fn try_write(&self) -> Option<RwLockWriteGuard<'_, Option<VectorStore>>> {
        match self.0.try_write() {
            Ok(vectors) => Some(vectors),
            Err(TryLockError::Poisoned(poisoned)) => Some(self.sound(poisoned)),
            Err(TryLockError::WouldBlock) => None,
        }
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
        self.0.clear_poison();
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

    /// Which embedder makes vectors now and how many there are of it, if there is one.
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

    /// Up to `limit` units that have no vector of the embedder yet, with the text to embed: first
    /// what was said, by session and turn, then replies, then facts. Texts without anything to
    /// embed, and those that can't be read, aren't among them; texts of conversations between
    /// people come without the names of these ([`without_names`]). Empty without an embedder.
    ///
    /// Looking costs some 20 ms for 100,000 units that have theirs, so ask for many at once.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn unembedded(&self, limit: usize) -> Result<Vec<(UnitKey, String)>, ReadError> {
        let vectors = self.vectors.read();
        let Some(vectors) = vectors.as_ref().filter(|vectors| vectors.spec.is_some()) else {
            return Ok(Vec::new());
        };
        self.on_snapshot(|transaction, _| {
            let mut found = Vec::new();
            let mut lacks = |key, text: &dyn Fn() -> Option<String>| {
                if found.len() < limit
                    && !vectors.contains(key)
                    && let Some(text) = text().filter(|text| !text.trim().is_empty())
                {
                    found.push((key, text));
                }
                found.len() < limit
            };
            if each_message(transaction, &mut lacks)? {
                for_each(transaction, |fact| {
                    lacks(UnitKey::Fact { id: fact.id.0 }, &|| Some(fact.text.to_owned()));
                })?;
            }
            strip_names(transaction, &mut found)?;
            Ok(found)
        })
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

    /// Whether there is a record of a unit.
    fn holds(&self, key: UnitKey) -> Result<bool, VectorError> {
        let found = match key {
            UnitKey::Words { session, turn } => self.reading(|open| {
                let turns = open.database.begin_read()?.open_table(TURNS)?;
                Ok(Ok(turns.get(&turn_key(session, turn))?.is_some()))
            }),
            UnitKey::Reply { session, turn } => self.reading(|open| {
                let replies = open.database.begin_read()?.open_table(REPLIES)?;
                Ok(Ok(replies.get(&turn_key(session, turn))?.is_some()))
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

/// Takes the names of those who speak in its session out of each text, unless that is all it has.
fn strip_names(
    transaction: &ReadTransaction,
    found: &mut [(UnitKey, String)],
) -> Result<(), Fault> {
    let table = transaction.open_table(SPEAKERS)?;
    let mut names: HashMap<u64, BTreeSet<String>> = HashMap::new();
    for (key, text) in found {
        let Some(session) = key.session() else { continue };
        let names = match names.entry(session) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let (first, last) = (turn_key(session, 0), turn_key(session, u64::MAX));
                let mut names = BTreeSet::new();
                for entry in table.range::<&TurnKey>(&first..=&last)? {
                    let (key, name) = entry?;
                    // A damaged one is nobody's name.
                    if let Ok(name) = speaker(session, seq_of(key.value()), name.value())
                        && !names.contains(name)
                    {
                        names.insert(name.to_owned());
                    }
                }
                new.insert(names)
            }
        };
        if names.is_empty() {
            continue;
        }
        let bare = without_names(text, &names.iter().collect::<Vec<_>>());
        if bare.contains(char::is_alphanumeric) {
            *text = bare;
        }
    }
    Ok(())
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

/// Hands what was said, and then the replies, to `take`, each with a way to its text, until that
/// returns false; whether it never did. A damaged record has no text.
fn each_message(
    transaction: &ReadTransaction,
    take: &mut impl FnMut(UnitKey, &dyn Fn() -> Option<String>) -> bool,
) -> Result<bool, Fault> {
    for entry in transaction.open_table(TURNS)?.range::<&TurnKey>(..)? {
        let (key, bytes) = entry?;
        let (session, turn) = (session_of(key.value()), seq_of(key.value()));
        let text = || Some(TurnRecord::view(session, turn, bytes.value()).ok()?.user.to_owned());
        if !take(UnitKey::Words { session, turn }, &text) {
            return Ok(false);
        }
    }
    for entry in transaction.open_table(REPLIES)?.range::<&TurnKey>(..)? {
        let (key, bytes) = entry?;
        let (session, turn) = (session_of(key.value()), seq_of(key.value()));
        let text = || Some(ReplyRecord::view(session, turn, bytes.value()).ok()?.text.to_owned());
        if !take(UnitKey::Reply { session, turn }, &text) {
            return Ok(false);
        }
    }
    Ok(true)
}
