//! Checking a store: clean where it is, every kind of damage named, never a panic.

use garret_core::medium::Medium as _;
use garret_hal::media::RamMedium;
use garret_storage::{OpenError, Report, Store};
use redb::{Database, Key, ReadableDatabase as _, ReadableTable as _, TableDefinition, Value};

use crate::bundle::{facts, fill, forget};
use crate::model::{NAMESPACE, Pair, dump, open};

#[test]
fn a_store_that_is_whole_is_clean() {
    let pair = Pair::<RamMedium>::default();
    let store = pair.open();
    assert_eq!(store.verify().unwrap(), Report::default());
    fill(&store);
    let before = pair.bytes();
    let report = store.verify().unwrap();
    assert_eq!(report.problems, []);
    let stats = store.stats().unwrap();
    assert_eq!(report.checked.sessions, stats.sessions);
    assert_eq!(report.checked.turns, stats.turns);
    assert_eq!(report.checked.replies, stats.replies);
    assert_eq!(report.checked.summaries, stats.summaries);
    assert_eq!(report.checked.facts, stats.facts.all);
    assert_eq!(report.checked.entities, stats.entities);
    assert_eq!(report.checked.pending, stats.pending);
    assert!(report.checked.references > 2 * stats.links + stats.facts.all);
    assert!(pair.bytes() == before, "checking wrote");
    store.fold().unwrap();
    assert!(store.verify().unwrap().is_clean());
    drop(store);
    assert!(pair.open().verify().unwrap().is_clean());
}

/// A filled store's file.
fn image() -> Vec<u8> {
    let medium = RamMedium::new();
    fill(&open(&medium));
    medium.snapshot()
}

/// The same after a turn was forgotten.
fn image_after_forgetting() -> Vec<u8> {
    let medium = RamMedium::from_bytes(image());
    let store = open(&medium);
    forget(&store);
    assert_eq!(store.verify().unwrap().problems, []);
    drop(store);
    medium.snapshot()
}

/// The same with one row changed by somebody's redb.
fn changed<K: Key + 'static, V: Value + 'static>(
    image: &[u8],
    table: TableDefinition<'static, K, V>,
    change: &dyn Fn(&mut redb::Table<'_, K, V>),
) -> Vec<u8> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), image).unwrap();
    let database = Database::open(file.path()).unwrap();
    let transaction = database.begin_write().unwrap();
    change(&mut transaction.open_table(table).unwrap());
    transaction.commit().unwrap();
    drop(database);
    std::fs::read(file.path()).unwrap()
}

fn rows<K: Key + 'static, V: Value + 'static>(
    image: &[u8],
    table: TableDefinition<'static, K, V>,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), image).unwrap();
    let database = Database::open(file.path()).unwrap();
    let table = database.begin_read().unwrap().open_table(table).unwrap();
    let rows = table.iter().unwrap().map(|row| {
        let (key, value) = row.unwrap();
        (K::as_bytes(&key.value()).as_ref().to_vec(), V::as_bytes(&value.value()).as_ref().to_vec())
    });
    rows.collect()
}

/// Whether the damage was told: by the open that refuses it or the check that names it.
fn told(image: &[u8]) -> Result<String, String> {
    let medium = RamMedium::from_bytes(image.to_vec());
    let store = match Store::on_medium(NAMESPACE, Box::new(medium.clone())) {
        Ok(store) => store,
        Err(error) => return Ok(error.to_string()),
    };
    let report = store.verify().unwrap();
    assert!(medium.snapshot() == image, "checking wrote");
    for problem in &report.problems {
        assert!(!problem.what.is_empty() && !problem.key.is_empty(), "{problem:?}");
        assert!(problem.to_string().contains("restore a backup"), "{problem}");
    }
    match &*report.problems {
        [] => Err("clean".to_owned()),
        [first, ..] => Ok(first.to_string()),
    }
}

/// Takes each row of a table away, changes one bit in every part of its value, and puts it under
/// keys that differ in one bit.
fn damage<K: Key + 'static, V: Value + 'static>(table: TableDefinition<'static, K, V>) {
    damage_rows(&image(), table, true);
}

/// Without `all`, no row is taken away: that of a table that nothing else leads to isn't missed.
fn damage_rows<K: Key + 'static, V: Value + 'static>(
    image: &[u8],
    table: TableDefinition<'static, K, V>,
    all: bool,
) {
    let rows = rows(image, table);
    assert!(!rows.is_empty(), "{table}: nothing to damage");
    let mut told_of = 0;
    let mut check = |what: String, change: &dyn Fn(&mut redb::Table<'_, K, V>)| {
        told(&changed(image, table, change)).unwrap_or_else(|why| panic!("{table}, {what}: {why}"));
        told_of += 1;
    };
    for (key, value) in &rows {
        if all {
            check(format!("row {key:02x?} gone"), &|table| {
                table.remove(K::from_bytes(key)).unwrap();
            });
        }
        let step = (value.len() / 5).max(1);
        for at in (0..value.len()).step_by(step) {
            let mut wrong = value.clone();
            wrong[at] ^= 1 << (at % 7);
            check(format!("row {key:02x?}, byte {at}"), &|table| {
                table.insert(K::from_bytes(key), V::from_bytes(&wrong)).unwrap();
            });
        }
        for at in (0..key.len()).step_by((key.len() / 4).max(1)) {
            let mut other = key.clone();
            other[at] ^= 1 << (at % 7);
            if rows.iter().any(|(key, _)| *key == other) {
                continue;
            }
            check(format!("row {key:02x?} again as {other:02x?}"), &|table| {
                table.insert(K::from_bytes(&other), V::from_bytes(value)).unwrap();
            });
        }
    }
    assert!(told_of > rows.len(), "{table}");
}

type ById = TableDefinition<'static, &'static [u8; 8], &'static [u8]>;
type ByTurn = TableDefinition<'static, [u8; 16], &'static [u8]>;
type Index<const N: usize> = TableDefinition<'static, &'static [u8; N], ()>;

#[test]
fn damage_of_conversations_is_told() {
    damage(TableDefinition::<&[u8], &[u8]>::new("sessions"));
    for table in ["turns", "replies", "receipts"] {
        damage(ByTurn::new(table));
    }
    damage_rows(&image(), ByTurn::new("speakers"), false);
    let image = image_after_forgetting();
    damage_rows(&image, TableDefinition::<&[u8; 16], &[u8; 8]>::new("forgotten"), true);
    damage_rows(&image, ById::new("erasures"), true);
}

#[test]
fn damage_of_facts_is_told() {
    damage(ById::new("facts"));
    damage(ById::new("entities"));
    damage_rows(&image(), ById::new("fact_usage"), false);
}

#[test]
fn damage_of_summaries_is_told() {
    damage(ByTurn::new("summaries"));
    damage(ById::new("summary_heads"));
    damage(TableDefinition::<&[u8; 16], &[u8; 16]>::new("summary_leaves"));
    damage_rows(&image(), ByTurn::new("traces"), false);
    damage_rows(&image(), TableDefinition::<&[u8; 9], &[u8]>::new("states"), false);
}

#[test]
fn damage_of_what_leads_to_facts_is_told() {
    damage(Index::<8>::new("fact_pins"));
    damage(Index::<49>::new("fact_slots"));
    damage(Index::<17>::new("fact_heirs"));
    damage(Index::<24>::new("fact_sources"));
    damage(Index::<20>::new("links"));
    damage(TableDefinition::<&[u8], &[u8; 8]>::new("entity_names"));
}

#[test]
fn counters_that_would_give_a_number_again_are_told() {
    const META: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("meta");
    let image = image();
    for (key, _) in rows(&image, META) {
        let key = std::str::from_utf8(&key).unwrap().to_owned();
        let gone = changed(&image, META, &|table| drop(table.remove(&*key).unwrap()));
        told(&gone).unwrap_or_else(|why| panic!("{key} gone: {why}"));
        if key.starts_with("next_") || key == "activity" {
            let low = 1_u64.to_le_bytes();
            let low = changed(&image, META, &|table| drop(table.insert(&*key, &low[..]).unwrap()));
            assert!(told(&low).unwrap().contains("give a number again"), "{key}");
        }
    }
}

/// Whatever byte of the file is wrong: nothing panics, and what passes for clean is the same store.
#[test]
fn a_wrong_byte_anywhere_is_told_or_does_no_harm() {
    let whole = image();
    let expected = (dump(&open(&RamMedium::from_bytes(whole.clone()))).unwrap(), {
        facts(&open(&RamMedium::from_bytes(whole.clone())))
    });
    let used = |at: &usize| whole[at & !63..at | 63].iter().any(|byte| *byte != 0);
    let (mut refused, mut named, mut harmless) = (0, 0, 0);
    for at in (0..320).chain((320..whole.len()).filter(used).step_by(97)) {
        let mut image = whole.clone();
        image[at] ^= 1 << (at % 8);
        let store = match Store::on_medium(NAMESPACE, Box::new(RamMedium::from_bytes(image))) {
            Ok(store) => store,
            Err(OpenError::Damaged { .. } | OpenError::NotAStore { .. }) => {
                refused += 1;
                continue;
            }
            Err(error) => {
                refused += 1;
                assert!(!error.to_string().is_empty());
                continue;
            }
        };
        if !store.verify().unwrap().is_clean() {
            named += 1;
            continue;
        }
        harmless += 1;
        assert_eq!(dump(&store).unwrap(), expected.0, "byte {at}");
        assert_eq!(facts(&store), expected.1, "byte {at}");
    }
    assert!(refused > 0 && named > 0 && harmless > 0, "{refused} {named} {harmless}");
}

/// Files that change below an open store.
#[test]
fn a_journal_that_was_spoilt_is_told_before_it_is_needed() {
    let pair = Pair::<RamMedium>::default();
    let store = pair.open();
    fill(&store);
    let [_, journal] = pair.bytes();
    for (at, expected) in [(4_100, "journal"), (3, "journal"), (40, "journal")] {
        pair.journal.write_at(at, &[0xff]).unwrap();
        let report = store.verify().unwrap();
        assert_eq!(report.problems.len(), 1, "{:?}", report.problems);
        assert!(report.problems[0].what.starts_with(expected), "{:?}", report.problems);
        pair.journal.write_at(0, &journal).unwrap();
        assert!(store.verify().unwrap().is_clean());
    }
    let pair = Pair::<RamMedium>::default();
    let store = pair.open();
    fill(&store);
    store.fold().unwrap();
    let records = pair.records.snapshot();
    pair.records.set_len(8_192).unwrap();
    assert!(!store.verify().unwrap().is_clean());
    pair.records.write_at(0, &records).unwrap();
    assert!(store.verify().unwrap().is_clean());
}
