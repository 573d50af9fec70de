//! The layers that hold raw values, strongest first.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use garret_hal::profile::{DeviceFacts, DeviceProfile, choose};

use super::keys::{find, find_variable, nearest};
use super::{ConfigError, Origin};
use crate::device;

/// Where values come from.
#[derive(Clone, Debug)]
pub struct Sources {
    /// Keys and values from the command line.
    pub flags: Vec<(&'static str, String)>,
    /// All environment variables that begin with `GARRET_`.
    pub environment: Vec<(String, String)>,
    /// Path and text of the configuration file.
    pub file: Option<(PathBuf, String)>,
    /// The device.
    pub device: DeviceProfile,
    /// The user's folders.
    pub home: Home,
}

impl Default for Sources {
    /// No values, and a device that tells nothing about itself.
    fn default() -> Self {
        Self {
            flags: Vec::new(),
            environment: Vec::new(),
            file: None,
            device: choose(&DeviceFacts::default()),
            home: Home::default(),
        }
    }
}

impl Sources {
    /// Returns what this process is told: its `GARRET_*` variables, the user's own configuration file if
    /// there is one, this machine and the user's folders; no flags.
    ///
    /// # Errors
    /// [`ConfigError`] about a variable or a file that can't be read.
    pub fn of_process() -> Result<Self, ConfigError> {
        let home = Home::from_environment(|name| std::env::var_os(name));
        Ok(Self {
            flags: Vec::new(),
            environment: environment()?,
            file: default_file(None, &home)?,
            device: device::profile(),
            home,
        })
    }
}

/// The user's folders, after the XDG base directory specification.
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
    /// The folders that `variable` (such as [`std::env::var_os`]) tells of.
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

/// The configuration file to read: `explicit`, else the user's own if there is one.
///
/// # Errors
/// When a file that was asked for, or is there, can't be read.
pub fn default_file(
    explicit: Option<&Path>,
    home: &Home,
) -> Result<Option<(PathBuf, String)>, ConfigError> {
    let usual = home.config.as_ref().map(|config| config.join("garret/config.toml"));
    let Some(path) = explicit.or(usual.as_deref().filter(|path| path.exists())) else {
        return Ok(None);
    };
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some((path.into(), text))),
        Err(error) => Err(ConfigError::Unreadable { path: path.into(), reason: error.to_string() }),
    }
}

/// The variables of this process that configure Garret.
///
/// # Errors
/// When one of them isn't valid Unicode.
pub fn environment() -> Result<Vec<(String, String)>, ConfigError> {
    let ours = std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok()?;
        name.starts_with(PREFIX).then_some((name, value))
    });
    ours.map(|(name, value)| match value.into_string() {
        Ok(value) => Ok((name, value)),
        Err(value) => Err(ConfigError::BadValue {
            origin: Origin::Environment(name.clone()),
            key: find_variable(&name).map_or("", |key| key.name),
            value: value.to_string_lossy().into_owned(),
            expected: "it must be valid Unicode".into(),
        }),
    })
    .collect()
}

/// Raw values by key, layer by layer.
pub(super) struct Layers(Vec<BTreeMap<&'static str, (Origin, String)>>);

impl Layers {
    pub(super) fn new(sources: Sources) -> Result<Self, ConfigError> {
        let flags =
            sources.flags.into_iter().map(|(key, value)| (key, (Origin::Flag, value))).collect();
        let environment = from_environment(sources.environment)?;
        let file = match sources.file {
            Some((path, text)) => from_toml(&path, &text)?,
            None => BTreeMap::new(),
        };
        Ok(Self(vec![flags, environment, file]))
    }

    pub(super) fn find(&self, key: &str) -> Option<(&Origin, &str)> {
        let found = self.0.iter().find_map(|layer| layer.get(key));
        found.map(|(origin, value)| (origin, value.as_str()))
    }
}

type Layer = BTreeMap<&'static str, (Origin, String)>;

fn from_environment(variables: Vec<(String, String)>) -> Result<Layer, ConfigError> {
    let ours = variables.into_iter().filter(|(name, _)| !is_elsewhere(name));
    ours.map(|(name, value)| {
        let origin = Origin::Environment(name.clone());
        let Some(known) = find_variable(&name) else {
            let key = name.trim_start_matches(PREFIX);
            let nearest = nearest(key).and_then(find).map(super::Key::variable);
            return Err(ConfigError::UnknownKey { origin, key: name, nearest });
        };
        Ok((known.name, (origin, value)))
    })
    .collect()
}

/// Variables that belong to Garret's scripts and tests, or name the configuration file.
fn is_elsewhere(variable: &str) -> bool {
    ["GARRET_CONFIG", "GARRET_FEATURES"].contains(&variable) || variable.starts_with("GARRET_TEST_")
}

fn from_toml(path: &Path, text: &str) -> Result<Layer, ConfigError> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        ConfigError::NotToml { path: path.into(), reason: error.to_string() }
    })?;
    let origin = Origin::File(path.into());
    table
        .into_iter()
        .map(|(key, value)| {
            let Some(known) = find(&key) else {
                let nearest = nearest(&key).map(str::to_owned);
                return Err(ConfigError::UnknownKey { origin: origin.clone(), key, nearest });
            };
            let value = scalar(value).map_err(|value| ConfigError::BadValue {
                origin: origin.clone(),
                key: known.name,
                value,
                expected: "it must be a text, a number or a truth value".into(),
            })?;
            Ok((known.name, (origin.clone(), value)))
        })
        .collect()
}

fn scalar(value: toml::Value) -> Result<String, String> {
    match value {
        toml::Value::String(text) => Ok(text),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Float(number) => Ok(number.to_string()),
        toml::Value::Boolean(truth) => Ok(truth.to_string()),
        other => Err(other.to_string()),
    }
}

const PREFIX: &str = "GARRET_";
