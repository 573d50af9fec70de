//! The sources of values, and the way from all of them to a configuration.

use std::path::{Path, PathBuf};

use garret_hal::profile::{DeviceFacts, DeviceProfile, choose};
use garret_hal::sensors::Machine;

use super::home::Home;
use super::read::{Layer, Reader};
use super::setting::{ConfigError, Origin};
use super::table::{Config, KEYS, Key};

/// The sources of values, the strongest first.
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
    /// Returns what this process is told: its `GARRET_*` variables, the user's own configuration
    /// file if there is one, this machine and the user's folders; no flags.
    ///
    /// # Errors
    /// [`ConfigError`] about a variable or a file that can't be read.
    pub fn of_process() -> Result<Self, ConfigError> {
        let home = Home::from_environment(|name| std::env::var_os(name));
        Ok(Self {
            flags: Vec::new(),
            environment: environment()?,
            file: default_file(None, &home)?,
            device: device_profile(),
            home,
        })
    }
}

impl Config {
    /// Resolves all layers.
    ///
    /// # Errors
    /// [`ConfigError`] names the key, the layer and what would be right.
    pub fn resolve(sources: Sources) -> Result<Self, ConfigError> {
        let of_flag = |(key, value)| (key, (Origin::Flag, value));
        let flags = sources.flags.into_iter().map(of_flag).collect();
        let environment = from_environment(sources.environment)?;
        let file = match sources.file {
            Some((path, text)) => from_toml(&path, &text)?,
            None => Layer::new(),
        };
        let layers = [flags, environment, file];
        Self::read(&Reader { layers, device: sources.device, home: sources.home })
    }
}

/// Returns the profile of the device that this process runs on.
pub fn device_profile() -> DeviceProfile {
    let machine = Machine::new();
    DeviceProfile::detect(&machine, &machine, &machine)
}

/// Reads the configuration file `explicit`, else the user's own if there is one.
///
/// # Errors
/// [`ConfigError::Unreadable`] when a file that was asked for, or is there, can't be read.
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

/// Returns the variables of this process that configure Garret.
///
/// # Errors
/// [`ConfigError::BadValue`] when one of them isn't valid Unicode.
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

fn from_environment(variables: Vec<(String, String)>) -> Result<Layer, ConfigError> {
    let ours = variables.into_iter().filter(|(name, _)| !is_elsewhere(name));
    ours.map(|(name, value)| {
        let origin = Origin::Environment(name.clone());
        let Some(known) = find_variable(&name) else {
            let key = name.trim_start_matches(PREFIX);
            let nearest = nearest(key).map(Key::variable);
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
                let nearest = nearest(&key).map(|key| key.name.to_owned());
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

/// Returns the known key nearest to `name`, if one is near enough to be what was meant.
fn nearest(name: &str) -> Option<&'static Key> {
    let name = name.to_lowercase().replace('-', "_");
    KEYS.iter()
        .map(|key| (strsim::jaro_winkler(&name, key.name), key))
        .filter(|(score, _)| *score > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, key)| key)
}

fn find_variable(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.variable() == name)
}

fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

const PREFIX: &str = "GARRET_";
