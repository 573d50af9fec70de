//! Files that aren't stores, or not whole ones: refused or read, never a panic, never a write.

use garret_core::id::SessionId;
use garret_hal::media::RamMedium;
use garret_storage::{OpenError, ReadError, Store};
use redb::{Database, TableDefinition};

use crate::model::{NAMESPACE, apply, id, open, workload};

/// The user's words, session by session.
type Words = Vec<(SessionId, Vec<String>)>;

/// Opens `image`, which must not be changed by that, and reads everything.
fn read(image: &[u8]) -> Result<Result<Words, ReadError>, OpenError> {
    let medium = RamMedium::from_bytes(image.to_vec());
    let store = Store::on_medium(NAMESPACE, Box::new(medium.clone()));
    let done = store.map(|store| words(&store));
    assert!(medium.snapshot() == image, "the medium was written to: {done:?}");
    done
}

fn words(store: &Store) -> Result<Words, ReadError> {
    let mut words = Words::new();
    for session in store.sessions()? {
        let said = store.with_turns(&session.id, 1, |turns| {
            turns.iter().map(|turn| turn.user.to_owned()).collect()
        })?;
        store.last_receipt(&session.id)?;
        words.push((session.id, said));
    }
    Ok(words)
}

/// A store after the first operations of the workload.
fn image(ops: usize) -> Vec<u8> {
    let medium = RamMedium::new();
    let store = open(&medium);
    for op in &workload()[..ops] {
        apply(&store, op).unwrap();
    }
    drop(store);
    medium.snapshot()
}

/// A store that somebody's redb changed.
fn changed(change: impl FnOnce(&Database)) -> Vec<u8> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), image(3)).unwrap();
    change(&Database::open(file.path()).unwrap());
    std::fs::read(file.path()).unwrap()
}

fn set_meta(key: &'static str, value: &[u8]) -> Vec<u8> {
    changed(|database| {
        let transaction = database.begin_write().unwrap();
        transaction.open_table(META).unwrap().insert(key, value).unwrap();
        transaction.commit().unwrap();
    })
}

const META: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("meta");

#[test]
fn other_files_are_not_stores() {
    let mut sqlite = b"SQLite format 3\0".to_vec();
    sqlite.resize(8_192, 1);
    let files = [
        vec![0; 10],
        vec![0; 4_096],
        vec![0; 1 << 20],
        sqlite,
        b"notes".to_vec(),
        b"redb".to_vec(),
        b"GarretNEX".to_vec(),
        vec![0xff; 700],
    ];
    for file in files {
        let error = read(&file).unwrap_err();
        assert!(matches!(error, OpenError::NotAStore { .. }), "{error}");
        assert!(error.to_string().contains(NAMESPACE), "{error}");
    }
}

#[test]
fn an_empty_file_is_a_new_store() {
    for file in [&[][..], &[0], &[0; 9], b"Gar", b"G\0rretNE"] {
        assert_eq!(read(file).unwrap().unwrap(), Words::new(), "{file:?}");
    }
}

#[test]
fn another_database_is_not_a_store() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let database = Database::create(file.path()).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(TableDefinition::<u64, u64>::new("meta")).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let error = read(&std::fs::read(file.path()).unwrap()).unwrap_err();
    assert!(matches!(error, OpenError::NotAStore { .. }), "{error}");
}

#[test]
fn a_newer_format_is_refused() {
    let error = read(&set_meta("format", &7_u32.to_le_bytes())).unwrap_err();
    assert!(matches!(error, OpenError::NewerFormat { found: 7, known: 1, .. }), "{error}");
}

#[test]
fn a_format_that_never_was_is_damage() {
    for bad in [&0_u32.to_le_bytes()[..], b"", b"12345"] {
        let error = read(&set_meta("format", bad)).unwrap_err();
        assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    }
}

/// Somebody copied a file under another name.
#[test]
fn a_file_of_another_namespace_is_refused() {
    let error = read(&set_meta("namespace", b"neighbour")).unwrap_err();
    assert!(
        matches!(&error, OpenError::OtherNamespace { found, .. } if found == "neighbour"),
        "{error}"
    );
}

#[test]
fn a_store_cut_short_anywhere_is_refused() {
    let image = image(5);
    let ends = (1..image.len()).step_by(509).chain((4_096..image.len()).step_by(4_096));
    for end in ends.chain(1..64) {
        match read(&image[..end]) {
            Err(OpenError::Damaged { .. }) => assert!(end >= 9, "{end}"),
            Err(OpenError::NotAStore { .. }) => assert!(end < 9, "{end}"),
            other => panic!("{end}: {other:?}"),
        }
    }
}

/// Whatever is said about a file with one wrong byte, it isn't said by a panic, and the file stays.
#[test]
fn one_wrong_byte_never_panics_and_never_passes_for_a_users_words() {
    let whole = image(5);
    let expected = read(&whole).unwrap().unwrap();
    let used = |at: &usize| whole[at & !63..at | 63].iter().any(|byte| *byte != 0);
    let (mut refused, mut unread) = (0, 0);
    for at in (0..320).chain((320..whole.len()).filter(used).step_by(29)) {
        let mut image = whole.clone();
        image[at] ^= 1 << (at % 8);
        match read(&image) {
            Err(_) => refused += 1,
            Ok(Err(_)) => unread += 1,
            Ok(Ok(found)) => {
                for (session, said) in found {
                    let (_, before) = expected.iter().find(|(id, _)| *id == session).unwrap();
                    assert!(before.starts_with(&said), "byte {at}: {said:?}");
                }
            }
        }
    }
    assert!(refused > 0 && unread > 0, "{refused} refused, {unread} unread");
}

#[test]
fn a_damaged_turn_is_named_and_the_rest_can_be_read() {
    let mut image = image(3);
    let words = b"My name is Ada";
    // Older copies of the page may be there, too.
    while let Some(at) = image.windows(words.len()).position(|bytes| bytes == words) {
        image[at] = b'm';
    }
    let store = open(&RamMedium::from_bytes(image));
    let error = store.with_turns(&id(0), 1, |_| ()).unwrap_err();
    assert!(error.to_string().contains("turn 1 of session number 1"), "{error}");
    assert_eq!(store.with_turns(&id(1), 1, |turns| turns.len()).unwrap(), 1);
    assert_eq!(store.sessions().unwrap().len(), 2);
}
