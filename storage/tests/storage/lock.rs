//! Two processes, one namespace. The other process is this test binary, run again.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use garret_hal::media::{FileMedium, RamMedium};
use garret_storage::{OpenError, Store, file_name, namespaces};

use crate::model::{NAMESPACE, Op, apply, id};

fn open(dir: &Path, namespace: &str) -> Result<Store, OpenError> {
    Store::open(dir, namespace, |path| Ok(Box::new(FileMedium::open(path)?)))
}

/// What the other process does: opens the store, says so, then accepts one message per line it
/// gets, and says that.
#[test]
fn other_process() {
    let Some(dir) = std::env::var_os(DIRECTORY) else { return };
    let store = match open(Path::new(&dir), NAMESPACE) {
        Ok(store) => store,
        Err(error) => return println!("\n{SAYS}{error}"),
    };
    println!("\n{SAYS}open");
    for line in std::io::stdin().lines() {
        let op = Op::Accept { session: 0, text: line.unwrap(), ms: 0 };
        println!("\n{SAYS}{:?}", apply(&store, &op).unwrap());
    }
}

const DIRECTORY: &str = "GARRET_TEST_OTHER_PROCESS";
const SAYS: &str = "other process: ";

struct Other {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
}

impl Other {
    fn start(dir: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["lock::other_process", "--exact", "--nocapture"])
            .env(DIRECTORY, dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, input, output }
    }

    fn says(&mut self) -> String {
        self.output
            .find_map(|line| line.unwrap().strip_prefix(SAYS).map(str::to_owned))
            .expect("the other process said nothing")
    }

    fn hears(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{line}").unwrap();
    }

    /// `kill -9`.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn finish(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn another_process_is_told_who_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), NAMESPACE).unwrap();
    let mut other = Other::start(dir.path());
    let said = other.says();
    let expected = format!("namespace `{NAMESPACE}` is in use by pid {}: ", std::process::id());
    assert!(said.starts_with(&expected), "{said}");
    other.finish();
    drop(store);

    let mut other = Other::start(dir.path());
    assert_eq!(other.says(), "open", "released when it was dropped");
    let error = open(dir.path(), NAMESPACE).unwrap_err();
    assert!(
        matches!(&error, OpenError::InUse { namespace, pid: Some(pid) }
            if namespace == NAMESPACE && *pid == other.child.id()),
        "{error}"
    );
    open(dir.path(), "another").unwrap();
    other.finish();
    open(dir.path(), NAMESPACE).unwrap();
}

#[test]
fn a_killed_owner_leaves_all_it_acknowledged_and_no_lock() {
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged = 0;
    for round in 0..6 {
        let mut other = Other::start(dir.path());
        assert_eq!(other.says(), "open");
        for _ in 0..=round {
            acknowledged += 1;
            other.hears(&format!("message {acknowledged}"));
            assert_eq!(other.says(), format!("Accepted({acknowledged})"));
        }
        // It may have begun, or even finished, one more when it dies.
        other.hears(&format!("message {}", acknowledged + 1));
        other.kill();

        let store = open(dir.path(), NAMESPACE).unwrap();
        let texts = store
            .with_turns(&id(0), 1, |turns| {
                turns.iter().map(|turn| turn.user.to_owned()).collect::<Vec<_>>()
            })
            .unwrap();
        let found = texts.len();
        assert!(found == acknowledged || found == acknowledged + 1, "{found} of {acknowledged}");
        assert!(texts.into_iter().eq((1..=found).map(|number| format!("message {number}"))));
        acknowledged = found;
    }
}

#[test]
fn two_stores_of_one_process_exclude_each_other_too() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path(), NAMESPACE).unwrap();
    let error = open(dir.path(), NAMESPACE).unwrap_err();
    assert!(matches!(error, OpenError::InUse { pid, .. } if pid == Some(std::process::id())));
    drop(first);
    open(dir.path(), NAMESPACE).unwrap();
}

#[test]
fn a_lock_file_that_nobody_holds_says_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(file_name(NAMESPACE).unwrap()).with_extension("lock");
    for left in ["1\n", "", "no number\n"] {
        std::fs::write(&path, left).unwrap();
        open(dir.path(), NAMESPACE).unwrap();
    }
}

#[test]
fn an_owner_without_a_readable_pid_is_still_an_owner() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), NAMESPACE).unwrap();
    let path = store.path().unwrap().with_extension("lock");
    std::fs::write(&path, "").unwrap();
    let error = open(dir.path(), NAMESPACE).unwrap_err();
    assert!(error.to_string().contains("in use by another process: "), "{error}");
}

#[test]
fn directories_are_made_for_the_owner_alone() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("new/data");
    let namespace = "\u{1f41d}".repeat(64);
    let store = open(&dir, &namespace).unwrap();
    assert_eq!(store.path().unwrap(), dir.join(file_name(&namespace).unwrap()));
    assert_eq!(store.namespace(), namespace);
    assert_eq!(namespaces(&dir).unwrap(), Vec::<String>::new(), "nothing is stored yet");
    apply(&store, &Op::Accept { session: 0, text: "here".to_owned(), ms: 0 }).unwrap();
    assert_eq!(namespaces(&dir).unwrap(), [namespace]);
    #[cfg(unix)]
    for made in
        [root.path().join("new"), dir.clone(), store.path().unwrap().parent().unwrap().into()]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(made.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }
}

#[test]
fn a_data_directory_that_is_a_file_is_refused_by_name() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("occupied");
    std::fs::write(&dir, "x").unwrap();
    let error = open(&dir, NAMESPACE).unwrap_err();
    assert!(error.to_string().contains("occupied"), "{error}");
}

/// A new store's directories are synced even where an earlier process made them: here they vanish
/// before that, which only who syncs them notices.
#[test]
fn the_directories_of_a_new_store_are_synced_whoever_made_them() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("data");
    std::fs::create_dir(&dir).unwrap();
    let gone = dir.clone();
    let error = Store::open(&dir, NAMESPACE, move |_| {
        std::fs::remove_dir_all(&gone).unwrap();
        Ok(Box::new(RamMedium::new()))
    });
    assert!(matches!(error, Err(OpenError::Directory { path, .. }) if path == dir));
}
