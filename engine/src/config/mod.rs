//! Configuration: flags over `GARRET_*` variables over a TOML file over the device profile over
//! defaults, with the origin of every value kept.
//!
//! A key has one name everywhere: `max_tokens` in the file, `GARRET_MAX_TOKENS` in the environment,
//! `--max-tokens` on the command line. Unknown keys are errors that suggest the nearest known one;
//! so are values that don't parse or lie out of range. A new key is a row of the table in
//! `table.rs`.
//!
//! ```
//! use garret::config::{Config, Sources};
//!
//! let config = Config::resolve(Sources {
//!     file: Some(("garret.toml".into(), "window = 4096\ndata = 'd'\nmodels_dir = 'm'".into())),
//!     ..Sources::default()
//! })?;
//! assert_eq!(config.window.value, Some(4096));
//! assert_eq!(config.window.origin.to_string(), "file garret.toml");
//! # Ok::<(), garret::config::ConfigError>(())
//! ```

mod choices;
mod home;
mod parse;
mod read;
mod setting;
mod sources;
mod table;
#[cfg(test)]
mod tests;

pub use choices::{EmbedderChoice, SnapshotPolicy, Switch};
pub use home::Home;
pub use setting::{ConfigError, Origin, Setting};
pub use sources::{Sources, default_file, device_profile, environment};
pub use table::{Config, KEYS, Key};
