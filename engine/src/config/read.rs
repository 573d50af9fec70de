//! Raw values layer by layer, and the ways in which a key's value is made of them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use garret_hal::profile::DeviceProfile;

use super::home::Home;
use super::setting::{ConfigError, Origin, Setting};

/// The raw values of one layer by key.
pub(super) type Layer = BTreeMap<&'static str, (Origin, String)>;

/// A function from a value's text to the value; its error says what would be right.
type Parse<T> = fn(&str) -> Result<T, String>;

/// The layers, and what stands in for a key that none of them has.
pub(super) struct Reader {
    /// The strongest first.
    pub(super) layers: [Layer; 3],
    pub(super) device: DeviceProfile,
    pub(super) home: Home,
}

impl Reader {
    fn raw(&self, key: &str) -> Option<(&Origin, &str)> {
        let strongest = self.layers.iter().find_map(|layer| layer.get(key));
        strongest.map(|(origin, text)| (origin, text.as_str()))
    }

    fn find<T>(
        &self,
        key: &'static str,
        parse: Parse<T>,
    ) -> Result<Option<Setting<T>>, ConfigError> {
        let Some((origin, text)) = self.raw(key) else { return Ok(None) };
        match parse(text) {
            Ok(value) => Ok(Some(Setting { value, origin: origin.clone() })),
            Err(expected) => Err(ConfigError::BadValue {
                origin: origin.clone(),
                key,
                value: text.into(),
                expected,
            }),
        }
    }

    /// The value of `key`, else `default`.
    pub(super) fn or<T>(
        &self,
        key: &'static str,
        parse: Parse<T>,
        default: T,
    ) -> Result<Setting<T>, ConfigError> {
        let found = self.find(key, parse)?;
        Ok(found.unwrap_or(Setting { value: default, origin: Origin::Default }))
    }

    /// The value of `key`, else a folder of the user's home.
    pub(super) fn or_home(
        &self,
        key: &'static str,
        parse: Parse<PathBuf>,
        default: fn(&Home) -> Option<PathBuf>,
    ) -> Result<Setting<PathBuf>, ConfigError> {
        match (self.find(key, parse)?, default(&self.home)) {
            (Some(found), _) => Ok(found),
            (None, Some(value)) => Ok(Setting { value, origin: Origin::Default }),
            (None, None) => Err(ConfigError::NoHome { key }),
        }
    }

    /// The value of `key`, else the device's.
    pub(super) fn or_device<T>(
        &self,
        key: &'static str,
        parse: Parse<T>,
        default: fn(&DeviceProfile) -> T,
    ) -> Result<Setting<T>, ConfigError> {
        let of_device = || Setting { value: default(&self.device), origin: self.device_origin() };
        Ok(self.find(key, parse)?.unwrap_or_else(of_device))
    }

    /// The value of `key`, else `None`, which `auto` gives back as well.
    pub(super) fn optional<T>(
        &self,
        key: &'static str,
        parse: Parse<T>,
    ) -> Result<Setting<Option<T>>, ConfigError> {
        if let Some((origin, AUTO)) = self.raw(key) {
            return Ok(Setting { value: None, origin: origin.clone() });
        }
        Ok(match self.find(key, parse)? {
            Some(Setting { value, origin }) => Setting { value: Some(value), origin },
            None => Setting { value: None, origin: Origin::Default },
        })
    }

    /// The value of `key`, else the device's, which `auto` gives back as well; never `None`, which
    /// only programs that embed the engine set.
    pub(super) fn optional_or_device<T>(
        &self,
        key: &'static str,
        parse: Parse<T>,
        default: fn(&DeviceProfile) -> T,
    ) -> Result<Setting<Option<T>>, ConfigError> {
        let Setting { value, origin } = match self.raw(key) {
            Some((_, AUTO)) => {
                Setting { value: default(&self.device), origin: self.device_origin() }
            }
            _ => self.or_device(key, parse, default)?,
        };
        Ok(Setting { value: Some(value), origin })
    }

    fn device_origin(&self) -> Origin {
        Origin::Device(self.device.name.clone())
    }
}

/// The word by which a setting is given back to whoever chooses it by default.
pub(super) const AUTO: &str = "auto";
