//! Peers: programs that people use today, run by Python in an environment that is made for them.

use std::cell::RefCell;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::statistics::{median, percentile};

/// The environment, when there is one, with the scripts in it.
pub(crate) struct Peers {
    folder: Option<PathBuf>,
    /// Peers that couldn't be run, so that each is told about once.
    failed: RefCell<Vec<&'static str>>,
}

/// One of the scripts in `bench/peers`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Script {
    name: &'static str,
    text: &'static str,
}

macro_rules! script {
    ($name:literal) => {
        Script { name: $name, text: include_str!(concat!("../peers/", $name)) }
    };
}

pub(crate) const SQLITE_VEC: Script = script!("sqlite_vec_flat.py");
pub(crate) const FAISS: Script = script!("faiss_flat.py");
pub(crate) const USEARCH: Script = script!("usearch_hnsw.py");
pub(crate) const FTS5: Script = script!("fts5.py");
pub(crate) const LEAN_MEMORY: Script = script!("lean_memory_search.py");
pub(crate) const SQLITE_WAL: Script = script!("sqlite_wal.py");
pub(crate) const LOCOMO_FTS5: Script = script!("locomo_fts5.py");
pub(crate) const LOCOMO_LEAN_MEMORY: Script = script!("locomo_lean_memory.py");
pub(crate) const LOCOMO_MEM0: Script = script!("locomo_mem0.py");
const COMMON: Script = script!("common.py");
const SCRIPTS: [Script; 10] = [
    COMMON,
    SQLITE_VEC,
    FAISS,
    USEARCH,
    FTS5,
    LEAN_MEMORY,
    SQLITE_WAL,
    LOCOMO_FTS5,
    LOCOMO_LEAN_MEMORY,
    LOCOMO_MEM0,
];
const REQUIREMENTS: &str = include_str!("../peers/requirements.txt");

/// The figures that a process measured: one of the peers', or Garret's own.
#[derive(Debug, Default, Deserialize, serde::Serialize)]
#[serde(default)]
pub(crate) struct Figures {
    pub(crate) peer: String,
    pub(crate) version: String,
    /// Added a second of processor time.
    pub(crate) inserts_per_s: Option<f64>,
    /// Microseconds of each query on the clock.
    pub(crate) wall_us: Vec<f64>,
    /// Microseconds of each query on the processor.
    pub(crate) cpu_us: Vec<f64>,
    /// Opening and the first query, in microseconds on the clock.
    pub(crate) first_us: Option<f64>,
    /// The same on the processor.
    pub(crate) first_cpu_us: Option<f64>,
    /// Ids that each query found, the best first.
    pub(crate) ids: Vec<Vec<i64>>,
    pub(crate) file_bytes: Option<f64>,
    pub(crate) resident_bytes: Option<f64>,
    /// Resident bytes that are mapped from files.
    pub(crate) mapped_bytes: Option<f64>,
}

impl Figures {
    /// Name and version.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.peer, self.version)
    }

    /// The middle of the queries' processor times in microseconds.
    pub(crate) fn p50(&self) -> f64 {
        median(&self.cpu_us)
    }

    /// Opening and the first query in microseconds on the clock.
    pub(crate) fn first(&self) -> Option<f64> {
        self.first_us
    }

    /// The same on the processor.
    pub(crate) fn first_cpu(&self) -> Option<f64> {
        self.first_cpu_us
    }

    pub(crate) fn p99(&self) -> f64 {
        percentile(&self.cpu_us, 0.99)
    }

    /// The middle of the queries' times on the clock in microseconds.
    pub(crate) fn wall_p50(&self) -> f64 {
        median(&self.wall_us)
    }
}

impl Peers {
    /// No peers were asked for.
    pub(crate) const fn none() -> Self {
        Self { folder: None, failed: RefCell::new(Vec::new()) }
    }

    /// Makes the environment, or takes the one that is there. Says what stops it; figures then come
    /// without peers.
    pub(crate) fn prepare() -> Self {
        match environment() {
            Ok(folder) => Self { folder: Some(folder), failed: RefCell::default() },
            Err(error) => {
                println!("peers    none: {error}");
                Self::none()
            }
        }
    }

    /// Runs a peer; `None` when there is no environment, or when the peer fails, which is said.
    pub(crate) fn run(&self, script: Script, arguments: &[&str]) -> Option<Figures> {
        let folder = self.folder.as_ref()?;
        if self.failed.borrow().contains(&script.name) {
            return None;
        }
        let mut command = Command::new(python(folder));
        command.arg(folder.join(script.name)).args(arguments);
        match measured(command) {
            Ok(measured) => Some(measured),
            Err(error) => {
                println!("  (left out: {}: {error})", script.name);
                self.failed.borrow_mut().push(script.name);
                None
            }
        }
    }
}

/// Runs a command that prints what it measured as a line of JSON.
pub(crate) fn measured(mut command: Command) -> Result<Figures, Box<dyn Error>> {
    let output = command.stdin(Stdio::null()).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("");
        return Err(format!("{}: {last}", output.status).into());
    }
    parse(&String::from_utf8_lossy(&output.stdout))
}

/// The last line of what a process printed: libraries may have said something before it.
fn parse(printed: &str) -> Result<Figures, Box<dyn Error>> {
    let line = printed.lines().rev().find(|line| !line.trim().is_empty());
    let line = line.ok_or("it printed nothing")?;
    Ok(serde_json::from_str(line).map_err(|error| format!("{error} in {line:.80}"))?)
}

/// The folder with the packages of `requirements.txt`, in the target folder.
fn environment() -> Result<PathBuf, Box<dyn Error>> {
    let program = std::env::current_exe()?;
    let target = program.ancestors().nth(2).ok_or("the program isn't in a target folder")?;
    let folder = target.join("bench-peers");
    let stamp = folder.join("installed.txt");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == REQUIREMENTS) {
        println!("peers    in {}", folder.display());
    } else {
        println!("peers    installing into {}", folder.display());
        let requirements = folder.join("requirements.txt");
        command(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
        fs::write(&requirements, REQUIREMENTS)?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
        command(Command::new(python(&folder)).args(pip).arg(requirements))?;
        fs::write(stamp, REQUIREMENTS)?;
    }
    for script in SCRIPTS {
        fs::write(folder.join(script.name), script.text)?;
    }
    Ok(folder)
}

fn python(folder: &Path) -> PathBuf {
    folder.join("bin/python")
}

fn command(command: &mut Command) -> Result<(), Box<dyn Error>> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{program} can't be started: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stderr, output.stdout].concat();
    let said = String::from_utf8_lossy(&said);
    Err(format!("{program}: {}", said.lines().rev().find(|line| !line.is_empty()).unwrap_or(""))
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_printed_is_the_measurement() {
        let printed = "a library's greeting\n{\"peer\":\"p\",\"version\":\"1\",\"cpu_us\":[1,9,2],\
                       \"ids\":[[3,1],[]],\"unknown\":0}\n\n";
        let measured = parse(printed).unwrap();
        assert_eq!(measured.name(), "p 1");
        assert_eq!(measured.p50(), 2.0);
        assert_eq!(measured.ids, [vec![3, 1], vec![]]);
        assert_eq!(measured.inserts_per_s, None);
        assert!(parse("").is_err());
        assert!(parse("Traceback").is_err());
    }

    #[test]
    fn a_process_that_fails_is_told_by_its_last_words() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo '{}'; echo 'no module' >&2; exit 3"]);
        let error = measured(shell).unwrap_err().to_string();
        assert!(error.contains("no module") && error.contains('3'), "{error}");
    }
}
