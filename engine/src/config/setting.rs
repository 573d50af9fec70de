//! Values with their origin, and the errors of values that can't be used.

use std::fmt;
use std::path::PathBuf;

/// A value and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting<T> {
    /// The value in force.
    pub value: T,
    /// The layer that set it.
    pub origin: Origin,
}

/// The layer that a value came from, strongest first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// The command line.
    Flag,
    /// An environment variable.
    Environment(String),
    /// A configuration file.
    File(PathBuf),
    /// The profile of the device that was detected.
    Device(String),
    /// Garret's default.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("flag"),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Device(name) => write!(f, "device {name}"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// The reason for which a configuration is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A key that doesn't exist.
    #[error("{origin}: unknown key `{key}`{}", suggestion(.nearest.as_deref()))]
    UnknownKey {
        /// The layer that has it.
        origin: Origin,
        /// The key as written.
        key: String,
        /// The known key nearest to it, if one is near.
        nearest: Option<String>,
    },
    /// A value that can't be used.
    #[error("{origin}: `{key}` can't be `{value}`: {expected}")]
    BadValue {
        /// The layer that has it.
        origin: Origin,
        /// The key.
        key: &'static str,
        /// The value as written.
        value: String,
        /// Description of what would be right.
        expected: String,
    },
    /// A folder that lies in the user's home unless it is configured, and there is no home.
    #[error("HOME isn't set, so there is no place for `{key}`: set HOME, or configure `{key}`")]
    NoHome {
        /// The key.
        key: &'static str,
    },
    /// A file that isn't TOML.
    #[error("{}: not valid TOML: {reason}", .path.display())]
    NotToml {
        /// The file.
        path: PathBuf,
        /// The parser's words, with line and column.
        reason: String,
    },
    /// A file that can't be read.
    #[error("{}: can't be read: {reason}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's words.
        reason: String,
    },
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(
        || "; `garret config show` lists all keys".into(),
        |nearest| format!("; did you mean `{nearest}`?"),
    )
}
