//! Values that are one of a few words.

use std::fmt;
use std::path::PathBuf;

/// The embedder that search uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EmbedderChoice {
    /// The starter embedder, if it is in the models folder.
    Auto,
    /// None: search goes by words alone.
    Off,
    /// The GGUF file of one.
    File(PathBuf),
}

impl fmt::Display for EmbedderChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Off => f.write_str("off"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// The moments at which the KV cache is kept for the next start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotPolicy {
    /// Never.
    Off,
    /// The end of the program.
    Shutdown,
    /// The end of the program, and the time in which nobody waits.
    Idle,
}

impl fmt::Display for SnapshotPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::Shutdown => "shutdown",
            Self::Idle => "idle",
        })
    }
}

/// A setting that is on, off, or left to Garret.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Switch {
    /// The better of the two for the model and the machine.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

impl fmt::Display for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::On => "on",
            Self::Off => "off",
        })
    }
}
