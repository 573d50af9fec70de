//! redb#620: the disk was full, and the database that was opened next panicked.
//!
//! A conversation goes on until the disk is full, is opened again on the full disk, reads all that
//! was accepted, and goes on when there is room. Every size of the disk is tried in
//! `storage/tests/storage/full.rs`.

use std::sync::Arc;

use garret_hal::media::Faults;
use garret_storage::Store;
use garret_tests::disk::{Disk, fill};

use crate::AT;

/// All messages that were accepted; none where not even the first found room.
fn said(store: &Store) -> Vec<String> {
    let session = "filler".parse().unwrap();
    let said =
        store.with_turns(&session, 1, |turns| turns.iter().map(|t| t.user.to_owned()).collect());
    said.unwrap_or_default()
}

#[test]
fn a_store_opens_on_a_full_disk() {
    let disk = Disk::new();
    drop(disk.open());
    for room in [4_096, 60_000, 300_000] {
        disk.set_faults(Faults { capacity: Some(disk.used() + room), ..Faults::default() });
        let store = disk.open();
        fill(&store);
        let accepted = said(&store);
        drop(store);
        let store: Arc<Store> = disk.open();
        assert_eq!(said(&store), accepted, "on the full disk");
        assert!(store.verify().unwrap().is_clean());
        drop(store);
        disk.set_faults(Faults::default());
        let store = disk.open();
        store.accept(&"filler".parse().unwrap(), "There is room again.", AT).unwrap();
        assert_eq!(said(&store).len(), accepted.len() + 1);
    }
}
