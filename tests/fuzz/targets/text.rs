//! Text from outside: a model's output, a user's settings, lines to import.

use garret::config::{Config, Sources};
use garret_core::scan::{Scan, TagScanner};
use garret_tests::program::{feed, garret, stderr};

/// The part that is shown of an output that comes in pieces of so many bytes, and the tags in it.
fn scan(output: &[u8], piece: usize, calls: bool) -> (Vec<u8>, usize) {
    let mut scanner = if calls { TagScanner::with_calls() } else { TagScanner::new() };
    let mut shown = Vec::new();
    let mut tags = 0;
    let mut sink = |scan: Scan<'_>| match scan {
        Scan::Text(text) => shown.extend_from_slice(text),
        _ => tags += 1,
    };
    for piece in output.chunks(piece) {
        scanner.push(piece, &mut sink);
    }
    scanner.finish(&mut sink);
    (shown, tags)
}

/// Where an output is cut makes no difference.
pub(super) fn tag_scanner(output: &[u8]) {
    for calls in [false, true] {
        let whole = scan(output, output.len().max(1), calls);
        assert_eq!(scan(output, 1, calls), whole);
        assert_eq!(scan(output, 7, calls), whole);
    }
}

pub(super) fn outputs() -> Vec<Vec<u8>> {
    [
        "You keep bees. <<garret-tool: grep bees>>",
        "<<garret-companions: inferrer, compactor>> Well.",
        "```\n<<garret-tool: timeline 3>>\n``` and `<<garret-tool: pinned>>`",
        "<tool_call>\n{\"name\": \"grep\", \"arguments\": {\"pattern\": \"a\\\"}\"}}\n</tool_call>",
        "<< garret-tool : search \"bees\" k=9 > > \u{1f41d}<<garret",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

pub(super) fn config(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let sources = Sources { file: Some(("garret.toml".into(), text)), ..Sources::default() };
    let _ = Config::resolve(sources);
}

pub(super) fn configs() -> Vec<Vec<u8>> {
    [
        "window = 4096\ndata = 'd'\nmodels_dir = 'm'\ntemperature = 0.7\n",
        "model = \"a.gguf\"\nthreads = 2\nkv_type = \"q8_0\"\ncompanions = \"off\"\nseed = 1\n",
        "show_time = false\nmax_tokens = 12\nsystem_prompt = \"\"\"Be\nkind.\"\"\"\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

/// The whole program: lines are read by `garret memory import` alone.
pub(super) fn import_line(bytes: &[u8]) {
    let home = tempfile::tempdir().unwrap();
    let output = feed(garret(home.path()).args(["memory", "import", "-"]), bytes);
    let complaint = stderr(&output);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{:?}: {complaint}", output.status);
    assert!(!complaint.contains("panicked"), "{complaint}");
}

pub(super) fn import_lines() -> Vec<Vec<u8>> {
    [
        "{\"session\":\"kitchen\",\"text\":\"My bees.\",\"role\":\"user\",\"at\":1790000000}\n\
         {\"session\":\"kitchen\",\"text\":\"Well.\",\"role\":\"assistant\",\"id\":\"7\"}\n",
        "{\"session\":\"hall\",\"text\":\"\\ud83d\\udc1d\",\"speaker\":\"Ada\",\"at\":\"2026-05-03\"}",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}
