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

pub use crate::bundle::backup::{Backup, BackupError};
pub use crate::bundle::error::{ExportError, ImportError, Place};
pub use crate::bundle::export::Format;
pub use crate::bundle::import::{ImportReport, Taken};
pub use crate::bundle::record::BundleCounts;
