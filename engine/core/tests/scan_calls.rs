//! Calls in the form of a model's own template: what is one, and that it doesn't matter how an
//! output is cut.

mod scan_common;

use garret_core::scan::{TagDefect, TagScanner, is_quoted};
use proptest::prelude::*;
use scan_common::{Ev, add, scan_with, text};

fn calls<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Ev> {
    scan_with(TagScanner::with_calls(), pieces)
}

fn whole(text: &str) -> Vec<Ev> {
    calls([text.as_bytes()])
}

fn call(json: &str, raw: &str) -> Ev {
    Ev::Call(json.into(), raw.into())
}

const JSON: &str = r#"{"name": "grep", "arguments": {"words": "bees"}}"#;

#[test]
fn a_call_is_reported_and_not_shown() {
    for raw in [
        format!("<tool_call>\n{JSON}\n</tool_call>"),
        format!("<tool_call>{JSON}</tool_call>"),
        format!("<tool_call> \n\t{JSON}}}}}\n</tool_call>"),
    ] {
        assert_eq!(whole(&raw), [call(JSON, &raw)], "{raw}");
        let around = format!("Well. {raw}\nSo.");
        assert_eq!(whole(&around), [text("Well. "), call(JSON, &raw), text("\nSo.")]);
    }
}

#[test]
fn what_is_missing_at_its_end_is_repaired() {
    let open = format!("<tool_call>\n{JSON}");
    assert_eq!(whole(&open), [call(JSON, &open)]);
    let cut = format!("{open}\n</tool_c");
    assert_eq!(whole(&cut), [call(JSON, &cut)]);
    assert_eq!(whole(&format!("{open} So.")), [call(JSON, &open), text(" So.")]);
    let short = JSON.strip_suffix('}').unwrap();
    let raw = format!("<tool_call>{short}\n</tool_call>");
    assert_eq!(whole(&raw), [call(short, &raw)]);
    let doubled = format!("{{{JSON}}}");
    let raw = format!("<tool_call>{doubled}</tool_call>");
    assert_eq!(whole(&raw), [call(&doubled, &raw)]);
    let unquoted = r#"{"name": "grep}"#;
    let raw = format!("<tool_call>{unquoted}</tool_call>");
    assert_eq!(whole(&raw), [call(unquoted, &raw)], "the quotation has no end: it was none");
}

#[test]
fn what_never_becomes_a_call_is_stripped_or_text() {
    let cut = |raw: &str| vec![Ev::Stripped(raw.into(), TagDefect::Unclosed)];
    for raw in ["<tool_call>", "<tool_call>\n ", "<tool_call>\n{\"name\": \"gr"] {
        assert_eq!(whole(raw), cut(raw));
    }
    for raw in ["<", "<tool", "<tool_call", "<tool_call> is a tag", "<tool_response>", "a < b"] {
        assert_eq!(whole(raw), [text(raw)]);
    }
    let long = format!("<tool_call>{{\"name\": \"{}", "x".repeat(TagScanner::MAX_TAG_BYTES));
    assert_eq!(whole(&long), [text(&long)]);
    let broken = b"<tool_call>{\"\xff\"}</tool_call>";
    assert_eq!(calls([&broken[..]]), [Ev::Stripped(broken.to_vec(), TagDefect::NotUtf8)]);
}

#[test]
fn a_closer_in_a_text_closes_nothing() {
    let json = r#"{"name": "grep", "arguments": {"words": "a </tool_call> \" } b"}}"#;
    let raw = format!("<tool_call>{json}</tool_call>");
    assert_eq!(whole(&raw), [call(json, &raw)]);
}

#[test]
fn in_code_a_call_is_text() {
    let raw = format!("<tool_call>{JSON}</tool_call>");
    for shown in [format!("```\n{raw}\n```\n"), format!("`{raw}`"), format!("> ~~~\n> {raw}")] {
        assert_eq!(whole(&shown), [text(&shown)]);
    }
}

#[test]
fn who_has_no_calls_sees_text_and_tags_stay_tags() {
    let raw = format!("<tool_call>{JSON}</tool_call>");
    assert_eq!(scan_with(TagScanner::new(), [raw.as_bytes()]), [text(&raw)]);
    let tag = "<<garret-tool: grep bees>>";
    let both = format!("{tag}{raw}");
    let tool = Ev::Tool("grep".into(), "bees".into(), tag.into());
    assert_eq!(whole(&both), [tool, call(JSON, &raw)]);
}

#[test]
fn a_scanner_that_ended_still_knows_calls() {
    let raw = format!("<tool_call>{JSON}</tool_call>");
    let mut scanner = TagScanner::with_calls();
    for _ in 0..2 {
        let mut events = Vec::new();
        scanner.push(raw.as_bytes(), &mut |scan| add(&mut events, scan));
        scanner.finish(&mut |scan| add(&mut events, scan));
        assert_eq!(events, [call(JSON, &raw)]);
    }
}

#[test]
fn a_call_is_quoted_with_or_without_its_frame() {
    let raw = format!("<tool_call>\n{JSON}\n</tool_call>");
    let spaced = JSON.replace(' ', "\n  ");
    for text in [&raw, JSON, &spaced, &format!("Say {JSON}!"), &JSON.to_uppercase()] {
        assert!(is_quoted(raw.as_bytes(), text), "{text}");
    }
    for text in ["", "grep bees", "<tool_call>", r#"{"name": "grep"}"#] {
        assert!(!is_quoted(raw.as_bytes(), text), "{text}");
    }
}

/// What a scanner may meet around calls.
fn pieces() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let known = prop::sample::select(vec![
        "<tool_call>",
        "</tool_call>",
        "{",
        "}",
        "\"",
        "\\",
        "[",
        "]",
        "\n",
        "\n\n",
        " ",
        "`",
        "```\n",
        "<",
        ">",
        "<<garret-tool: grep a>>",
        "{\"name\": \"grep\"}",
        "name",
        "\u{e9}",
        "<tool",
        "_call>",
    ]);
    let known = known.prop_map(|text: &str| text.as_bytes().to_vec());
    let any = prop::collection::vec(any::<u8>(), 0..4);
    prop::collection::vec(prop_oneof![6 => known, 1 => any], 0..40)
}

fn bytes(events: &[Ev]) -> Vec<u8> {
    let raw = |event: &Ev| match event {
        Ev::Text(raw)
        | Ev::Tool(.., raw)
        | Ev::Companions(_, raw)
        | Ev::Stripped(raw, _)
        | Ev::Call(_, raw) => raw.clone(),
    };
    events.iter().flat_map(raw).collect()
}

proptest! {
    #[test]
    fn it_does_not_matter_how_an_output_is_cut(pieces in pieces(), cut in 1_usize..7) {
        let all = pieces.concat();
        let whole = calls([&all[..]]);
        prop_assert_eq!(&calls(pieces.iter().map(Vec::as_slice)), &whole);
        prop_assert_eq!(&calls(all.chunks(cut)), &whole);
        prop_assert_eq!(bytes(&whole), all, "every byte comes out once");
    }

    #[test]
    fn any_bytes_are_scanned(
        all in prop::collection::vec(any::<u8>(), 0..3_000),
        cut in 1_usize..700,
    ) {
        let whole = calls([&all[..]]);
        prop_assert_eq!(&calls(all.chunks(cut)), &whole);
        prop_assert_eq!(bytes(&whole), all);
    }

    #[test]
    fn a_call_with_any_arguments_is_found(words in "\\PC{0,60}", before in "[a-z .]{0,20}") {
        let quoted: String = words.chars().flat_map(|c| match c {
            '"' | '\\' => vec!['\\', c],
            c => vec![c],
        }).collect();
        let json = format!(r#"{{"name": "grep", "arguments": {{"words": "{quoted}"}}}}"#);
        let raw = format!("<tool_call>\n{json}\n</tool_call>");
        let events = whole(&format!("{before}{raw}"));
        prop_assert_eq!(events.last(), Some(&call(&json, &raw)));
    }
}
