//! Files that aren't stores, or not whole ones: refused or read, never a panic, never a write.

use garret_core::id::SessionId;
use garret_hal::media::RamMedium;
use garret_storage::{OpenError, ReadError, Store};
use redb::{
    Database, ReadableDatabase as _, ReadableTable as _, ReadableTableMetadata as _,
    TableDefinition,
};

use crate::model::{Answer, NAMESPACE, Op, apply, id, open, workload};

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
    assert!(matches!(error, OpenError::NewerFormat { found: 7, known: 3, .. }), "{error}");
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
    let whole = read(&image).unwrap().unwrap();
    let ends = (1..image.len()).step_by(509).chain((4_096..image.len()).step_by(4_096));
    for end in ends.chain(1..64) {
        match read(&image[..end]) {
            Err(OpenError::Damaged { .. }) => assert!(end >= 9, "{end}"),
            Err(OpenError::NotAStore { .. }) => assert!(end < 9, "{end}"),
            // Only free pages are gone.
            Ok(Ok(found)) if end > image.len() / 2 => assert_eq!(found, whole, "{end}"),
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
                    let mut before = before.iter();
                    assert!(said.iter().all(|text| before.any(|was| was == text)), "byte {at}");
                }
            }
        }
    }
    assert!(refused > 0 && unread > 0, "{refused} refused, {unread} unread");
}

/// Puts `byte` at the start of `words` wherever they lie: older copies of a page may be there.
fn spoil(image: &mut [u8], words: &[u8], byte: u8) {
    let mut spoilt = 0;
    while let Some(at) = image.windows(words.len()).position(|bytes| bytes == words) {
        image[at] = byte;
        spoilt += 1;
    }
    assert!(spoilt > 0, "{words:?} isn't there");
}

#[test]
fn a_damaged_turn_is_named_and_the_rest_can_be_read() {
    let mut image = image(5);
    spoil(&mut image, b"My name is Ada", b'm');
    let store = open(&RamMedium::from_bytes(image));
    let seqs = |from| {
        store
            .with_turns(&id(0), from, |turns| turns.iter().map(|turn| turn.seq).collect::<Vec<_>>())
    };
    assert_eq!(seqs(1).unwrap(), vec![2]);
    assert_eq!(seqs(2).unwrap(), vec![2]);
    let damaged = store.damaged_turns(&id(0)).unwrap();
    assert_eq!(
        damaged.iter().map(|turn| (turn.seq, turn.only_reply)).collect::<Vec<_>>(),
        [(1, false)]
    );
    assert_eq!(store.damaged_turns(&id(1)).unwrap(), []);
    assert_eq!(store.with_turns(&id(1), 1, |turns| turns.len()).unwrap(), 1);
    assert_eq!(store.sessions().unwrap().len(), 2);
    apply(&store, &Op::Accept { session: 0, text: "still here?".to_owned(), ms: 0 }).unwrap();
    assert_eq!(seqs(1).unwrap(), vec![2, 3]);
}

/// After a crash as well; a repair that looked at every page would refuse the whole store.
#[test]
fn a_damaged_turn_stays_alone_after_a_crash() {
    let medium = RamMedium::new();
    let store = open(&medium);
    for op in &workload()[..5] {
        apply(&store, op).unwrap();
    }
    let mut image = medium.snapshot();
    spoil(&mut image, b"My name is Ada", b'm');
    let crashed = open(&RamMedium::from_bytes(image));
    assert_eq!(crashed.damaged_turns(&id(0)).unwrap().len(), 1);
    assert_eq!(crashed.with_turns(&id(0), 1, |turns| turns[0].seq).unwrap(), 2);
    let next = Op::Accept { session: 0, text: "and now?".to_owned(), ms: 0 };
    assert_eq!(apply(&crashed, &next).unwrap(), Answer::Accepted(3));
    drop(store);
}

#[test]
fn a_damaged_reply_is_named_and_the_users_words_stay() {
    let mut image = image(5);
    spoil(&mut image, b"Hello, Ada. How many", b'h');
    let store = open(&RamMedium::from_bytes(image));
    store
        .with_turns(&id(0), 1, |turns| {
            assert!(turns[0].reply_damaged && turns[0].reply.is_none());
            assert!(turns[0].user.contains("Ada") && turns[1].reply.is_some());
        })
        .unwrap();
    let damaged = store.damaged_turns(&id(0)).unwrap();
    assert_eq!(
        damaged.iter().map(|turn| (turn.seq, turn.only_reply)).collect::<Vec<_>>(),
        [(1, true)]
    );
}

/// Sessions 0 and 1, and 2 if `third`, the first of them and the third with broken titles.
fn with_broken_sessions(third: bool, byte: u8) -> Store {
    let medium = RamMedium::new();
    let store = open(&medium);
    for session in 0..if third { 3 } else { 2 } {
        apply(&store, &Op::Accept { session, text: format!("message {session}"), ms: 0 }).unwrap();
        let title = format!("broken title {}", session % 2);
        apply(&store, &Op::Title { session, title }).unwrap();
    }
    drop(store);
    let mut image = medium.snapshot();
    spoil(&mut image, b"broken title 0", byte);
    open(&RamMedium::from_bytes(image))
}

#[test]
fn a_damaged_session_leaves_the_others_alone_and_can_be_deleted() {
    for (third, byte) in [(false, 0xff), (true, 0xff), (true, b'B')] {
        let store = with_broken_sessions(third, byte);
        let ids = |store: &Store| {
            store.sessions().unwrap().into_iter().map(|info| info.id).collect::<Vec<_>>()
        };
        assert_eq!(ids(&store), [id(1)]);
        assert_eq!(store.latest_session().unwrap().unwrap().id, id(1));
        let expected = if third { vec!["a", "ab"] } else { vec!["a"] };
        assert_eq!(store.damaged_sessions().unwrap(), expected);
        let error = store.session(&id(0)).unwrap_err();
        assert!(error.to_string().contains("session `a`"), "{error}");
        assert!(apply(&store, &Op::Accept { session: 0, text: "x".to_owned(), ms: 0 }).is_err());
        apply(&store, &Op::Delete { session: 0 }).unwrap();
        assert_eq!(store.damaged_sessions().unwrap(), expected[1..]);
        assert_eq!(store.session(&id(0)).unwrap(), None);
        assert!(store.with_turns(&id(1), 1, |turns| turns[0].user == "message 1").unwrap());
        apply(&store, &Op::Accept { session: 0, text: "anew".to_owned(), ms: 0 }).unwrap();
        assert_eq!(store.with_turns(&id(0), 1, |turns| turns.len()).unwrap(), 1);
    }
}

/// Nothing of a deleted session may stay, whatever of its record was wrong.
#[test]
fn deleting_a_damaged_session_takes_its_turns_along() {
    for at in 0..64 {
        let file = changed(|database| {
            let transaction = database.begin_write().unwrap();
            {
                let mut sessions = transaction.open_table(SESSIONS).unwrap();
                let mut record = sessions.get(&b"a"[..]).unwrap().unwrap().value().to_vec();
                let root = record.len() - 64;
                record[root + at] ^= 0x40;
                sessions.insert(&b"a"[..], &*record).unwrap();
            }
            transaction.commit().unwrap();
        });
        let medium = RamMedium::from_bytes(file);
        let store = open(&medium);
        assert_eq!(store.damaged_sessions().unwrap(), ["a"], "{at}");
        apply(&store, &Op::Delete { session: 0 }).unwrap();
        drop(store);
        assert_eq!(turns_in(&medium.snapshot()), 1, "{at}: not session 1's alone");
    }
}

fn turns_in(image: &[u8]) -> u64 {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), image).unwrap();
    let database = Database::open(file.path()).unwrap();
    let turns = TableDefinition::<[u8; 16], &[u8]>::new("turns");
    database.begin_read().unwrap().open_table(turns).unwrap().len().unwrap()
}

const SESSIONS: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("sessions");

/// A damaged receipt is no receipt: an older one, or none, is what the next turn goes by.
#[test]
fn a_damaged_receipt_is_told_and_passed_over() {
    let mut image = image(5);
    spoil(&mut image, b"{\"turn\":2}", b'[');
    let store = open(&RamMedium::from_bytes(image));
    let error = store.receipt(&id(0), 2).unwrap_err();
    assert!(error.to_string().contains("damaged receipt, turn 2"), "{error}");
    assert_eq!(store.last_receipt(&id(0)).unwrap(), Some((1, b"{\"turn\":1}".to_vec())));
}
