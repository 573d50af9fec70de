//! `garret session export`.

use std::error::Error;
use std::io::{self, BufWriter};

use garret::config::Config;
use garret::export::{ExportError, Format, Options, export};
use garret::open;
use garret_core::time::Clock as _;
use garret_hal::clock::SystemClock;
use garret_storage::Store;

use super::args::{ExportFormat, SessionExport};
use super::{new_file, output};

/// Runs the command.
pub(super) fn run(
    config: &Config,
    store: &Store,
    args: &SessionExport,
) -> Result<(), Box<dyn Error>> {
    let session = args.id.parse()?;
    let options = Options {
        format: format(args),
        turn: args.turn,
        models: open::known_models(&config.data.value),
        now_ms: Some(SystemClock::new().wall().unix_ms),
    };
    let Some(file) = &args.output else {
        let mut out = BufWriter::new(io::stdout().lock());
        let written = export(store, &session, &options, &mut out);
        return written.map(drop).map_err(|error| match error {
            // Whoever read it may have read enough.
            ExportError::Write(error) => error.into(),
            other => other.into(),
        });
    };
    let turns = new_file::write(file, |out| {
        export(store, &session, &options, out).map_err(|error| match error {
            ExportError::Write(error) => format!("it can't be written: {error}").into(),
            other => other.into(),
        })
    })?;
    let turns = if turns == 1 { "1 turn".to_owned() } else { format!("{turns} turns") };
    output::note(&format!("{}: {turns}", file.display()));
    Ok(())
}

fn format(args: &SessionExport) -> Format {
    let extension = args.output.as_ref().and_then(|file| file.extension());
    match args.format {
        Some(ExportFormat::Json) => Format::Json,
        Some(ExportFormat::Markdown) => Format::Markdown,
        None if extension.is_some_and(|extension| extension == "json") => Format::Json,
        None => Format::Markdown,
    }
}
