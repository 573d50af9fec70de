//! A store that may only be read: on a read-only disk, or of another user.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use garret_core::medium::MediumError;
use garret_hal::media::FileMedium;
use garret_storage::{Store, WriteError, file_name};

use crate::model::{NAMESPACE, Op, apply, id};

fn open(dir: &Path) -> Store {
    Store::open(dir, NAMESPACE, |path| Ok(Box::new(FileMedium::open(path)?))).unwrap()
}

/// What the other process does.
#[test]
fn reader() {
    let Some(dir) = std::env::var_os(DIRECTORY) else { return };
    let store = open(Path::new(&dir));
    let read = || store.with_turns(&id(0), 1, |turns| turns[0].user.to_owned()).unwrap();
    assert_eq!(read(), "for all to read");
    let found = store.search("read", None, 5).unwrap();
    assert_eq!(found.hits.iter().map(|hit| &*hit.text).collect::<Vec<_>>(), ["for all to read"]);
    let more = Op::Accept { session: 0, text: "no".to_owned(), ms: 0 };
    for op in [more, Op::Delete { session: 0 }] {
        let error = apply(&store, &op).unwrap_err();
        assert!(matches!(error, WriteError::Medium(MediumError::Denied)), "{error}");
        assert_eq!(read(), "for all to read");
    }
    println!("\n{SAYS}");
}

const DIRECTORY: &str = "GARRET_TEST_READ_ONLY";
const SAYS: &str = "read and refused";

#[test]
fn a_store_that_may_only_be_read_is_read() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("data");
    let store = open(&dir);
    let op = Op::Accept { session: 0, text: "for all to read".to_owned(), ms: 0 };
    apply(&store, &op).unwrap();
    drop(store);
    let file = dir.join(file_name(NAMESPACE).unwrap());
    let before = std::fs::read(&file).unwrap();
    let set = |path: &Path, mode| {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    };
    set(root.path(), 0o755);
    set(&file, 0o444);
    set(&file.with_extension("lock"), 0o444);
    set(&dir, 0o555);

    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["read_only::reader", "--exact", "--nocapture"]).env(DIRECTORY, &dir);
    if root.path().metadata().unwrap().uid() == 0 {
        // Nothing is refused to root; nobody it is.
        command.uid(65_534).gid(65_534);
    }
    match command.output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && said.contains(SAYS), "{said}{errors}");
        }
        Err(error) => eprintln!("SKIPPED: this test can't be run as another user: {error}"),
    }
    set(&dir, 0o755);
    assert!(std::fs::read(&file).unwrap() == before);
}
