//! Taking a namespace elsewhere: as a backup, which is a store by itself, or as an export, which any
//! version can take in.

mod backup;
mod error;
mod export;
mod frames;
mod import;
mod lines;
mod record;
mod take;
mod words;

pub use backup::{Backup, BackupError};
pub use error::{ExportError, ImportError, Place};
pub use export::Format;
pub use import::{ImportReport, Taken};
pub use record::BundleCounts;
