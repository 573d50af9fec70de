//! Taking a namespace elsewhere: as a backup, which is a store by itself, or as an export, which any
//! version can take in.

pub(crate) mod backup;
pub(crate) mod error;
pub(crate) mod export;
pub(crate) mod frames;
pub(crate) mod import;
pub(crate) mod lines;
pub(crate) mod record;
pub(crate) mod take;
pub(crate) mod words;

pub use crate::bundle::backup::{Backup, BackupError};
pub use crate::bundle::error::{ExportError, ImportError, Place};
pub use crate::bundle::export::Format;
pub use crate::bundle::import::{ImportReport, Taken};
pub use crate::bundle::record::BundleCounts;
