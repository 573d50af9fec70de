//! The store of the configured namespace.

use std::path::{Path, PathBuf};

use garret_core::medium::{Medium, MediumError};
use garret_hal::media::FileMedium;
use garret_storage::{NamespaceError, OpenError, Store, file_name};

use crate::config::Config;

/// Opens the store of the configured namespace, making what isn't there.
///
/// # Errors
/// [`OpenError`] about a file that can't be opened, or that another process has.
pub fn store(config: &Config) -> Result<Store, OpenError> {
    Store::open(&config.data.value, &config.namespace.value, file_medium)
}

/// Opens the store of the configured namespace if there is one.
///
/// # Errors
/// [`NoStore`] when there is none, or it can't be opened.
pub fn existing_store(config: &Config) -> Result<Store, NoStore> {
    let data = &config.data.value;
    let namespace = config.namespace.value.clone();
    let file = data.join(file_name(&namespace)?);
    match file.try_exists() {
        Ok(true) => {}
        Ok(false) => return Err(NoStore::Missing { namespace, data: data.clone() }),
        Err(reason) => return Err(NoStore::Unreachable { file, reason }),
    }
    Ok(store(config)?)
}

/// The reason for which there is no store to look into.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoStore {
    /// Nothing was ever said in the namespace.
    #[error(
        "nothing is stored for namespace `{namespace}` in {}: check --data and --namespace",
        .data.display()
    )]
    Missing {
        /// The namespace.
        namespace: String,
        /// The folder in which it was looked for.
        data: PathBuf,
    },
    /// The folder can't be read, so that nobody knows.
    #[error("{}: can't be reached: {reason}", .file.display())]
    Unreachable {
        /// The file of the store.
        file: PathBuf,
        /// The system's words.
        reason: std::io::Error,
    },
    /// The namespace's name can't be used.
    #[error(transparent)]
    Name(#[from] NamespaceError),
    /// The store can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
}

fn file_medium(path: &Path) -> Result<Box<dyn Medium>, MediumError> {
    Ok(Box::new(FileMedium::open(path)?))
}
