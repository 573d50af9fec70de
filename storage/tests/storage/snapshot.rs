//! Snapshots of a model's state: there whole or not at all, and never after a forget.

use garret_core::medium::Medium;
use garret_hal::media::{Faults, FaultyMedium, RamMedium};
use garret_storage::{Part, Selection, SnapshotKind, Store, Unusable, WriteError};
use proptest::prelude::*;

use crate::rewrite::{AT, CANARY, Disk, id, tell};

const CONVERSATION: SnapshotKind = SnapshotKind::Conversation;
const MADE_FOR: [u8; 32] = [9; 32];

fn save(store: &Store, kind: SnapshotKind, pieces: &[&[u8]]) -> bool {
    store.save_snapshot(kind, store.erasure_epoch(), &MADE_FOR, pieces).unwrap()
}

fn load(store: &Store, kind: SnapshotKind) -> Result<Vec<u8>, Unusable> {
    store.load_snapshot(kind, &MADE_FOR).unwrap()
}

#[test]
fn a_snapshot_comes_back_to_whom_it_was_made_for() {
    let disk = Disk::<RamMedium>::default();
    let store = disk.open();
    assert_eq!(load(&store, CONVERSATION), Err(Unusable::Missing));
    assert!(save(&store, CONVERSATION, &[b"a long ", b"state"]));
    assert!(save(&store, SnapshotKind::Prefix, &[b"prefix"]));
    assert!(save(&store, CONVERSATION, &[b"state"]), "a shorter one replaces it");
    drop(store);
    let store = disk.open();
    assert_eq!(load(&store, CONVERSATION), Ok(b"state".to_vec()));
    assert_eq!(load(&store, SnapshotKind::Prefix), Ok(b"prefix".to_vec()));
    let other = store.load_snapshot(CONVERSATION, &[8; 32]).unwrap();
    assert_eq!(other, Err(Unusable::Foreign));
    let has = |made_for: &[u8; 32]| store.has_snapshot(CONVERSATION, made_for).unwrap();
    assert!(has(&MADE_FOR) && !has(&[8; 32]));
    let file = disk.part(Part::Conversation);
    file.set_len(file.len().unwrap() - 1).unwrap();
    assert!(!has(&MADE_FOR), "it is cut short");
    file.set_len(0).unwrap();
    assert!(!has(&MADE_FOR));
}

/// Neither a forget nor a delete leaves a state that was made from the words, nor lets one that was
/// taken before be written after.
#[test]
fn what_is_forgotten_is_in_no_snapshot() {
    let forget = |store: &Store| {
        let selection = Selection { pattern: Some(CANARY), ..Selection::default() };
        store.erase(&selection, AT, false).unwrap();
    };
    let delete = |store: &Store| store.delete(&id("kitchen")).unwrap();
    for remove in [&forget as &dyn Fn(&Store), &delete] {
        let disk = Disk::<RamMedium>::default();
        let store = disk.open();
        tell(&store);
        for kind in [CONVERSATION, SnapshotKind::Prefix] {
            assert!(save(&store, kind, &[b"state of ", CANARY.as_bytes()]));
        }
        let epoch = store.erasure_epoch();
        remove(&store);
        for part in [Part::Conversation, Part::Prefix] {
            assert!(disk.part(part).is_empty().unwrap(), "{part:?}");
        }
        let late = store.save_snapshot(CONVERSATION, epoch, &MADE_FOR, &[b"state"]).unwrap();
        assert!(!late && disk.part(Part::Conversation).is_empty().unwrap());
        assert!(save(&store, CONVERSATION, &[b"state without it"]));
        let kept = disk.part(Part::Conversation).snapshot();
        assert!(!kept.windows(CANARY.len()).any(|bytes| bytes == CANARY.as_bytes()));
    }
}

/// Without the room for it there is no snapshot, and the old one doesn't pass for it.
#[test]
fn a_full_disk_leaves_none() {
    let disk = Disk::<RamMedium>::default();
    assert!(save(&disk.open(), CONVERSATION, &[b"old"]));
    let full = FaultyMedium::with_image(
        disk.part(Part::Conversation).snapshot(),
        Faults { capacity: Some(100), ..Faults::default() },
    );
    let parts = disk.clone();
    let store = Store::on_media("home", move |part| {
        Ok(match part {
            Part::Conversation => Box::new(full.clone()),
            part => Box::new(parts.part(part).clone()),
        })
    })
    .unwrap();
    let epoch = store.erasure_epoch();
    let state = [7_u8; 400];
    let saved = store.save_snapshot(CONVERSATION, epoch, &MADE_FOR, &[&state]);
    assert!(matches!(saved, Err(WriteError::Full | WriteError::Medium(_))), "{saved:?}");
    assert!(load(&store, CONVERSATION).is_err());
}

/// The power goes at every operation of a save: there is the old one, none, or the new one.
#[test]
fn a_power_cut_leaves_no_mixture() {
    let state = [3_u8; 5_000];
    let before = Disk::<RamMedium>::default();
    assert!(save(&before.open(), CONVERSATION, &[b"old"]));
    let image = before.part(Part::Conversation).snapshot();
    let medium = FaultyMedium::with_image(image, Faults::default());
    assert!(save(&on(&before, &medium), CONVERSATION, &[&state]));
    let recording = medium.recording();
    let (mut old, mut none, mut new) = (0, 0, 0);
    for cut in recording.cuts(64) {
        for image in recording.images_after_cut(cut, 7) {
            match load(&on(&before, &RamMedium::from_bytes(image)), CONVERSATION) {
                Ok(found) if found == b"old" => old += 1,
                Ok(found) => {
                    assert_eq!(found, state, "{cut:?}");
                    new += 1;
                }
                Err(_) => none += 1,
            }
        }
    }
    assert!(old > 0 && none > 0 && new > 0, "{old} {none} {new}");
}

fn on<M: Medium + Clone + 'static>(disk: &Disk<RamMedium>, medium: &M) -> Store {
    let (disk, medium) = (disk.clone(), medium.clone());
    Store::on_media("home", move |part| {
        Ok(match part {
            Part::Conversation => Box::new(medium.clone()),
            part => Box::new(disk.part(part).clone()),
        })
    })
    .unwrap()
}

proptest! {
    /// Bytes that aren't those of a save are no snapshot, whatever they are.
    #[test]
    fn a_changed_or_cut_file_is_none(
        state in proptest::collection::vec(any::<u8>(), 0..300),
        at in any::<prop::sample::Index>(),
        bit in 0_u8..8,
        cut in any::<bool>(),
    ) {
        let disk = Disk::<RamMedium>::default();
        prop_assert!(save(&disk.open(), CONVERSATION, &[&state]));
        let mut image = disk.part(Part::Conversation).snapshot();
        let at = at.index(image.len());
        if cut { image.truncate(at) } else { image[at] ^= 1 << bit }
        let medium = RamMedium::from_bytes(image);
        prop_assert!(load(&on(&disk, &medium), CONVERSATION).is_err());
    }
}
