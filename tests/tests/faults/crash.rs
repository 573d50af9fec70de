//! Survival of what was accepted, whatever happens to the program: kills at any moment and a full
//! disk.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command};

use garret_tests::program::{Place, failed, feed, only, piped, stdout, succeeded};
use garret_tests::wire::{Answer, Said};

const ADA: &str = "My name is Ada and I keep bees.";
const STORY: &str = "Tell me a very long story about a beekeeper, with all her bees and flowers.";

/// The scenario for which Garret is made.
#[test]
fn a_kill_in_mid_reply_loses_no_message() {
    let Some(place) = Place::new() else { return };
    let mut command = place.garret(&["chat", "--stdin", "--json", "--session", "s"]);
    let output = feed(&mut command, format!("{ADA}\n").as_bytes());
    let first = only(Answer::read_all(&succeeded(&output)));

    let long = ["chat", "--once", STORY, "--session", "s", "--max-tokens", "800"];
    let mut second = LineTalk::start(&mut place.garret(&long));
    second.reply_begins();
    let mut killed = second.kill();

    let third = place.once("What is my name?", &["--session", "s"]);
    assert!(!killed.wait().unwrap().success());
    assert_eq!(third.turn, 3);
    assert_eq!(third.receipt.omitted, []);
    // What the killed turn's message costs, seen where it is alone.
    let alone = place.once(STORY, &["--namespace", "alone"]).block("message");
    let both = first.block("message") + first.receipt.reply_tokens + alone;
    // The template closes a message in history and opens the reply of the newest: a few tokens.
    let history = third.block("history");
    assert!(history + 8 >= both, "{history} tokens of history, {both} of what was said");
    assert!(both + 24 >= history, "{history} tokens of history, {both} of what was said");

    let said = place.turns("s", &[]);
    let users: Vec<_> = said.iter().map(|said| said.user.as_str()).collect();
    assert_eq!(users, [ADA, STORY, "What is my name?"]);
    assert_eq!((&said[0].reply, &said[1].reply), (&Some(first.reply), &None));
    assert_eq!(place.once("And now?", &["--continue"]).turn, 4);
}

/// A message that was sent, and what is known of it.
struct Sent {
    text: String,
    /// The program showed that it had accepted it.
    accepted: bool,
    /// The reply, if it was printed.
    reply: Option<String>,
}

#[test]
fn kills_at_many_moments_lose_nothing_that_was_answered() {
    const ROUNDS: usize = 12;
    let Some(place) = Place::new() else { return };
    let mut all: Vec<Sent> = Vec::new();
    let mut killed = Vec::new();
    for round in 0..ROUNDS {
        let text = |number| format!("r{round}m{number}");
        let streamed = round % 4 == 3;
        // A streamed reply is long enough to be killed in the middle.
        let tokens = if streamed { "200" } else { "2" };
        let args = ["chat", "--stdin", "--session", "k", "--max-tokens", tokens];
        let mut command = place.garret(&args);
        if !streamed {
            command.arg("--json");
        }
        let mut talk = LineTalk::start(&mut command);
        if streamed {
            talk.say(&text(0));
            talk.reply_begins();
            all.push(Sent { text: text(0), accepted: true, reply: None });
        } else {
            for number in 0..round % 3 {
                talk.say(&text(number));
                let reply = Some(talk.answer().reply);
                all.push(Sent { text: text(number), accepted: true, reply });
            }
            talk.say(&text(round % 3));
            all.push(Sent { text: text(round % 3), accepted: false, reply: None });
        }
        killed.push(talk.kill());
        if all.iter().any(|sent| sent.accepted) {
            check(&place.turns("k", &[]), &all);
        }
    }
    for mut child in killed {
        assert!(!child.wait().unwrap().success());
    }
}

/// Asserts that `stored` has everything that was accepted, in order, and nothing that wasn't sent.
fn check(stored: &[Said], sent: &[Sent]) {
    let mut stored = stored.iter().zip(1..).peekable();
    for message in sent {
        match stored.next_if(|(said, _)| said.user == message.text) {
            Some((said, turn)) => {
                assert_eq!(said.turn, turn, "turns are numbered without a gap");
                if message.reply.is_some() {
                    assert_eq!(said.reply, message.reply, "{}", message.text);
                }
            }
            None => assert!(!message.accepted, "`{}` is lost", message.text),
        }
    }
    assert!(stored.next().is_none(), "everything stored was sent, in this order");
}

/// Runs `command` so that no file can grow over `bytes`: what a full disk is to a program.
fn on_a_full_disk(command: &Command, bytes: u64) -> Command {
    let mut limited = Command::new("sh");
    let script = "trap '' XFSZ; ulimit -f \"$0\"; exec \"$@\"";
    limited.args(["-c", script, &(bytes / 512).to_string()]);
    limited.arg(command.get_program()).args(command.get_args()).env_clear();
    limited.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    limited
}

#[test]
fn a_full_disk_is_told_and_loses_nothing() {
    let Some(place) = Place::new() else { return };
    place.once(ADA, &["--session", "s"]);
    let before = place.run(&["session", "show", "s", "--json"]);
    let size = fs::metadata(place.data().join("default.redb")).unwrap().len();

    let lines = place.garret(&["chat", "--stdin", "--json", "--session", "s"]);
    let huge = "A very long message. ".repeat(500_000);
    let output = feed(&mut on_a_full_disk(&lines, size), huge.as_bytes());
    let complaint = failed(&output, 1);
    assert!(complaint.contains("not accepted") && complaint.contains("no space"), "{complaint}");
    assert_eq!(stdout(&output), "", "nothing was answered");

    assert_eq!(place.run(&["session", "show", "s", "--json"]), before);
    let next = place.once("What is my name?", &["--session", "s"]);
    assert_eq!((next.turn, next.receipt.omitted.len()), (2, 0));
    assert!(next.block("history") > 0);
}

#[test]
fn a_disk_that_is_full_from_the_beginning_is_told() {
    let Some(place) = Place::new() else { return };
    let once = place.garret(&["chat", "--once", "hello", "--json", "--session", "s"]);
    let output = on_a_full_disk(&once, 0).output().unwrap();
    let complaint = failed(&output, 1);
    assert!(complaint.contains("space"), "{complaint}");
    assert_eq!(stdout(&output), "");
    assert_eq!(place.once("hello", &["--session", "s"]).turn, 1, "with room it works");
}
