//! What a companion is to fill in, line by line.
//!
//! A form is declared once. Each of its lines begins with a label and has cells; from the declaration
//! come the GBNF grammar, in which every cell, every count of lines and all white space is bounded,
//! and the reader, which accepts whatever the grammar allows.
//!
//! ```
//! use garret::companion::form::{Form, Percent, Size, Text};
//! use garret::{form, row};
//!
//! row! {
//!     /// What the user may mean.
//!     pub struct Guess = "guess: " {
//!         /// How likely.
//!         pub percent: Percent,
//!         /// In a few words.
//!         pub intent: Text<60>,
//!     }
//! }
//!
//! row! {
//!     /// A thought that leads there.
//!     pub struct Thought = "because: " {
//!         /// In a few words.
//!         pub text: Text<80>,
//!     }
//! }
//!
//! form! {
//!     /// What the user is after.
//!     pub struct Reading {
//!         /// The likeliest first.
//!         core guesses: Guess, 1, 3;
//!         /// For models that can do more.
//!         extended chain: Thought, 0, 4;
//!     }
//! }
//!
//! let read = Reading::read("guess: 70 | a refund\nguess: 20 | a new one\n", Size::Core)?;
//! assert_eq!(read.guesses[1].intent.as_str(), "a new one");
//! assert!(Reading::read("guess: lots | a refund\n", Size::Core).is_err());
//! assert!(Reading::grammar(Size::Core).contains(r#"root ::= line0{1,3}"#));
//! # Ok::<(), garret::companion::form::FormError>(())
//! ```
//!
//! Lines that may be missing altogether are written as one line `label: none`: a small model says
//! that more readily than nothing.
//!
//! Limits: cells are separated by ` | `, so that no text holds a `|`; the labels of a form differ, and
//! none is the beginning of another.

use std::fmt::{self, Write};

use garret_core::model::ModelFacts;

/// How much is asked of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Size {
    /// The lines that small models manage.
    #[default]
    Core,
    /// All lines.
    Extended,
}

impl Size {
    /// The size for a model by its parameters and its window; one that doesn't tell how many
    /// parameters it has counts as small.
    pub const fn suited(model: ModelFacts) -> Self {
        match model.parameters {
            Some(parameters) if parameters >= LARGE_MODEL && model.n_ctx >= LARGE_WINDOW => {
                Self::Extended
            }
            _ => Self::Core,
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Core => "core",
            Self::Extended => "extended",
        })
    }
}

/// Tokens of a window from which a form may be [`Size::Extended`].
const LARGE_WINDOW: u32 = 16_384;
/// Parameters of a model from which a form may be [`Size::Extended`].
const LARGE_MODEL: u64 = 2_000_000_000;

/// What stands between two bars.
pub trait Cell: Sized {
    /// Appends its GBNF.
    fn grammar(out: &mut String);

    /// Reads what the grammar allows; `None` for anything else.
    fn read(text: &str) -> Option<Self>;
}

/// One line, without its label and its end.
pub trait Row: Sized {
    /// Begins the line.
    const LABEL: &'static str;

    /// Appends the GBNF of the cells and the bars between them.
    fn grammar(out: &mut String);

    /// Reads what the grammar allows; `None` for anything else.
    fn read(text: &str) -> Option<Self>;
}

/// A whole answer.
pub trait Form: Sized {
    /// The GBNF grammar, with root rule `root`.
    fn grammar(size: Size) -> String;

    /// Reads an answer.
    ///
    /// # Errors
    /// [`FormError`] names the line; an answer that follows the grammar has none.
    fn read(text: &str, size: Size) -> Result<Self, FormError>;
}

/// Why an answer can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormError {
    /// Too few lines of a kind.
    #[error("line {line}: {found} lines `{label}` where at least {least} are expected")]
    Missing {
        /// Which line, from 1.
        line: usize,
        /// The label.
        label: &'static str,
        /// How many there are.
        found: usize,
        /// How many there must be.
        least: usize,
    },
    /// A line whose cells can't be read.
    #[error("line {line}: what follows `{label}` isn't as declared")]
    Cells {
        /// Which line, from 1.
        line: usize,
        /// The label.
        label: &'static str,
    },
    /// A line that is too many or begins with no label.
    #[error("line {line}: it isn't expected there")]
    Unexpected {
        /// Which line, from 1.
        line: usize,
    },
}

/// Text of 1 to `MOST` characters on one line, without a bar and without spaces around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text<const MOST: usize>(String);

impl<const MOST: usize> Text<MOST> {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text, owned.
    pub fn into_string(self) -> String {
        self.0
    }
}

impl<const MOST: usize> Cell for Text<MOST> {
    fn grammar(out: &mut String) {
        let rest = MOST.saturating_sub(1);
        // A String takes whatever is written to it.
        let _ = write!(out, r"[^\x00-\x20|{OTHER}] [^\x00-\x1F|{OTHER}]{{0,{rest}}}");
    }

    fn read(text: &str) -> Option<Self> {
        let fits = text.chars().count() <= MOST && !text.contains(is_barred);
        let text = text.trim_end_matches(' ');
        (fits && !text.is_empty() && !text.starts_with(' ')).then(|| Self(text.to_owned()))
    }
}

/// Beside ASCII's, what some reader takes for a control character or the end of a line.
const OTHER: &str = r"\x7F-\x9F\u2028\u2029";

const fn is_barred(c: char) -> bool {
    matches!(c, '\0'..='\x1f' | '|' | '\x7f'..='\u{9f}' | '\u{2028}' | '\u{2029}')
}

/// A whole number from 0 to 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u8);

impl Percent {
    /// The number.
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl Cell for Percent {
    fn grammar(out: &mut String) {
        out.push_str(r#"("100" | [1-9]? [0-9])"#);
    }

    fn read(text: &str) -> Option<Self> {
        let canonical = text.len() == 1 || !text.starts_with('0');
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|number| *number <= 100 && digits && canonical);
        number.map(Self)
    }
}

/// Separates cells.
pub const BAR: &str = " | ";
/// Stands for no line at all.
pub const NONE: &str = "none";

/// Declares a cell with a fixed choice of words, as an enum.
#[macro_export]
macro_rules! choice {
    ($(#[$meta:meta])* $vis:vis enum $name:ident {
        $($(#[$word_meta:meta])* $word:ident = $text:literal),+ $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name { $($(#[$word_meta])* $word),+ }

        impl $crate::companion::form::Cell for $name {
            fn grammar(out: &mut String) {
                let words = [$(concat!("\"", $text, "\"")),+];
                out.push('(');
                out.push_str(&words.join(" | "));
                out.push(')');
            }

            fn read(text: &str) -> Option<Self> {
                match text {
                    $($text => Some(Self::$word),)+
                    _ => None,
                }
            }
        }
    };
}

/// Declares a line: its label and its cells, as a struct.
#[macro_export]
macro_rules! row {
    ($(#[$meta:meta])* $vis:vis struct $name:ident = $label:literal {
        $($(#[$cell_meta:meta])* $cell_vis:vis $cell:ident : $ty:ty),+ $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        $vis struct $name { $($(#[$cell_meta])* $cell_vis $cell: $ty),+ }

        impl $crate::companion::form::Row for $name {
            const LABEL: &'static str = $label;

            fn grammar(out: &mut String) {
                let cells: &[fn(&mut String)] =
                    &[$(<$ty as $crate::companion::form::Cell>::grammar),+];
                $crate::companion::form::write_cells(out, cells);
            }

            fn read(text: &str) -> Option<Self> {
                let mut cells = text.split($crate::companion::form::BAR);
                let row = Self {
                    $($cell: <$ty as $crate::companion::form::Cell>::read(cells.next()?)?),+
                };
                cells.next().is_none().then_some(row)
            }
        }
    };
}

/// Declares a form: its lines in order, how many of each, and for which [`Size`], as a struct.
#[macro_export]
macro_rules! form {
    ($(#[$meta:meta])* $vis:vis struct $name:ident {
        $($(#[$line_meta:meta])* $size:ident $line:ident : $row:ty, $least:literal, $most:literal);+
        $(;)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        $vis struct $name { $($(#[$line_meta])* pub $line: Vec<$row>),+ }

        impl $crate::companion::form::Form for $name {
            fn grammar(size: $crate::companion::form::Size) -> String {
                let mut grammar = $crate::companion::form::Grammar::default();
                $(if $crate::companion::form::asked($crate::form!(@size $size), size) {
                    grammar.lines::<$row>($least, $most);
                })+
                grammar.finish()
            }

            fn read(
                text: &str,
                size: $crate::companion::form::Size,
            ) -> Result<Self, $crate::companion::form::FormError> {
                let mut lines = $crate::companion::form::Lines::new(text);
                let read = Self {
                    $($line: if $crate::companion::form::asked($crate::form!(@size $size), size) {
                        lines.rows::<$row>($least, $most)?
                    } else {
                        Vec::new()
                    }),+
                };
                lines.finish()?;
                Ok(read)
            }
        }
    };
    (@size core) => { $crate::companion::form::Size::Core };
    (@size extended) => { $crate::companion::form::Size::Extended };
}

/// Whether lines declared for `declared` are asked for in a form of `size`.
#[doc(hidden)]
pub fn asked(declared: Size, size: Size) -> bool {
    declared == Size::Core || size == Size::Extended
}

/// Appends the GBNF of `cells` and the bars between them.
#[doc(hidden)]
pub fn write_cells(out: &mut String, cells: &[fn(&mut String)]) {
    for (index, cell) in cells.iter().enumerate() {
        if index > 0 {
            let _ = write!(out, " \"{BAR}\" ");
        }
        cell(out);
    }
}

/// A grammar as its lines are declared.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Grammar {
    root: String,
    rules: String,
    count: usize,
}

impl Grammar {
    /// Adds `least` to `most` lines of one kind.
    pub fn lines<R: Row>(&mut self, least: usize, most: usize) {
        let (rule, label) = (self.count, R::LABEL);
        self.count += 1;
        let mut cells = String::new();
        R::grammar(&mut cells);
        // A String takes whatever is written to it.
        let _ = match least {
            0 => write!(self.root, " (\"{label}{NONE}\\n\" | line{rule}{{1,{most}}})"),
            _ => write!(self.root, " line{rule}{{{least},{most}}}"),
        };
        let _ = writeln!(self.rules, "line{rule} ::= \"{label}\" {cells} \"\\n\"");
    }

    /// The grammar.
    pub fn finish(self) -> String {
        format!("root ::={}\n{}", self.root, self.rules)
    }
}

/// An answer as its lines are read.
#[doc(hidden)]
#[derive(Debug)]
pub struct Lines<'a> {
    rest: std::iter::Peekable<std::str::Lines<'a>>,
    line: usize,
}

impl<'a> Lines<'a> {
    /// All lines of `text`.
    pub fn new(text: &'a str) -> Self {
        Self { rest: text.trim_end_matches([' ', '\n']).lines().peekable(), line: 1 }
    }

    /// The next `least` to `most` lines of one kind.
    ///
    /// # Errors
    /// [`FormError::Missing`] and [`FormError::Cells`].
    pub fn rows<R: Row>(&mut self, least: usize, most: usize) -> Result<Vec<R>, FormError> {
        let label = R::LABEL;
        let (mut rows, mut seen) = (Vec::new(), 0);
        while seen < most
            && let Some(cells) = self.rest.peek().and_then(|line| line.strip_prefix(label))
        {
            if least > 0 || cells.trim_end_matches(' ') != NONE {
                rows.push(R::read(cells).ok_or(FormError::Cells { line: self.line, label })?);
            }
            self.rest.next();
            self.line += 1;
            seen += 1;
        }
        if seen < least {
            let found = rows.len();
            return Err(FormError::Missing { line: self.line, label, found, least });
        }
        Ok(rows)
    }

    /// Ends the answer.
    ///
    /// # Errors
    /// [`FormError::Unexpected`] when there are more lines.
    pub fn finish(mut self) -> Result<(), FormError> {
        let line = self.line;
        self.rest.next().map_or(Ok(()), |_| Err(FormError::Unexpected { line }))
    }
}

#[cfg(test)]
mod tests;
