//! Processes of this program that do a task of [`child`](super::child).

use std::error::Error;
use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::peers::{Figures, measured};

/// Has a process do a task, and reads what it measured.
pub(super) fn spawn(arguments: &[&str]) -> Result<Figures, Box<dyn Error>> {
    measured(command(arguments)?)
}

/// Has a process fill a store, and kills it when all is acknowledged.
pub(super) fn fill_and_kill(folder: &Path, records: &Path) -> Result<(), Box<dyn Error>> {
    let folder = folder.to_string_lossy();
    let records = records.to_string_lossy();
    let mut command = command(&["fill", "--hang", &folder, &records])?;
    let mut child = KilledChild(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?);
    let mut ready = [0];
    child.0.stdout.take().ok_or("no output")?.read_exact(&mut ready)?;
    Ok(())
}

struct KilledChild(Child);

impl Drop for KilledChild {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn command(arguments: &[&str]) -> Result<Command, Box<dyn Error>> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("child").args(arguments);
    Ok(command)
}
