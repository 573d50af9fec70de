//! Files that released formats left behind are opened and read whole.

use std::path::{Path, PathBuf};

use garret_hal::media::RamMedium;

use crate::model::{apply, dump, history, open, workload};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

#[test]
fn version_1_is_read_and_written_on() {
    let expected = history(&workload()).pop().unwrap();
    let medium = RamMedium::from_bytes(std::fs::read(path("v1.redb")).unwrap());
    let store = open(&medium);
    assert_eq!(dump(&store).unwrap(), expected);
    apply(&store, &workload()[0]).unwrap();
    drop(store);
    assert_eq!(dump(&open(&medium)).unwrap().sessions.len(), expected.sessions.len() + 1);
}

/// Wrote the fixture; `tests/fixtures/README.md` says when to run it again: never for a version
/// that was released.
#[test]
#[ignore = "writes a fixture"]
fn write_version_1() {
    let medium = RamMedium::new();
    let mut store = open(&medium);
    for op in workload() {
        if matches!(op, crate::model::Op::Reopen) {
            drop(store);
            store = open(&medium);
        } else {
            apply(&store, &op).unwrap();
        }
    }
    drop(store);
    std::fs::write(path("v1.redb"), medium.snapshot()).unwrap();
}
