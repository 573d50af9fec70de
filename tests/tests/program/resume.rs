//! A conversation goes on after a restart without being read again, and only where that is right.

use std::fs;
use std::path::PathBuf;

use garret_tests::program::Place;
use garret_tests::wire::Answer;

const OPENING: &str = "My name is Ada, I live in Oslo, I keep bees, and my sister is called Mina.";

fn say(place: &Place, session: &str, text: &str, more: &[&str]) -> Answer {
    place.once(text, &[&["--session", session], more].concat())
}

fn snapshot(place: &Place) -> PathBuf {
    place.data().join("default.kv")
}

/// The second run of the program decodes what is new; without snapshots, all of it. The answers are
/// the same.
#[test]
fn a_second_run_reads_only_what_is_new() {
    let Some(place) = Place::new() else { return };
    let first = say(&place, "a", OPENING, &[]);
    assert_eq!(first.receipt.reused_tokens, 0);
    let second = say(&place, "a", "What do I keep?", &[]);
    let new = second.receipt.prompt_tokens - first.receipt.prompt_tokens;
    assert!(second.receipt.prefilled_tokens <= new, "{:?}", second.receipt);
    let Some(other) = Place::new() else { return };
    say(&other, "a", OPENING, &["--snapshot", "off"]);
    assert!(!snapshot(&other).exists());
    let again = say(&other, "a", "What do I keep?", &["--snapshot", "off"]);
    assert_eq!(again.receipt.reused_tokens, 0);
    assert_eq!(again.reply, second.reply);
}

/// A new conversation finds what every one begins with, and nothing of another one.
#[test]
fn a_new_conversation_finds_the_common_beginning() {
    let Some(place) = Place::new() else { return };
    let first = say(&place, "a", OPENING, &[]);
    let other = say(&place, "b", OPENING, &[]);
    let system = first.receipt.blocks.iter().find(|block| block.name == "system").unwrap();
    let found = other.receipt.reused_tokens;
    // The template's opening of the user's message is the same, too.
    assert!((system.tokens..system.tokens + 8).contains(&found), "{:?}", other.receipt);
    let changed = say(&place, "c", OPENING, &["--system-prompt", "Speak like a sailor."]);
    assert_eq!(changed.receipt.reused_tokens, 0, "it was made for other words");
}

/// A snapshot that is damaged, cut short, of another window or too large is as good as none, and the
/// turn goes well.
#[test]
fn a_snapshot_that_does_not_fit_is_none() {
    let Some(place) = Place::new() else { return };
    say(&place, "a", OPENING, &[]);
    let whole = fs::read(snapshot(&place)).unwrap();
    let (mut flipped, middle) = (whole.clone(), whole.len() / 2);
    flipped[middle] ^= 1;
    let prefix = || fs::write(place.data().join("default.kvp"), b"").unwrap();
    for bytes in [&flipped[..], &whole[..middle], &[], b"GarretKV"] {
        fs::write(snapshot(&place), bytes).unwrap();
        prefix();
        let answer = say(&place, "a", "Go on.", &["--snapshot-mib", "1"]);
        assert_eq!(answer.receipt.reused_tokens, 0, "{} bytes", bytes.len());
    }
    fs::write(snapshot(&place), &whole).unwrap();
    prefix();
    let answer = say(&place, "a", "Go on.", &["--window", "3000", "--snapshot-mib", "1"]);
    assert_eq!(answer.receipt.reused_tokens, 0, "it was made for another window");
    let kept = say(&place, "a", "Go on.", &[]);
    assert!(kept.receipt.reused_tokens > 0, "{:?}", kept.receipt);
}

/// After a forget there is no snapshot any more, and the words are in no file.
#[test]
fn what_was_forgotten_does_not_come_back() {
    let Some(place) = Place::new() else { return };
    say(&place, "a", "The safe opens with xylophone 7731.", &[]);
    assert!(fs::metadata(snapshot(&place)).unwrap().len() > 1_000);
    place.run(&["memory", "forget", "--match", "xylophone", "--yes"]);
    assert_eq!(fs::metadata(snapshot(&place)).unwrap().len(), 0);
    let after = say(&place, "a", "What opens the safe?", &[]);
    assert_eq!(after.receipt.reused_tokens, 0);
}
