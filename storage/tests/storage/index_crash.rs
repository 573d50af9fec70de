//! The power goes at every moment while the index's file is written, and while the store is.

use garret_hal::media::{Cut, Op as MediumOp};
use garret_storage::{Part, Selection};

use crate::index::{AT, found_in, found_without, index_of, say};
use crate::rewrite::{Disk, Images};

/// Whatever of the file is left, searches find what they would without it; it is used where the
/// power went while nothing was written.
#[test]
fn a_search_is_right_wherever_the_power_went() {
    let disk = Disk::recording(Images::default());
    let store = disk.open();
    let session = "letters".parse().unwrap();
    say(&store, "letters", 0..60);
    store.tend_index(1).unwrap();
    store.accept(&session, "A queen bee in the garden.", AT).unwrap();
    store.fold().unwrap();
    say(&store, "more", 60..70);
    store.accept(&session, "Rain on the oak.", AT).unwrap();
    store.tend_index(1).unwrap();
    store.accept(&session, "Tea in winter.", AT).unwrap();
    store.fold().unwrap();
    say(&store, "letters", 70..170);
    store.tend_index(1).unwrap();
    store.delete(&"more".parse().unwrap()).unwrap();
    store.tend_index(1).unwrap();
    let turns = &[(session.clone(), 3)];
    store.erase(&Selection { turns, ..Selection::default() }, AT, false).unwrap();
    store.tend_index(1).unwrap();
    store.accept(&session, "The last rain.", AT).unwrap();
    drop(store);
    let recording = disk.part(Part::Records).recording();
    let index = Part::ALL.iter().position(|part| *part == Part::Index).unwrap();
    let (mut images, mut used, mut before) = (0, 0, None);
    for (ops, op) in recording.ops().iter().enumerate() {
        // All moments at which the index is written, and some others.
        if recording.owner(ops) != Some(index) && ops % 5 > 0 {
            continue;
        }
        let len = if let MediumOp::Write { bytes, .. } = op { bytes.len() } else { 1 };
        for torn in (0..len).step_by(len.div_ceil(3)) {
            for seed in [0, 1, 2 + ops as u64, 1_000 + ops as u64] {
                let found = recording.images_after_cut(Cut { ops, torn }, seed);
                let found: Images = found.try_into().unwrap();
                if before.as_ref() == Some(&found) {
                    continue;
                }
                assert!(found_in(&found) == found_without(&found), "{ops}, {torn}, {seed}");
                images += 1;
                let lacking = Disk::of(found.clone()).open().unindexed().unwrap();
                used += usize::from(!index_of(&found).is_empty() && lacking < 60);
                before = Some(found);
            }
        }
    }
    eprintln!("{images} images, the index of {used} was used");
    assert!(images > 150 && used > 60, "{images} images, {used} used");
}
