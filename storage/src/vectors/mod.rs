//! Vectors of what was said: two files beside the records, searched in two stages.
//!
//! The **whole** vectors are half-precision numbers. The **coarse** ones are their first dimensions
//! in a basis where those tell the most ([`Rotation`]), as int8, and nothing else is in their file,
//! so that a search reads it from end to end at the speed of memory. It keeps the best and
//! scores those exactly with the whole vectors. What a search may find is decided by a filter while
//! the coarse vectors are read, so a narrow filter loses nothing.
//!
//! All of it is derived: made from the records by an embedder, whose fingerprint is in both files.
//! Files that are torn, foreign, of another embedder or of a newer program count as empty, and are
//! made anew by the next [`insert`](VectorStore::insert); a search never writes and never fails
//! because of them. A row counts from the moment its entry in the directory of whole vectors is
//! durable, which is written after the row itself is in both files. So a power cut loses recent
//! rows ([`missing`](VectorStore::missing) names them) and nothing else.
//!
//! [`remove`](VectorStore::remove) overwrites a row with zeros in both files, whoever wrote it.
//!
//! ```
//! use std::sync::Arc;
//!
//! use garret_core::medium::Medium;
//! use garret_hal::media::RamMedium;
//! use garret_storage::vectors::{Side, Spec, UnitKey, VectorStore};
//!
//! let (coarse, whole) = (RamMedium::new(), RamMedium::new());
//! let files = move |side, _create| {
//!     let medium = match side {
//!         Side::Coarse => coarse.clone(),
//!         Side::Whole => whole.clone(),
//!     };
//!     Ok(Some(Arc::new(medium) as Arc<dyn Medium>))
//! };
//! let spec = Spec { fingerprint: [7; 32], dims: 3, rotation: None };
//! let mut store = VectorStore::open(files, garret_hal::kernels::detect(), Some(spec))?;
//!
//! let bees = UnitKey::Words { session: 1, turn: 4 };
//! let tea = UnitKey::Reply { session: 1, turn: 9 };
//! store.insert(&[(bees, [0.1, 0.9, 0.0]), (tea, [1.0, 0.0, 0.1])])?;
//! store.flush()?;
//!
//! let hits = store.search(&[0.0, 1.0, 0.0], 1, &|_| true)?;
//! assert_eq!(hits[0].key, bees);
//! assert!(hits[0].cosine > 0.99);
//! # Ok::<(), garret_storage::vectors::VectorError>(())
//! ```
//!
//! Limits: [`MAX_DIMS`] dimensions; 4 billion rows; per unit about 30 bytes of memory besides what
//! is mapped. Vectors are normalised: their lengths are lost.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use garret_core::medium::{Medium, MediumError};
use garret_core::vector::Kernels;

use crate::ground::error::WriteError;
use crate::vectors::load::Loaded;
use crate::vectors::slots::Slot;

pub(crate) mod key;
pub(crate) mod layout;
pub(crate) mod load;
pub(crate) mod rotation;
pub(crate) mod scan;
pub(crate) mod slots;
pub(crate) mod top;
pub(crate) mod waiting;
pub(crate) mod write;

pub use crate::vectors::key::UnitKey;
pub use crate::vectors::layout::MAX_DIMS;
pub use crate::vectors::rotation::Rotation;
pub use crate::vectors::scan::{Hit, Scores};
pub use crate::vectors::write::{LEARN_FROM, LEARNED_COARSE};

pub(crate) use crate::vectors::layout::{checksum, mix};

/// The vectors of one namespace.
pub struct VectorStore {
    pub(crate) files: Files,
    pub(crate) kernels: Arc<dyn Kernels>,
    pub(crate) spec: Option<Spec>,
    pub(crate) content: Content,
    /// Entries of rows that aren't durable yet.
    pub(crate) pending: Mutex<Vec<(Slot, [u8; layout::ENTRY])>>,
    /// Rows that a search found damaged.
    pub(crate) suspect: Mutex<Vec<Slot>>,
    /// Set by a failed write: what the files hold must be looked at before the next.
    pub(crate) failed: AtomicBool,
    pub(crate) version: u64,
}

/// Gets at a file: opens it, where it is there or is to be created; none where it is neither.
type Files = Box<dyn Fn(Side, bool) -> Result<Option<Arc<dyn Medium>>, MediumError> + Send + Sync>;

/// One of the two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// `NAME.i8`.
    Coarse,
    /// `NAME.f16`.
    Whole,
}

/// The embedder that makes the vectors.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Of the model and of whatever else changes what it makes of a text.
    pub fingerprint: [u8; 32],
    /// Numbers of a vector.
    pub dims: usize,
    /// Its coarse form, where that is known: [`Rotation::prefix`] for a Matryoshka model, or one
    /// learned before. Without, all dimensions (up to [`MAX_COARSE`]) are kept until there are
    /// enough vectors to [learn](VectorStore::maintain) one from.
    pub rotation: Option<Rotation>,
}

/// Contents of the files.
pub(crate) enum Content {
    /// Nothing, or nothing yet.
    Absent,
    /// Something that isn't ours.
    Foreign,
    Ours(Box<Loaded>),
}

/// Why vectors were not taken, or a query not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VectorError {
    /// The store was opened without [`Spec`].
    #[error("no embedder is set: choose one before adding or searching vectors")]
    NoEmbedder,
    /// Of another length than the embedder's.
    #[error("a vector of {found} numbers where the embedder's have {expected}: use that embedder")]
    Dimensions {
        /// Numbers of the embedder's vectors.
        expected: usize,
        /// Numbers it had.
        found: usize,
    },
    /// More than [`MAX_DIMS`], or none.
    #[error("vectors of {0} dimensions: they must have 1 to {max}", max = MAX_DIMS)]
    UnusableDimensions(usize),
    /// It holds NaN or an infinity, or nothing but zeros.
    #[error("a vector that has no direction (NaN, infinite or all zero): check the embedder")]
    NoDirection,
    /// There are as many rows as there can be.
    #[error("no room for more vectors in this namespace: use another for what is new")]
    Full,
    /// The device failed. What was added since the last flush may have to be added again.
    #[error("the vectors could not be stored: {0}")]
    Medium(#[from] MediumError),
    /// The records, which say what there is to be embedded, can't be read.
    #[error("{0}")]
    Records(String),
}

impl From<VectorError> for WriteError {
    fn from(error: VectorError) -> Self {
        match error {
            VectorError::Medium(MediumError::Full) => Self::Full,
            VectorError::Medium(error) => Self::Medium(error),
            other => Self::Engine(other.to_string()),
        }
    }
}

impl VectorStore {
    /// Looks at what the files hold, and writes nothing.
    ///
    /// `files` opens one of them: with `false` only if it exists, with `true` creating it where it
    /// doesn't. Without `spec` nothing can be added or found, but units can be removed.
    ///
    /// # Errors
    /// [`VectorError::Medium`] when a file can't be read, [`VectorError::UnusableDimensions`].
    pub fn open(
        files: impl Fn(Side, bool) -> Result<Option<Arc<dyn Medium>>, MediumError>
        + Send
        + Sync
        + 'static,
        kernels: Arc<dyn Kernels>,
        spec: Option<Spec>,
    ) -> Result<Self, VectorError> {
        if let Some(spec) = &spec
            && !(1..=MAX_DIMS).contains(&spec.dims)
        {
            return Err(VectorError::UnusableDimensions(spec.dims));
        }
        let mut store = Self {
            files: Box::new(files),
            kernels,
            spec: spec.map(Spec::checked),
            content: Content::Absent,
            pending: Mutex::default(),
            suspect: Mutex::default(),
            failed: AtomicBool::new(false),
            version: next_version(),
        };
        store.content = store.load()?;
        Ok(store)
    }

    /// Units that have a vector of this embedder.
    pub fn len(&self) -> usize {
        self.current().map_or(0, |loaded| loaded.slots.live())
    }

    /// Tells whether no unit has one.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Tells whether a unit has a vector of this embedder.
    pub fn contains(&self, key: UnitKey) -> bool {
        self.slot(key).is_some()
    }

    /// Returns those of `keys` that have none, in their order.
    pub fn missing(
        &self,
        keys: impl IntoIterator<Item = UnitKey>,
    ) -> impl Iterator<Item = UnitKey> {
        keys.into_iter().filter(|key| !self.contains(*key))
    }

    /// Another number whenever a unit may have lost its vector, one that no other store has.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Every unit that has one, in no particular order.
    pub fn keys(&self) -> impl Iterator<Item = UnitKey> {
        self.current().into_iter().flat_map(|loaded| loaded.slots.iter()).map(|(_, key)| key)
    }

    /// Place of a unit in [`Scores`]. It stays until the unit is removed or the embedder changes.
    pub fn slot(&self, key: UnitKey) -> Option<u32> {
        self.current()?.slots.find(key)
    }

    /// The rotation that the coarse vectors have now; none when there are no coarse vectors.
    pub fn rotation(&self) -> Option<&Rotation> {
        self.current()?.coarse.as_ref().map(|coarse| &coarse.rotation)
    }

    /// Returns what the files hold, if this embedder made it.
    fn current(&self) -> Option<&Loaded> {
        let (Content::Ours(loaded), Some(spec)) = (&self.content, &self.spec) else { return None };
        spec.made(&loaded.head).then_some(loaded)
    }

    fn pending(&self) -> MutexGuard<'_, Vec<(Slot, [u8; layout::ENTRY])>> {
        // Whole at every moment: what panics while it is held has only pushed, or not.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn suspect(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.suspect.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes a failure of a medium on; the next write looks at the files anew.
    fn noting<T>(&self, result: Result<T, MediumError>) -> Result<T, VectorError> {
        result.map_err(|error| {
            self.failed.store(true, Ordering::Relaxed);
            error.into()
        })
    }
}

fn next_version() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// Most dimensions that are kept of vectors whose rotation isn't known.
pub const MAX_COARSE: usize = 1_024;

impl Spec {
    /// Without a rotation that is for other vectors.
    fn checked(mut self) -> Self {
        self.rotation = self.rotation.filter(|rotation| rotation.dims() == self.dims);
        self
    }

    fn made(&self, head: &layout::FullHead) -> bool {
        head.fingerprint == self.fingerprint && head.dims as usize == self.dims
    }
}

impl fmt::Debug for VectorStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VectorStore").field("len", &self.len()).finish_non_exhaustive()
    }
}
