//! Namespaces as file names, and back.
//!
//! The mapping is injective for every Unicode string and survives file systems that fold case or
//! normalise Unicode; `FORMAT.md`, "Files", has the rules.
//!
//! ```
//! use std::path::Path;
//! use garret_storage::{file_name, namespace_of};
//!
//! assert_eq!(file_name("kitchen")?, Path::new("kitchen.redb"));
//! assert_eq!(file_name("a/B")?, Path::new("a%2f%42.redb"));
//! assert_eq!(namespace_of(Path::new("a%2f%42.redb")).as_deref(), Some("a/B"));
//! # Ok::<(), garret_storage::NamespaceError>(())
//! ```

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

/// Most bytes of UTF-8 a namespace can have.
pub const MAX_NAMESPACE_BYTES: usize = 256;

/// Returns where the store of `namespace` lies, relative to the data directory.
///
/// # Errors
/// [`NamespaceError::TooLong`] over [`MAX_NAMESPACE_BYTES`].
pub fn file_name(namespace: &str) -> Result<PathBuf, NamespaceError> {
    if namespace.len() > MAX_NAMESPACE_BYTES {
        return Err(NamespaceError::TooLong { bytes: namespace.len() });
    }
    let escaped = escape(namespace);
    let mut rest = escaped.as_str();
    let mut path = PathBuf::new();
    while let Some((piece, tail)) = rest.split_at_checked(PIECE).filter(|(_, t)| !t.is_empty()) {
        path.push(format!("{piece}{DIRECTORY}"));
        rest = tail;
    }
    path.push(format!("{rest}{STORE}"));
    Ok(path)
}

/// The namespace whose store lies at `path` (relative to the data directory), if it is one that
/// [`file_name`] gives.
pub fn namespace_of(path: &Path) -> Option<String> {
    let mut escaped = String::new();
    let mut pieces = path.iter().peekable();
    while let Some(piece) = pieces.next() {
        let suffix = if pieces.peek().is_some() { DIRECTORY } else { STORE };
        escaped.push_str(piece.to_str()?.strip_suffix(suffix)?);
    }
    let namespace = unescape(&escaped)?;
    (file_name(&namespace).ok()? == path).then_some(namespace)
}

/// The namespaces that have a store in `data_dir`, sorted; none when there is no such directory.
///
/// Files that are no stores by their names and empty ones are left out; no file is opened.
///
/// # Errors
/// The system's, when a directory can't be read.
pub fn namespaces(data_dir: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    if data_dir.try_exists()? {
        collect(data_dir, Path::new(""), &mut found)?;
    }
    found.sort_unstable();
    Ok(found)
}

/// Why a string can't be a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NamespaceError {
    /// Over [`MAX_NAMESPACE_BYTES`].
    #[error(
        "a namespace has at most {MAX_NAMESPACE_BYTES} bytes of UTF-8, this one has {bytes}: \
         shorten it"
    )]
    TooLong {
        /// Length given, in bytes of UTF-8.
        bytes: usize,
    },
}

/// Longest piece of an escaped namespace in one path component, in bytes.
const PIECE: usize = 192;
const STORE: &str = ".redb";
const DIRECTORY: &str = ".d";
/// Spelling of the namespace without characters.
const EMPTY: &str = "%";

fn escape(namespace: &str) -> String {
    if namespace.is_empty() {
        return EMPTY.to_owned();
    }
    let mut out = String::with_capacity(namespace.len());
    for byte in namespace.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' => out.push(char::from(byte)),
            // Writing to a String never fails.
            _ => write!(out, "%{byte:02x}").unwrap_or_default(),
        }
    }
    out
}

/// Undoes [`escape`]; takes spellings that it doesn't give, too.
fn unescape(escaped: &str) -> Option<String> {
    if escaped == EMPTY {
        return Some(String::new());
    }
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut rest = escaped.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => hex(rest.next()?)?.checked_mul(16)?.checked_add(hex(rest.next()?)?)?,
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

fn collect(data_dir: &Path, below: &Path, found: &mut Vec<String>) -> io::Result<()> {
    for entry in std::fs::read_dir(data_dir.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        let metadata = match entry.metadata() {
            Ok(metadata) => metadata,
            // Removed since the directory was read.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if metadata.is_dir() {
            if is_piece(&path) {
                collect(data_dir, &path, found)?;
            }
        } else if metadata.len() > 0 {
            found.extend(namespace_of(&path));
        }
    }
    Ok(())
}

/// Tells whether a directory can be one of ours, which bounds the walk to three levels.
fn is_piece(path: &Path) -> bool {
    let named = path
        .file_name()
        .and_then(|name| name.to_str())
        .and_then(|name| name.strip_suffix(DIRECTORY))
        .is_some_and(|piece| piece.len() == PIECE);
    named && path.iter().count() <= MAX_NAMESPACE_BYTES * 3 / PIECE
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spellings() {
        for (namespace, name) in [
            ("", "%.redb"),
            ("%", "%25.redb"),
            (".", "%2e.redb"),
            ("..", "%2e%2e.redb"),
            ("a_b", "a_b.redb"),
            ("a/b", "a%2fb.redb"),
            ("Ada", "%41da.redb"),
            ("\0", "%00.redb"),
            ("\u{e9}", "%c3%a9.redb"),
            ("e\u{301}", "e%cc%81.redb"),
        ] {
            assert_eq!(file_name(namespace).unwrap(), Path::new(name));
        }
    }

    /// Where odd signs are replaced, `a/b` and `a_b`, or any two all-Japanese names of one length,
    /// are one file, so that one tenant reads another's facts.
    #[test]
    fn names_that_collide_elsewhere_do_not_here() {
        let names = ["a/b", "a_b", "a.b", "a b", "\u{65e5}\u{672c}", "\u{4e2d}\u{56fd}", "__", ""];
        let files: HashMap<_, _> =
            names.iter().map(|name| (file_name(name).unwrap(), *name)).collect();
        assert_eq!(files.len(), names.len());
    }

    #[test]
    fn too_long_is_refused() {
        assert!(file_name(&"x".repeat(256)).is_ok());
        let error = file_name(&"x".repeat(257)).unwrap_err();
        assert_eq!(error, NamespaceError::TooLong { bytes: 257 });
        assert!(error.to_string().contains("257"));
    }

    #[test]
    fn pieces_are_cut_where_format_says() {
        let one = file_name(&"x".repeat(192)).unwrap();
        assert_eq!(one.iter().count(), 1);
        let two = file_name(&"x".repeat(193)).unwrap();
        assert_eq!(two, Path::new(&format!("{}.d", "x".repeat(192))).join("x.redb"));
        assert_eq!(file_name(&"X".repeat(256)).unwrap().iter().count(), 4);
    }

    #[test]
    fn other_spellings_are_no_namespaces() {
        for path in [
            "%61.redb",
            "%2F.redb",
            "A.redb",
            "a",
            "a.redb.redb",
            "%.redb/x.redb",
            "%ff.redb",
            "%4.redb",
            ".redb",
            "",
            "a.d/b.redb",
            "a.lock",
            "%e9%.redb",
            "%+1.redb",
        ] {
            assert_eq!(namespace_of(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn listing_finds_stores_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(namespaces(&dir.path().join("missing")).unwrap(), Vec::<String>::new());
        let mut names = vec![String::new(), "a".into(), "A/..".into(), "\u{1f980}".repeat(64)];
        for name in &names {
            let path = dir.path().join(file_name(name).unwrap());
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, b"x").unwrap();
        }
        std::fs::write(dir.path().join("b.redb"), b"").unwrap();
        std::fs::write(dir.path().join("c.lock"), b"1\n").unwrap();
        std::fs::write(dir.path().join("D.redb"), b"x").unwrap();
        std::fs::create_dir(dir.path().join("e.d")).unwrap();
        std::fs::write(dir.path().join("e.d").join("f.redb"), b"x").unwrap();
        names.sort_unstable();
        assert_eq!(namespaces(dir.path()).unwrap(), names);
    }

    /// Strings that come near to each other's spellings, short and long.
    fn tricky() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<String>(),
            "[aA%./_ 0-9d-]{0,8}",
            "[aA%]{60,86}",
            "[a-z]{180,256}",
            "(%[0-9a-f]{2}){0,12}",
            "[\u{65e5}\u{672c}\u{e9}e\u{301}\u{130}\u{131}]{0,40}",
        ]
        .prop_filter("refused by length", |text| text.len() <= MAX_NAMESPACE_BYTES)
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 2_000,
            failure_persistence: None,
            ..Default::default()
        })]

        #[test]
        fn round_trip(namespace in tricky()) {
            let path = file_name(&namespace).unwrap();
            prop_assert_eq!(namespace_of(&path), Some(namespace));
        }

        #[test]
        fn components_are_plain_and_short(namespace in tricky()) {
            for component in file_name(&namespace).unwrap().iter() {
                let text = component.to_str().unwrap();
                prop_assert!(text.len() <= 200);
                prop_assert!(text.bytes().all(|b| matches!(b,
                    b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'%' | b'.')));
                prop_assert!(text.ends_with(".redb") || text.ends_with(".d"));
            }
        }

        #[test]
        fn injective_even_when_case_is_folded(a in tricky(), b in tricky()) {
            let fold = |name: &str| {
                file_name(name).unwrap().to_str().unwrap().to_lowercase()
            };
            prop_assert_eq!(a == b, fold(&a) == fold(&b));
        }

        #[test]
        fn any_path_decodes_to_at_most_its_own_namespace(path in "[a%0-9.A-F/d]{0,12}(\\.redb)?") {
            if let Some(namespace) = namespace_of(Path::new(&path)) {
                prop_assert_eq!(file_name(&namespace).unwrap(), PathBuf::from(path));
            }
        }
    }
}
