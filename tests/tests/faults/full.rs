//! The disk is full at every growth of its files in a turn and the idle work after it.

use std::collections::BTreeSet;

use garret_hal::media::{Faults, Op, Recording};
use garret_storage::Part;
use garret_tests::disk::Disk;

use crate::power::{RICH, nearly_full};
use crate::talk::{Talk, WINDOW, model, options};

/// All lengths that the files had together.
fn sizes(base: &[Vec<u8>], recording: &Recording) -> BTreeSet<u64> {
    let mut lengths: Vec<u64> = base.iter().map(|image| image.len() as u64).collect();
    let mut sizes = BTreeSet::from([lengths.iter().sum()]);
    for (at, op) in recording.ops().iter().enumerate() {
        let length = &mut lengths[recording.owner(at).unwrap()];
        match op {
            Op::Write { offset, bytes } => *length = (*length).max(offset + bytes.len() as u64),
            Op::SetLen(len) => *length = *len,
            Op::Sync => {}
        }
        sizes.insert(lengths.iter().sum());
    }
    sizes
}

#[test]
fn the_disk_is_full_at_any_growth_in_a_turn_and_in_idle_work() {
    let base = nearly_full();
    // Longer than the free pages of the files.
    let rich = [RICH, &" The hive by the fence was calm.".repeat(9_000)].concat();
    let on = || Talk::on(Disk::of(base.clone()), model(WINDOW), options());
    let mut whole = on();
    let before = whole.said();
    whole.try_say(&rich).unwrap();
    whole.idle();
    let facts = whole.facts();
    let sizes = sizes(&base, &whole.disk.recording());
    assert!(sizes.len() > 1, "something grew");
    for capacity in sizes {
        let mut talk = on();
        talk.disk.set_faults(Faults { capacity: Some(capacity), ..Faults::default() });
        let told = talk.try_say(&rich).map(|_| ()).map_err(|error| error.to_string());
        assert!(told.as_ref().err().is_none_or(|why| why.contains("no space")), "{told:?}");
        talk.idle();
        talk.disk.set_faults(Faults::default());
        let said = talk.said();
        assert!(said.starts_with(&before));
        assert!(told.is_err() || said.len() > before.len(), "it was answered and is lost");
        talk.check();
        talk.say("And then?");
        talk.idle();
        talk.check();
        if said.len() > before.len() {
            assert_eq!(talk.facts(), facts, "{capacity} bytes");
        }
        assert_eq!(talk.disk.part(Part::Next).image(), [0_u8; 0], "nothing is left half done");
    }
}
