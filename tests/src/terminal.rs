//! The program at a terminal, as a person uses it: a pseudo-terminal, a shell, and keys.
//!
//! The shell is the terminal's session leader, so that the terminal outlives the program and can be
//! looked at afterwards. Limits: Linux.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

/// The interrupt key.
pub const CTRL_C: &str = "\x03";
/// The end-of-input key.
pub const CTRL_D: &str = "\x04";
/// The up key.
pub const UP: &str = "\x1b[A";

/// A terminal with a program in it.
pub struct Terminal {
    shell: Child,
    keys: File,
    output: Receiver<Vec<u8>>,
    raw: Vec<u8>,
    /// Bytes of the cleaned output that were already expected.
    read: usize,
    program: Option<Pid>,
    before: Modes,
}

/// Everything about a terminal that line editing changes.
pub type Modes = String;

impl Terminal {
    /// Starts `command` at a new terminal.
    ///
    /// # Panics
    /// When the system gives no terminal, or `setsid` and `sh` are missing.
    pub fn start(command: &Command) -> Self {
        Self::start_wide(command, 200)
    }

    /// The same at a terminal of so many columns.
    ///
    /// # Panics
    /// When [`Terminal::start`] does.
    pub fn start_wide(command: &Command, columns: u16) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).expect("the system has pseudo-terminals");
        grantpt(&master).expect("a new terminal is ours");
        unlockpt(&master).expect("a new terminal can be unlocked");
        let user = ioctl_tiocgptpeer(&master, flags).expect("a terminal has two ends");
        let size = Winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).expect("a terminal has a size");
        let before = modes(&master);
        let shell = shell(command, user);
        let keys = File::from(master);
        let screen = keys.try_clone().expect("descriptors can be doubled");
        let output = watch(screen);
        let (raw, read) = (Vec::new(), 0);
        let mut terminal = Self { shell, keys, output, raw, read, program: None, before };
        terminal.expect("pid=");
        let pid = terminal.expect(".\n");
        let pid = pid.trim_end_matches(".\n").parse().ok().and_then(Pid::from_raw);
        assert!(pid.is_some(), "the shell prints the id of the program");
        terminal.program = pid;
        terminal
    }

    /// Presses keys.
    ///
    /// # Panics
    /// When the terminal is gone.
    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("the terminal is open");
    }

    /// Types a line and waits until it is taken.
    ///
    /// # Panics
    /// When [`Terminal::expect`] does.
    pub fn enter(&mut self, line: &str) {
        self.press(line);
        self.press("\r");
        self.expect("\n");
    }

    /// Waits for `what` and returns everything shown up to its end, without escape sequences.
    ///
    /// # Panics
    /// When it doesn't come.
    pub fn expect(&mut self, what: &str) -> String {
        loop {
            let shown = clean(&self.raw);
            let fresh = shown.get(self.read..).unwrap_or_default();
            if let Some(at) = fresh.find(what) {
                let end = at + what.len();
                self.read += end;
                return fresh[..end].to_owned();
            }
            match self.output.recv_timeout(PATIENCE) {
                Ok(bytes) => self.raw.extend(bytes),
                Err(error) => panic!("`{what}` doesn't come ({error}) after: {shown}"),
            }
        }
    }

    /// Waits for the prompt and returns what is shown before it.
    ///
    /// # Panics
    /// When [`Terminal::expect`] does.
    pub fn prompt(&mut self) -> String {
        let shown = self.expect(PROMPT);
        shown.strip_suffix(PROMPT).unwrap_or(&shown).to_owned()
    }

    /// Types a line and returns what is shown before the next prompt.
    ///
    /// # Panics
    /// When [`Terminal::expect`] does.
    pub fn ask(&mut self, line: &str) -> String {
        self.enter(line);
        self.prompt()
    }

    /// Waits until the program ends and returns its status.
    ///
    /// # Panics
    /// When [`Terminal::expect`] does.
    pub fn status(&mut self) -> i32 {
        self.expect("status=");
        let status = self.expect(".\n");
        status.trim_end_matches(".\n").parse().expect("a number")
    }

    /// Sends a signal to the program.
    ///
    /// # Panics
    /// When it is gone.
    pub fn signal(&self, signal: Signal) {
        let program = self.program.expect("a started terminal has a program");
        kill_process(program, signal).expect("the program runs");
    }

    /// The terminal before the program was started.
    pub fn modes_before(&self) -> &Modes {
        &self.before
    }

    /// The terminal now.
    pub fn modes(&self) -> Modes {
        modes(&self.keys)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The end of the session leader hangs the terminal up, which ends what still runs at it.
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

/// A shell for `command`: prints the program's id and status, and stays until input ends.
fn shell(command: &Command, terminal: OwnedFd) -> Child {
    let end = || Stdio::from(terminal.try_clone().expect("descriptors can be doubled"));
    let mut shell = Command::new("setsid");
    shell.args(["--ctty", "sh", "-c", SHELL, "sh"]);
    shell.arg(command.get_program()).args(command.get_args());
    shell.env_clear().env("TERM", "xterm");
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.stdin(end()).stdout(end()).stderr(end());
    shell.spawn().expect("util-linux has setsid")
}

/// Reads the screen on a thread, so that waiting for it can end.
fn watch(mut screen: File) -> Receiver<Vec<u8>> {
    let (sender, output) = channel();
    thread::spawn(move || {
        let mut buffer = [0; 4_096];
        while let Ok(count @ 1..) = screen.read(&mut buffer) {
            if sender.send(buffer[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    output
}

fn modes(terminal: impl std::os::fd::AsFd) -> Modes {
    let Termios { input_modes, output_modes, control_modes, local_modes, .. } =
        tcgetattr(terminal).expect("a terminal has modes");
    format!("{input_modes:?} {output_modes:?} {control_modes:?} {local_modes:?}")
}

/// Text without escape sequences and carriage returns; an unfinished sequence at the end isn't
/// there yet.
fn clean(raw: &[u8]) -> String {
    let text = String::from_utf8_lossy(raw);
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' if chars.next_if_eq(&'[').is_some() => {
                chars.by_ref().find(|c| ('@'..='~').contains(c));
            }
            '\x1b' => {
                chars.next();
            }
            '\r' => {}
            c => out.push(c),
        }
    }
    out
}

const PROMPT: &str = "\n> ";
/// The time for which nothing may be shown before a test gives up; not a measure of anything.
const PATIENCE: Duration = Duration::from_secs(180);
const SHELL: &str = r#"
trap : INT
sh -c 'echo "pid=$$."; exec "$@"' sh "$@"
echo "status=$?."
exec cat
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_is_read_without_escape_sequences() {
        assert_eq!(clean(b"\x1b[?2004h\r\x1b[K> hi\r\n"), "> hi\n");
        assert_eq!(clean(b"a\x1b[3"), "a");
        assert_eq!(clean(b"a\x1b"), "a");
    }

    #[test]
    fn a_program_sees_a_terminal_and_its_status_is_seen() {
        let mut command = Command::new("sh");
        command.args(["-c", "test -t 0 && test -t 1 && read x && echo got $x && exit 7"]);
        let mut terminal = Terminal::start(command.env("PATH", "/usr/bin:/bin"));
        terminal.enter("word");
        terminal.expect("got word\n");
        assert_eq!(terminal.status(), 7);
    }
}
