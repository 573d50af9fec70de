//! Searches and writes at the same time: neither waits for the other.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use garret_core::id::SessionId;
use garret_core::time::{Confidence, WallTime};
use garret_core::vector::{Kernels, Scalar};
use garret_hal::media::RamMedium;
use garret_storage::search::Search;
use garret_storage::vectors::UnitKey;
use garret_storage::{Part, Store};

const AT: WallTime = WallTime { unix_ms: 1_683_554_160_000, confidence: Confidence::Good };

fn id(name: &str) -> SessionId {
    name.parse().unwrap()
}

fn store() -> Store {
    let media = Mutex::new(HashMap::<Part, RamMedium>::new());
    let medium = move |part| media.lock().unwrap().entry(part).or_default().clone();
    Store::on_media("n", move |part| Ok(Box::new(medium(part)))).unwrap()
}

/// Kernels that say when they are asked, and answer when they are told to.
struct Slow {
    asked: Mutex<Sender<()>>,
    answer: Mutex<Receiver<()>>,
}

impl Kernels for Slow {
    fn dot_rows_i8(&self, query: &[i8], rows: &[i8], out: &mut [i32]) {
        self.asked.lock().unwrap().send(()).unwrap();
        self.answer.lock().unwrap().recv().unwrap();
        Scalar.dot_rows_i8(query, rows, out);
    }

    fn dot_f16(&self, query: &[u16], row: &[u16]) -> f32 {
        Scalar.dot_f16(query, row)
    }
}

/// The search stands still in the middle, with its index locked; writes must go through.
#[test]
fn a_write_does_not_wait_for_a_search() {
    let ((asked, is_asked), (answer, answers)) = (channel(), channel());
    let slow = Slow { asked: Mutex::new(asked), answer: Mutex::new(answers) };
    let store = store();
    store.set_embedder([1; 32], 2, Arc::new(slow), None).unwrap();
    let turn = store.accept(&id("a"), "The bees swarmed.", AT).unwrap();
    let found = store.unembedded(9).unwrap();
    assert!(matches!(found[..], [(UnitKey::Words { turn: 1, .. }, _)]), "{found:?}");
    store.add_vectors(&[(found[0].0, vec![0.6, 0.8])]).unwrap();
    assert_eq!(turn, 1);
    thread::scope(|scope| {
        let search = scope.spawn(|| {
            let vector: &[f32] = &[0.6, 0.8];
            store.find(&Search { vector: Some(vector), ..Search::new("swarm", 5) }).unwrap()
        });
        is_asked.recv().unwrap();
        for number in 2..50 {
            assert_eq!(store.accept(&id("a"), "They came back.", AT).unwrap(), number);
        }
        store.rename(&id("a"), &id("b")).unwrap();
        answer.send(()).unwrap();
        let found = search.join().unwrap();
        assert_eq!(found.hits[0].id, "a/1/user", "as it was when the search began");
    });
    assert_eq!(store.search("bees", None, 5).unwrap().hits[0].id, "b/1/user");
}

/// Whatever a thread wrote it finds, while others write, rename, delete and search.
#[test]
fn every_thread_finds_what_it_has_just_written() {
    let store = store();
    thread::scope(|scope| {
        for thread in 0..4 {
            let store = &store;
            scope.spawn(move || {
                let session = id(&format!("s{thread}"));
                for round in 0..25 {
                    let word = format!("word{thread}x{round}");
                    let turn = store.accept(&session, &format!("Say {word}."), AT).unwrap();
                    let found = store.search(&word, None, 3).unwrap();
                    assert_eq!(found.hits[0].id, format!("{session}/{turn}/user"));
                    if round % 10 == 9 {
                        store.delete(&session).unwrap();
                        assert!(store.search(&word, None, 3).unwrap().hits.is_empty());
                    }
                }
            });
        }
    });
}
