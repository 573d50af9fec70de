//! Files of JSON objects, one a line.

use std::error::Error;
use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use serde::{Serialize, de::DeserializeOwned};

/// Writes `rows`.
pub(crate) fn write<T: Serialize>(
    path: &Path,
    rows: impl IntoIterator<Item = T>,
) -> Result<(), Box<dyn Error>> {
    let mut file = BufWriter::new(fs::File::create(path)?);
    for row in rows {
        serde_json::to_writer(&mut file, &row)?;
        file.write_all(b"\n")?;
    }
    Ok(file.flush()?)
}

/// Reads rows; empty lines are none.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, Box<dyn Error>> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let rows = lines.map(|(number, line)| {
        serde_json::from_str(line)
            .map_err(|error| format!("{}, line {}: {error}", path.display(), number + 1).into())
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_and_a_bad_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.jsonl");
        write(&path, ["a", "b"]).unwrap();
        assert_eq!(read::<String>(&path).unwrap(), ["a", "b"]);
        fs::write(&path, "\"a\"\n\n{").unwrap();
        let error = read::<String>(&path).unwrap_err().to_string();
        assert!(error.contains("rows.jsonl, line 3"), "{error}");
    }
}
