//! `garret chat` at a terminal, with keys and signals, as a person uses it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use garret_tests::program::{Place, only};
use garret_tests::terminal::{CTRL_C, CTRL_D, Terminal, UP};
use rustix::process::Signal;

const STORY: &str = "Tell me a very long story about a beekeeper called Ada.";

fn start(place: &Place, args: &[&str]) -> Terminal {
    Terminal::start(&place.garret(&[&["chat"], args].concat()))
}

/// A program whose replies go on until they are stopped.
fn start_talkative(place: &Place, args: &[&str]) -> Terminal {
    start(place, &[args, &["--max-tokens", "800", "--repeat-penalty", "1"]].concat())
}

/// Asks for a story, waits until it streams, and returns what is shown of it.
fn story_begins(terminal: &mut Terminal) -> String {
    terminal.enter(STORY);
    terminal.expect(" ")
}

#[test]
fn a_reply_is_interrupted_kept_explained_and_continued() {
    let Some(place) = Place::new() else { return };
    let mut terminal = start_talkative(&place, &["--session", "s"]);
    let greeting = terminal.prompt();
    assert!(greeting.contains("New conversation `s`") && greeting.contains("/help"), "{greeting}");

    let mut shown = story_begins(&mut terminal);
    terminal.press(CTRL_C);
    shown += &terminal.prompt();
    let (reply, note) = shown.rsplit_once('\n').unwrap();
    assert!(note.contains("interrupted") && note.contains("kept"), "{note}");
    let reply = reply.replace("^C", "");

    let why = terminal.ask("/why");
    for words in
        ["Turn 1, window 2048", "system", "message", "reused", "prefilled", "reserved", "ceiling"]
    {
        assert!(why.contains(words), "`{words}` is missing in: {why}");
    }
    assert!(why.contains("800 reserved") && why.contains("Nothing was left out."), "{why}");

    story_begins(&mut terminal);
    terminal.press(CTRL_C);
    terminal.prompt();
    terminal.press(CTRL_C);
    assert_eq!(terminal.status(), 0, "a second Ctrl-C leaves");

    let said = place.turns("s", &[]);
    assert_eq!(said.iter().map(|said| said.user.as_str()).collect::<Vec<_>>(), [STORY; 2]);
    assert!(said.iter().all(|said| said.finish.as_deref() == Some("cancelled")), "{said:?}");
    assert_eq!(said[0].reply.as_deref(), Some(reply.as_str()), "kept is what was shown");

    let mut again = start(&place, &["--continue"]);
    let greeting = again.prompt();
    assert!(greeting.contains("`s` with 2 earlier turns"), "{greeting}");
    assert!(!again.ask("What was that about?").is_empty());
    let why = again.ask("/why");
    assert!(why.contains("Turn 3") && why.contains("history"), "{why}");
    again.press(CTRL_D);
    assert_eq!(again.status(), 0);
}

#[test]
fn interrupts_at_the_prompt_warn_and_then_leave() {
    let Some(place) = Place::new() else { return };
    let mut terminal = start(&place, &[]);
    terminal.prompt();
    terminal.press("half a line");
    terminal.press(CTRL_C);
    let warning = terminal.prompt();
    assert!(warning.contains("Ctrl-C again") && warning.contains("/quit"), "{warning}");
    terminal.ask("/help");
    terminal.press(CTRL_C);
    assert!(terminal.prompt().contains("Ctrl-C again"), "a line in between starts anew");
    terminal.press(CTRL_C);
    assert_eq!(terminal.status(), 0);
    assert!(place.run(&["session", "list", "--json"]).is_empty(), "nothing was said");
}

#[test]
fn commands_manage_conversations() {
    let Some(place) = Place::new() else { return };
    let mut terminal = start(&place, &["--session", "first"]);
    terminal.prompt();
    let help = terminal.ask("/help");
    for command in [
        "/why", "/find", "/session", "/new", "/switch", "/rename", "/delete", "/help", "/quit",
        "//",
    ] {
        assert!(help.lines().any(|line| line.starts_with(command)), "{command} is missing: {help}");
    }
    assert!(terminal.ask("/why").contains("No turn"));
    assert!(terminal.ask("/session").contains("* first  (nothing said yet)"));
    assert!(!terminal.ask("hello").is_empty());

    assert!(terminal.ask("/new second").contains("`second`"));
    assert!(terminal.ask("/new first").contains("exists: /switch first"));
    assert!(!terminal.ask("//help me").is_empty());
    assert!(terminal.ask("/session").contains("* second  1 turn"));
    assert!(terminal.ask("/rename third").contains("`third`"));
    assert!(terminal.ask("/rename first").contains("exists already"));
    assert!(terminal.ask("/switch nowhere").contains("no conversation `nowhere`"));
    assert!(terminal.ask("/switch first").contains("`first`"));
    let list = terminal.ask("/session");
    assert!(list.contains("* first  1 turn") && list.contains("  third  1 turn"), "{list}");

    let found = terminal.ask("/find hellos");
    assert!(found.contains("1. first, turn 1, user, ") && found.contains("   hello"), "{found}");
    assert!(terminal.ask("/find zxqv").contains("Nothing found"));
    assert!(terminal.ask("/find").contains("needs words"));

    assert!(terminal.ask("/helo").contains("did you mean /help?"));
    assert!(terminal.ask("/zzzz").contains("no command /zzzz"));
    assert!(terminal.ask("/quit now").contains("takes nothing"));
    assert!(terminal.ask("/switch").contains("needs the name"));
    assert!(terminal.ask("/delete").contains("needs the name"));
    assert!(terminal.ask("/delete nowhere").contains("no session `nowhere`"));
    let deleted = terminal.ask("/delete first");
    assert!(deleted.contains("`first` is deleted"), "{deleted}");
    let list = terminal.ask("/session");
    assert!(list.contains("(nothing said yet)") && !list.contains("first"), "{list}");
    terminal.enter("/quit");
    assert_eq!(terminal.status(), 0);
    assert_eq!(only(place.turns("third", &[])).user, "/help me");
}

#[test]
fn lines_come_back_with_the_up_key_after_a_restart() {
    let Some(place) = Place::new() else { return };
    let mut terminal = start(&place, &["--session", "s"]);
    terminal.prompt();
    terminal.ask("/session");
    terminal.press(CTRL_D);
    assert_eq!(terminal.status(), 0);
    let mode = fs::metadata(place.data().join("default.history")).unwrap().permissions().mode();
    assert_eq!(format!("{:o}", mode & 0o777), "600", "what was typed is nobody else's business");

    let mut again = start(&place, &["--session", "s"]);
    again.prompt();
    again.press(UP);
    again.expect("/session");
    again.press("\r");
    assert!(again.prompt().contains("* s  (nothing said yet)"));
    again.press(CTRL_D);
    assert_eq!(again.status(), 0);
}

/// Typed lines were once shared by all namespaces, and outlived the conversation they belonged to.
#[test]
fn typed_lines_belong_to_a_namespace_and_go_with_their_conversation() {
    let Some(place) = Place::new() else { return };
    let typed = |namespace: &str| {
        fs::read_to_string(place.data().join(format!("{namespace}.history"))).unwrap()
    };
    let mut ada = start(&place, &["--namespace", "ada", "--session", "s", "--max-tokens", "2"]);
    ada.prompt();
    ada.ask("my number is 4711");
    ada.ask("/new t");
    ada.press(CTRL_D);
    assert_eq!(ada.status(), 0);
    let mut bob = start(&place, &["--namespace", "bob", "--session", "s", "--max-tokens", "2"]);
    bob.prompt();
    bob.ask("mine is 1234");
    bob.ask("/delete s");
    bob.press(CTRL_D);
    assert_eq!(bob.status(), 0);
    assert!(typed("ada").contains("4711") && !typed("ada").contains("1234"));
    assert!(!typed("bob").contains("4711") && !typed("bob").contains("1234"));
    place.run(&["session", "delete", "s", "--namespace", "ada"]);
    assert!(!typed("ada").contains("4711") && typed("ada").contains("/new t"));
}

#[test]
fn a_termination_at_the_prompt_gives_the_terminal_back() {
    let Some(place) = Place::new() else { return };
    for (signal, status) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        let mut terminal = start(&place, &[]);
        terminal.prompt();
        assert_ne!(&terminal.modes(), terminal.modes_before(), "line editing changes the terminal");
        terminal.signal(signal);
        assert_eq!(terminal.status(), status);
        assert_eq!(&terminal.modes(), terminal.modes_before());
    }
}

#[test]
fn a_termination_during_a_reply_keeps_it() {
    let Some(place) = Place::new() else { return };
    let mut terminal = start_talkative(&place, &["--session", "s"]);
    terminal.prompt();
    story_begins(&mut terminal);
    terminal.signal(Signal::TERM);
    assert_eq!(terminal.status(), 143);
    assert_eq!(&terminal.modes(), terminal.modes_before());
    let said = only(place.turns("s", &[]));
    assert_eq!(said.finish.as_deref(), Some("cancelled"));
    assert!(said.reply.is_some_and(|reply| !reply.is_empty()));
}
