//! modelcontextprotocol/servers#4797: two processes kept the same memory in one file; each wrote all of
//! it, and what one of them had stored was lost without a word.
//!
//! One program at a time has a namespace. A second one is told which process has it, and changes
//! nothing.

use garret_tests::program::{LineTalk, Place, failed, stdout};

#[test]
fn a_second_program_is_told_who_has_the_memory() {
    let Some(place) = Place::new() else { return };
    let mut first =
        LineTalk::start(&mut place.garret(&["chat", "--stdin", "--json", "--session", "s"]));
    first.say("hello");
    assert_eq!(first.answer().turn, 1);
    let words = format!("in use by pid {}", first.child.id());
    for args in [
        &["chat", "--once", "hello", "--json", "--session", "s"][..],
        &["session", "show", "s"],
        &["session", "delete", "s"],
        &["doctor"],
    ] {
        let output = place.garret(args).output().unwrap();
        let told = failed(&output, 1) + &stdout(&output);
        assert!(told.contains(&words), "{args:?}: {told}");
    }
    place.once("hello", &["--namespace", "other"]);
    first.say("hello again");
    assert_eq!(first.answer().turn, 2, "the first goes on unharmed");
    first.end();
    assert_eq!(place.once("hello", &["--session", "s"]).turn, 3);
}
