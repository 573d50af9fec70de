//! The user's folders.

use std::ffi::OsString;
use std::path::PathBuf;

/// The user's folders, after the XDG base directory specification.
///
/// A folder that the environment doesn't tell of, since neither its own variable nor `HOME` is an
/// absolute path, is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Home {
    /// `XDG_CACHE_HOME` or `~/.cache`.
    pub cache: Option<PathBuf>,
    /// `XDG_CONFIG_HOME` or `~/.config`.
    pub config: Option<PathBuf>,
    /// `XDG_DATA_HOME` or `~/.local/share`.
    pub share: Option<PathBuf>,
}

impl Home {
    /// Returns the folders that `variable`, such as [`std::env::var_os`], tells of.
    pub fn from_environment(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let home = absolute("HOME");
        let xdg = |name, below: &str| {
            absolute(name).or_else(|| home.as_ref().map(|home| home.join(below)))
        };
        Self {
            cache: xdg("XDG_CACHE_HOME", ".cache"),
            config: xdg("XDG_CONFIG_HOME", ".config"),
            share: xdg("XDG_DATA_HOME", ".local/share"),
        }
    }

    pub(super) fn models(&self) -> Option<PathBuf> {
        self.cache.as_ref().map(|cache| cache.join("garret/models"))
    }

    pub(super) fn data(&self) -> Option<PathBuf> {
        self.share.as_ref().map(|share| share.join("garret"))
    }
}
