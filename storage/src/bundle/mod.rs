//! Taking a namespace elsewhere: as a backup, a file that is a store by itself.

mod backup;

pub use backup::{Backup, BackupError};
