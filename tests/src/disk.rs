//! All files of a namespace in memory, on one device that loses power or fills up when told to.

use std::sync::Arc;

use garret_core::time::{Confidence, WallTime};
use garret_hal::media::{Cut, Faults, FaultyMedium, Recording};
use garret_storage::{OpenError, Part, Store};

/// The files of a namespace on one device. A clone is another handle on the same device.
#[derive(Clone, Debug)]
pub struct Disk(Vec<FaultyMedium>);

impl Disk {
    /// An empty one.
    pub fn new() -> Self {
        Self::of(vec![Vec::new(); Part::ALL.len()])
    }

    /// One that durably holds these files, in the order of [`Part::ALL`].
    ///
    /// # Panics
    /// When there are none.
    pub fn of(images: Vec<Vec<u8>>) -> Self {
        let mut images = images.into_iter();
        let first = images.next().expect("a namespace has files");
        let mut media = vec![FaultyMedium::with_image(first, Faults::default())];
        media.extend(images.map(|image| media[0].beside(image)).collect::<Vec<_>>());
        Self(media)
    }

    /// The files that may be there after the power went at `cut` of `recording`.
    pub fn after(recording: &Recording, cut: Cut, seed: u64) -> Self {
        Self::of(recording.images_after_cut(cut, seed))
    }

    /// The namespace.
    ///
    /// # Panics
    /// When it can't be opened.
    pub fn open(&self) -> Arc<Store> {
        Arc::new(self.try_open().expect("the store opens"))
    }

    /// The namespace, if it can be opened.
    ///
    /// # Errors
    /// The store's.
    pub fn try_open(&self) -> Result<Store, OpenError> {
        let disk = self.clone();
        Store::on_media("home", move |part| Ok(Box::new(disk.part(part).clone()) as Box<_>))
    }

    /// One of its files.
    ///
    /// # Panics
    /// When there is no such part.
    pub fn part(&self, part: Part) -> &FaultyMedium {
        let place = Part::ALL.iter().position(|other| *other == part);
        &self.0[place.expect("every part has a place")]
    }

    /// All files as the running program sees them, in the order of [`Part::ALL`].
    pub fn images(&self) -> Vec<Vec<u8>> {
        self.0.iter().map(FaultyMedium::image).collect()
    }

    /// Bytes of all files.
    pub fn used(&self) -> u64 {
        self.images().iter().map(|image| image.len() as u64).sum()
    }

    /// Operations of the device so far.
    pub fn ops(&self) -> usize {
        usize::try_from(self.0[0].ops()).expect("memory holds them")
    }

    /// All that happened to the device.
    pub fn recording(&self) -> Recording {
        self.0[0].recording()
    }

    /// Replaces the faults of the device.
    pub fn set_faults(&self, faults: Faults) {
        self.0[0].set_faults(faults);
    }
}

/// Says things in a session of their own until a store on a full device takes not a byte more, also
/// not where its file has room.
///
/// # Panics
/// When the device doesn't fill.
pub fn fill(store: &Store) {
    let (session, at) = ("filler".parse().expect("a name that can be used"), WALL);
    for bytes in [40_000, 2_000, 1, 1, 1] {
        let taken =
            (0..10_000).take_while(|_| store.accept(&session, &"x".repeat(bytes), at).is_ok());
        assert!(taken.count() < 10_000, "the device isn't full");
    }
}

const WALL: WallTime = WallTime { unix_ms: 1_800_000_000_000, confidence: Confidence::Good };

impl Default for Disk {
    fn default() -> Self {
        Self::new()
    }
}
