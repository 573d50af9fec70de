//! `Utf8Stream` gives what `String::from_utf8_lossy` gives, however the bytes are cut.

use garret_core::utf8::Utf8Stream;
use proptest::prelude::*;

/// Joins `pieces`; checks after each that nothing is held that is decided already.
fn join<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut stream = Utf8Stream::new();
    let mut whole = Vec::new();
    let mut text = String::new();
    for piece in pieces {
        whole.extend_from_slice(piece);
        stream.push(piece, &mut |emitted| {
            assert!(!emitted.is_empty());
            text.push_str(emitted);
        });
        assert_eq!(stream.held(), unfinished(&whole), "after {whole:x?}");
    }
    stream.finish(&mut |emitted| text.push_str(emitted));
    assert_eq!(stream, Utf8Stream::new());
    text
}

/// Length of the longest end of `bytes` that more bytes could make a character, by trying them.
fn unfinished(bytes: &[u8]) -> usize {
    let tails: [&[u8]; 6] =
        [b"\x80", b"\xA0", b"\x80\x80", b"\xA0\x80", b"\x90\x80\x80", b"\x80\x80\x80"];
    let can_end = |end: &[u8]| {
        tails.iter().any(|tail| {
            let longer = [end, tail].concat();
            std::str::from_utf8(&longer).is_ok_and(|text| text.chars().count() == 1)
        })
    };
    (1..=3.min(bytes.len())).rev().find(|len| can_end(&bytes[bytes.len() - len..])).unwrap_or(0)
}

/// Every byte that matters to a decoder: the edges of each class.
const EDGES: [u8; 24] = [
    0x00, b'a', 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC,
    0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF,
];

#[test]
fn all_short_sequences_of_edge_bytes_agree_byte_by_byte() {
    for a in EDGES {
        for b in EDGES {
            for c in EDGES {
                for d in EDGES {
                    let bytes = [a, b, c, d];
                    assert_eq!(join(bytes.chunks(1)), String::from_utf8_lossy(&bytes));
                }
            }
        }
    }
}

#[test]
fn characters_cut_anywhere_stay_whole() {
    let text = "a\u{e9}\u{20ac}\u{1F600}\u{4F60}\u{597D}e\u{301}\u{FFFD}\u{0}z";
    for cut in 0..=text.len() {
        let (head, tail) = text.as_bytes().split_at(cut);
        assert_eq!(join([head, tail]), text);
    }
    assert_eq!(join(text.as_bytes().chunks(1)), text);
}

#[test]
fn an_unfinished_character_becomes_one_replacement_at_the_end() {
    assert_eq!(join([b"a\xF0\x9F".as_slice(), b"\x98"]), "a\u{FFFD}");
}

fn pieces() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let character = any::<char>().prop_map(|c| c.to_string().into_bytes());
    let bytes = prop::collection::vec(prop::sample::select(EDGES.to_vec()), 0..6);
    let cut = any::<char>().prop_map(|c| {
        let mut bytes = c.to_string().into_bytes();
        bytes.pop();
        bytes
    });
    prop::collection::vec(
        prop_oneof![character, bytes, cut, prop::collection::vec(any::<u8>(), 0..9)],
        0..24,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_bytes_in_any_pieces_agree_with_the_whole(pieces in pieces(), chunk in 1_usize..9) {
        let whole = pieces.concat();
        let lossy = String::from_utf8_lossy(&whole);
        prop_assert_eq!(join(pieces.iter().map(Vec::as_slice)), lossy.as_ref());
        prop_assert_eq!(join(whole.chunks(chunk)), lossy.as_ref());
    }
}
