//! The program under test, as a user runs it.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::thread;

use tempfile::TempDir;

use crate::models::{STARTER, find};
use crate::wire::{Answer, Said, objects};

/// Returns the path of the binary `garret` that was built beside this test.
///
/// # Panics
/// When it isn't there.
pub fn binary() -> PathBuf {
    built("garret")
}

/// Returns the path of a program of this workspace that was built beside this test.
///
/// # Panics
/// When it isn't there: `cargo build --workspace --all-targets` makes it.
pub fn built(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let folder = test.parent().and_then(Path::parent).expect("tests lie in target/PROFILE/deps");
    let binary = folder.join(name);
    let remedy = "cargo build --workspace --all-targets";
    assert!(binary.exists(), "{} is missing: {remedy}", binary.display());
    binary
}

/// A command that sees none of the user's own settings: home and data lie in `home`. Signals that
/// whoever runs the tests ignores, as `nohup` and shells in the background do, are not ignored.
pub fn garret(home: &Path) -> Command {
    isolated(&binary(), home)
}

fn isolated(program: &Path, home: &Path) -> Command {
    let mut command = Command::new("/usr/bin/env");
    command.arg("--default-signal=HUP,INT,TERM").arg(program);
    command.env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin");
    command
}

/// Standard output as text.
///
/// # Panics
/// When it isn't UTF-8.
pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("output is UTF-8")
}

/// Standard error as text.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A folder of its own for a test, and the starter model in a small window, always taking the
/// likeliest token and few of them. All of it is set by variables, so that flags can overrule it.
pub struct Place {
    home: TempDir,
    model: PathBuf,
}

impl Place {
    /// An empty place, or `None` and a loud word when the starter model is missing.
    ///
    /// # Panics
    /// When no folder can be made.
    pub fn new() -> Option<Self> {
        let model = find(STARTER)?;
        Some(Self { home: tempfile::tempdir().expect("a folder for the test"), model })
    }

    /// The user's home.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The data folder; the program makes it.
    pub fn data(&self) -> PathBuf {
        self.home().join("data")
    }

    /// The starter model.
    pub fn model(&self) -> &Path {
        &self.model
    }

    /// `garret` with these arguments.
    pub fn garret(&self, args: &[&str]) -> Command {
        self.program("garret", args)
    }

    /// Another program of this workspace with these arguments, and the same settings.
    pub fn program(&self, name: &str, args: &[&str]) -> Command {
        let mut command = isolated(&built(name), self.home());
        command.args(args).env("GARRET_DATA", self.data()).env("GARRET_MODEL", &self.model);
        command.envs(SMALL.map(|(key, value)| (format!("GARRET_{key}"), value)));
        command
    }

    /// The output of `garret` with these arguments, which must succeed.
    ///
    /// # Panics
    /// When it fails.
    pub fn run(&self, args: &[&str]) -> String {
        succeeded(&self.garret(args).output().expect("the program starts"))
    }

    /// The answer to one message; `args` are more arguments of `chat`.
    ///
    /// # Panics
    /// When there isn't exactly one.
    pub fn once(&self, text: &str, args: &[&str]) -> Answer {
        let args = [&["chat", "--json", "--once", text], args].concat();
        only(Answer::read_all(&self.run(&args)))
    }

    /// All turns of a conversation; `args` are more arguments.
    ///
    /// # Panics
    /// When it can't be shown.
    pub fn turns(&self, session: &str, args: &[&str]) -> Vec<Said> {
        objects(&self.run(&[&["session", "show", session, "--json"], args].concat()))
    }
}

/// Settings of a [`Place`]. Tests run side by side, and threads of llama.cpp wait busily for each
/// other: one each is the fastest.
const SMALL: [(&str, &str); 7] = [
    // Replies must not depend on the minute.
    ("SHOW_TIME", "false"),
    ("WINDOW", "2048"),
    ("MAX_TOKENS", "4"),
    ("TEMPERATURE", "0"),
    ("SEED", "1"),
    ("THREADS", "1"),
    ("BATCH_THREADS", "1"),
];

/// The one thing in `all`.
///
/// # Panics
/// When there are none or several.
pub fn only<T: std::fmt::Debug>(mut all: Vec<T>) -> T {
    assert_eq!(all.len(), 1, "exactly one: {all:?}");
    all.remove(0)
}

/// A running program with all three streams on pipes.
///
/// # Panics
/// When it can't be started.
pub fn piped(command: &mut Command) -> Child {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program starts")
}

/// Runs a program on an input. It may end before it has read all of it.
///
/// # Panics
/// When it can't be run.
pub fn feed(command: &mut Command, input: &[u8]) -> Output {
    let mut child = piped(command);
    let mut stdin = child.stdin.take().expect("stdin is a pipe");
    thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input));
        child.wait_with_output().expect("a child can be waited for")
    })
}

/// Standard output of a program that must have succeeded.
///
/// # Panics
/// When it hasn't.
pub fn succeeded(output: &Output) -> String {
    assert!(output.status.success(), "{}: {}", output.status, stderr(output));
    stdout(output)
}

/// Standard error of a program that must have failed, with `code`, and without a crash.
///
/// # Panics
/// When it hasn't.
pub fn failed(output: &Output, code: i32) -> String {
    let complaint = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{complaint}");
    assert!(!complaint.contains("panicked"), "{complaint}");
    complaint
}

/// A program that is given lines and answers each.
pub struct LineTalk {
    /// The process.
    pub child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl LineTalk {
    /// Starts it.
    ///
    /// # Panics
    /// When it can't be started.
    pub fn start(command: &mut Command) -> Self {
        let mut child = piped(command);
        let stdin = child.stdin.take().expect("the program runs");
        let stdout = BufReader::new(child.stdout.take().expect("the program runs"));
        Self { child, stdin, stdout }
    }

    /// Gives it one line.
    ///
    /// # Panics
    /// When it reads no more.
    pub fn say(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").expect("the program runs");
        self.stdin.flush().expect("the program runs");
    }

    /// Reads its next answer.
    ///
    /// # Panics
    /// When there is none.
    pub fn answer(&mut self) -> Answer {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("the program runs");
        Answer::read(&line)
    }

    /// Waits for the first byte of a streamed reply.
    ///
    /// # Panics
    /// When it ends before.
    pub fn reply_begins(&mut self) {
        self.stdout.read_exact(&mut [0]).expect("the program runs");
    }

    /// Kills the program and doesn't wait until it is gone, as nobody does after a crash.
    ///
    /// # Panics
    /// When it is gone already.
    pub fn kill(mut self) -> Child {
        self.child.kill().expect("the program runs");
        self.child
    }

    /// Ends its input and waits for it.
    ///
    /// # Panics
    /// When it fails.
    pub fn end(self) {
        drop(self.stdin);
        drop(self.stdout);
        assert!(self.child.wait_with_output().expect("the program runs").status.success());
    }
}
