//! What the GGUF reader gets out of files, and that hostile ones cost it neither panic nor memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use garret_llm::gguf::{Gguf, GgufError, Value};
use proptest::prelude::*;

use crate::support::gguf::{Writer, array, test_model, write};

/// Remembers the largest single allocation of each thread.
struct Watched;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator unchanged; the bookkeeping beside it
// touches a constant-initialised thread-local without destructor, so it doesn't allocate.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.with(|largest| largest.set(largest.get().max(layout.size())));
        // SAFETY: the caller's promises about `layout` are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: `at` came from `System.alloc` above with this `layout`.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

fn open(bytes: &[u8]) -> Result<Gguf, GgufError> {
    let dir = tempfile::tempdir().unwrap();
    Gguf::open(&write(&dir.path().join("m.gguf"), bytes))
}

#[test]
fn reads_what_was_written() {
    let gguf = open(&Writer::chat().bytes()).unwrap();
    assert_eq!(gguf.version(), 3);
    assert_eq!(gguf.architecture(), Some("llama"));
    assert_eq!(gguf.name(), Some("Tiny"));
    assert_eq!(gguf.context_length(), Some(2_048));
    assert_eq!(gguf.block_count(), Some(2));
    assert_eq!(gguf.embedding_length(), Some(64));
    assert_eq!(gguf.head_count(1), Some(4));
    assert_eq!(gguf.head_count_kv(1), Some(2));
    assert_eq!(gguf.key_length(), Some(16));
    assert_eq!(gguf.vocabulary_size(), Some(3));
    assert_eq!(gguf.chat_template(), Some("{{ messages[0]['content'] }}"));
    assert_eq!(gguf.pooling_type(), None);
    assert_eq!(gguf.tensor_count(), 2);
    assert_eq!(gguf.tensor_bytes(), 64 * 3 * 4 + 64 * 4);
}

#[test]
fn reads_every_scalar_type() {
    let file = Writer::chat()
        .pair("u8", 0, &[200])
        .pair("i8", 1, &[0xff])
        .pair("u16", 2, &[0xff, 0xff])
        .pair("i16", 3, &[0xff, 0xff])
        .pair("i32", 5, &7_i32.to_le_bytes())
        .pair("f32", 6, &1.5_f32.to_le_bytes())
        .pair("bool", 7, &[1])
        .pair("u64", 10, &u64::MAX.to_le_bytes())
        .pair("i64", 11, &(-1_i64).to_le_bytes())
        .pair("f64", 12, &2.5_f64.to_le_bytes());
    let gguf = open(&file.bytes()).unwrap();
    assert_eq!(gguf.u32("u8"), Some(200));
    assert_eq!(gguf.value("i8"), Some(&Value::Signed(-1)));
    assert_eq!(gguf.u32("i8"), None);
    assert_eq!(gguf.u32("u16"), Some(65_535));
    assert_eq!(gguf.value("i16"), Some(&Value::Signed(-1)));
    assert_eq!(gguf.u32("i32"), Some(7));
    assert_eq!(gguf.value("f32"), Some(&Value::Float(1.5)));
    assert_eq!(gguf.bool("bool"), Some(true));
    assert_eq!((gguf.u64("u64"), gguf.u32("u64")), (Some(u64::MAX), None));
    assert_eq!(gguf.u64("i64"), None);
    assert_eq!(gguf.value("f64"), Some(&Value::Float(2.5)));
}

#[test]
fn head_counts_can_differ_by_layer() {
    let file = Writer::chat()
        .u32s("llama.attention.head_count", &[8, 4])
        .u32s("llama.attention.head_count_kv", &[2, 0]);
    let gguf = open(&file.bytes()).unwrap();
    assert_eq!([0, 1].map(|layer| gguf.head_count_kv(layer)), [Some(2), Some(0)]);
    assert_eq!(gguf.head_count(2), None);
    assert_eq!(gguf.key_length(), Some(8));
}

#[test]
fn other_files_are_told_apart() {
    assert!(matches!(open(b""), Err(GgufError::NotGguf { .. })));
    assert!(matches!(open(b"PK\x03\x04zip"), Err(GgufError::NotGguf { .. })));
    assert!(matches!(open(b"GGUF\x01\0\0\0"), Err(GgufError::Version { version: 1, .. })));
    assert!(matches!(open(b"GGUF\x04\0\0\0"), Err(GgufError::Version { version: 4, .. })));
    assert!(matches!(open(b"GGUF\0\0\0\x03"), Err(GgufError::BigEndian { .. })));
    assert!(matches!(open(b"GGUF\x03"), Err(GgufError::Truncated { .. })));
    assert!(matches!(Gguf::open("/no/such/file".as_ref()), Err(GgufError::Io { .. })));
    assert!(matches!(Gguf::open("/".as_ref()), Err(GgufError::Io { .. })));
}

#[test]
fn announced_lengths_are_not_believed() {
    let huge = u64::MAX / 2;
    let bodies: [(u32, Vec<u8>); 5] = [
        (8, huge.to_le_bytes().to_vec()),
        (9, array(8, huge)),
        (9, array(4, huge)),
        (9, array(9, 1)),
        (9, [array(8, 1), huge.to_le_bytes().to_vec()].concat()),
    ];
    for (kind, body) in bodies {
        let file = Writer::chat().pair("k", kind, &body);
        assert!(open(&file.bytes()).is_err(), "type {kind}");
    }
}

#[test]
fn tensors_must_lie_within_the_file() {
    let file = Writer::chat();
    let bytes = file.bytes();
    let short = open(&bytes[..bytes.len() - 32]);
    assert!(matches!(short, Err(GgufError::Truncated { .. })), "{short:?}");
    for shape in [[u64::MAX, 2], [1 << 40, 1 << 40], [1 << 62, 1]] {
        let far = open(&Writer::chat().tensor("t", &shape, 0, 32).bytes());
        assert!(matches!(far, Err(GgufError::Damaged { .. } | GgufError::Truncated { .. })));
    }
    let odd_row = open(&Writer::chat().tensor("t", &[33], 2, 64).bytes());
    assert!(matches!(odd_row, Err(GgufError::Damaged { .. })));
    let unknown = open(&Writer::chat().tensor("t", &[32], 4, 64).bytes());
    assert!(matches!(unknown, Err(GgufError::Damaged { .. })));
}

#[test]
fn a_removed_quantisation_is_called_old_and_not_damaged() {
    for kind in [31, 32, 33, 36, 37, 38] {
        let error = open(&Writer::chat().tensor("t", &[32], kind, 32).bytes()).unwrap_err();
        assert!(matches!(error, GgufError::OldQuantisation { .. }), "{error}");
        assert!(error.to_string().contains("convert it again"), "{error}");
    }
}

#[test]
fn a_very_long_string_is_passed_over() {
    let long = "x".repeat(5 << 20);
    let gguf = open(&Writer::chat().text("tokenizer.huggingface.json", &long).bytes()).unwrap();
    assert_eq!(gguf.value("tokenizer.huggingface.json"), Some(&Value::LongText(5 << 20)));
    assert_eq!(gguf.chat_template(), Some("{{ messages[0]['content'] }}"));
}

#[test]
fn one_of_the_named_templates_is_chosen() {
    let named = |names: &[&str]| {
        let file = Writer::chat().without("tokenizer.chat_template");
        names
            .iter()
            .fold(file, |file, name| file.text(&format!("tokenizer.chat_template.{name}"), name))
    };
    for (names, chosen) in [
        (["tool_use", "default", "a"].as_slice(), Some("default")),
        (&["tool_use", "rag", "zephyr"], Some("zephyr")),
        (&["b", "a", "rag"], Some("a")),
        (&["tool_use", "rag"], None),
    ] {
        assert_eq!(open(&named(names).bytes()).unwrap().chat_template(), chosen);
        let own = named(names).text("tokenizer.chat_template", "own");
        assert_eq!(open(&own.bytes()).unwrap().chat_template(), Some("own"));
        let blank = named(names).text("tokenizer.chat_template", " ");
        assert_eq!(open(&blank.bytes()).unwrap().chat_template(), chosen);
    }
    let other = Writer::chat().without("tokenizer.chat_template");
    let other = other.text("tokenizer.chat_template_kind", "x");
    assert_eq!(open(&other.bytes()).unwrap().chat_template(), None);
}

#[test]
fn a_key_given_twice_is_damage() {
    let mut doubled = Writer::chat().u32("key 1", 1).u32("key 2", 2).bytes();
    let at = doubled.windows(5).position(|window| window == b"key 2").unwrap();
    doubled[at + 4] = b'1';
    assert!(matches!(open(&doubled), Err(GgufError::Damaged { .. })));
}

/// Every cut of a small model, at every byte.
#[test]
fn no_truncation_is_taken_for_whole() {
    let bytes = Writer::chat().bytes();
    let data_end = bytes.len();
    let dir = tempfile::tempdir().unwrap();
    for len in 0..data_end {
        let path = write(&dir.path().join("m.gguf"), &bytes[..len]);
        assert!(Gguf::open(&path).is_err(), "{len} of {data_end} bytes were taken for whole");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn flipped_bytes_cost_neither_panic_nor_memory(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = Writer::chat().u32s("n", &[1; 40]).bytes();
        for (at, value) in flips {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let dir = tempfile::tempdir().unwrap();
        let path = write(&dir.path().join("m.gguf"), &bytes);
        LARGEST.with(|largest| largest.set(0));
        let _ = Gguf::open(&path);
        let largest = LARGEST.with(Cell::get);
        prop_assert!(largest <= 1 << 17, "allocated {largest} bytes at once");
    }
}

#[test]
fn agrees_with_the_starter_model() {
    let Some(path) = test_model("SmolLM2-135M-Instruct-Q4_1.gguf") else { return };
    let gguf = Gguf::open(&path).unwrap();
    assert_eq!(gguf.architecture(), Some("llama"));
    assert_eq!((gguf.block_count(), gguf.context_length()), (Some(30), Some(8_192)));
    assert_eq!((gguf.head_count(0), gguf.head_count_kv(29)), (Some(9), Some(3)));
    assert_eq!((gguf.key_length(), gguf.value_length()), (Some(64), Some(64)));
    assert_eq!((gguf.vocabulary_size(), gguf.tensor_count()), (Some(49_152), 272));
    assert!(gguf.has_token_embedding());
    let slack = gguf.file_bytes() - gguf.data_offset() - gguf.tensor_bytes();
    assert!(slack < 272 * 32, "{slack} bytes are no tensor's");
}
