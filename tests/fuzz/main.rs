//! Every parser of foreign bytes, on seeds and on a fixed number of mutations of them.
//!
//! A target is a function of some bytes (`targets`). It fails by a panic, by taking longer than
//! [`LONGEST`], or by asking for more memory at once than [`MOST_BYTES`]. The mutations are drawn
//! from a fixed seed, so every run reads the same inputs. An input that fails is printed; store it
//! in `tests/fuzz/corpus/TARGET/`, and it is read first from then on.
//!
//! How to look further: `GARRET_FUZZ_INPUTS=100000 cargo test -p garret-tests --test fuzz` reads so
//! many inputs of each target, and `GARRET_FUZZ_SEED=7` others. Where a nightly compiler and
//! cargo-fuzz are at hand, libFuzzer follows the branches that an input takes; `libfuzzer.rs` says
//! how.
//!
//! Operations are random in the tests of `garret-storage` (`operations`, `facts_operations`,
//! `summaries_operations`, `everything`), each compared with a reference model of the store.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail as tests do"
)]

mod heap;
mod mutator;
mod targets;

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use mutator::Mutator;
use targets::Target;

/// The time that one input may take, on a machine that has much else to do.
const LONGEST: Duration = Duration::from_secs(60);

/// The bytes that one input may ask the allocator for at once: twice what a model's header may
/// keep.
const MOST_BYTES: usize = 32 << 20;

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("a number"))
}

/// Inputs that were stored for a target because they failed once.
fn stored(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name);
    let Ok(files) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|file| std::fs::read(file).unwrap()).collect()
}

/// An input as Rust writes it.
fn literal(input: &[u8]) -> String {
    let mut text = String::from("b\"");
    for byte in input.iter().take(2_000) {
        write!(text, "{}", byte.escape_ascii()).unwrap();
    }
    text + if input.len() > 2_000 { "\"..." } else { "\"" }
}

/// Reads the seeds and as many mutations of them.
fn run(target: &Target) {
    let seeds = [(target.seeds)(), stored(target.name)].concat();
    let inputs = setting("GARRET_FUZZ_INPUTS").map_or(target.inputs, |inputs| inputs as usize);
    let mut mutator = Mutator::new(setting("GARRET_FUZZ_SEED").unwrap_or(20_261_201));
    let now: Arc<Mutex<Vec<u8>>> = Arc::default();
    let shown = Arc::clone(&now);
    let (done, is_done) = mpsc::channel();
    let (name, read) = (target.name, target.run);
    let worker = thread::spawn(move || {
        for n in 0..seeds.len() + inputs {
            let input = seeds.get(n).cloned().unwrap_or_else(|| mutator.mutate(&seeds));
            now.lock().unwrap().clone_from(&input);
            heap::forget_largest();
            let ended = catch_unwind(AssertUnwindSafe(|| read(&input)));
            if let Err(panic) = ended {
                eprintln!("{name}: input {n} panics: {}", literal(&input));
                resume_unwind(panic);
            }
            let largest = heap::largest();
            assert!(
                largest <= MOST_BYTES,
                "{name}: input {n} asks for {largest} bytes: {}",
                literal(&input)
            );
            done.send(()).unwrap();
        }
    });
    loop {
        match is_done.recv_timeout(LONGEST) {
            Ok(()) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                panic!("{name} takes too long: {}", literal(&shown.lock().unwrap()))
            }
        }
    }
    if let Err(panic) = worker.join() {
        resume_unwind(panic);
    }
}

macro_rules! tests {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            run(targets::ALL.iter().find(|target| target.name == stringify!($name)).unwrap());
        })*

        #[test]
        fn every_target_is_run() {
            let run = [$(stringify!($name)),*];
            assert!(targets::ALL.iter().all(|target| run.contains(&target.name)));
        }
    };
}

tests! {
    bundle bundle_record chat_template coarse_vectors config full_vectors gguf_header import_line
    journal journal_write records tag_scanner text_index
}

/// A target that fails is seen to fail, so that the rest means something.
#[test]
fn panics_and_large_allocations_are_noticed() {
    fn seeds() -> Vec<Vec<u8>> {
        vec![b"harmless".to_vec()]
    }
    fn panics(input: &[u8]) {
        assert_eq!(input, b"harmless");
    }
    fn allocates(_: &[u8]) {
        drop(std::hint::black_box(Vec::<u8>::with_capacity(MOST_BYTES + 1)));
    }
    for (run, inputs) in [(panics as fn(&[u8]), 9), (allocates, 0)] {
        let target = Target { name: "none", run, seeds, inputs };
        let ended = catch_unwind(|| self::run(&target));
        assert!(ended.is_err());
    }
}
