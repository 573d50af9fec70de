//! Forms that a companion fills in, line by line.
//!
//! A form is declared once. Each of its lines begins with a label and has cells; from the declaration
//! come the GBNF grammar, in which every cell, every count of lines and all white space is bounded,
//! and the reader, which accepts whatever the grammar allows.
//!
//! ```
//! use garret::anticipate::reading::Reading;
//! use garret::companion::form::{Form, Size};
//!
//! let answer = "plain: 20\nguess: 70 | too warm | a refund\nguess: 20 | warm | a new one\n\
//!               guess: 10 | it is | advice\nreally: May I send it back?\nnext: none\n";
//! let read = Reading::read(answer, Size::Core)?;
//! assert_eq!(read.guesses[1].intent.as_str(), "a new one");
//! assert!(Reading::read("plain: perhaps\n", Size::Core).is_err());
//! assert!(Reading::grammar(Size::Core).contains("line1{3,3}"));
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

/// The amount that a model is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Size {
    /// The lines that small models manage.
    #[default]
    Core,
    /// All lines.
    Extended,
}

impl Size {
    /// Returns the size for a model by its parameters and its window; one that doesn't tell how many
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

/// A cell: the text between two bars of a line.
pub trait Cell: Sized {
    /// Appends its GBNF.
    fn grammar(out: &mut String);

    /// Reads what the grammar allows; `None` for anything else.
    fn read(text: &str) -> Option<Self>;
}

/// A line of a form, without its label and its end.
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

/// The error of an answer that doesn't follow its form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormError {
    /// Too few lines of a kind.
    #[error("line {line}: {found} lines `{label}` where at least {least} are expected")]
    Missing {
        /// Number of the line, from 1.
        line: usize,
        /// The label.
        label: &'static str,
        /// Lines of the kind that there are.
        found: usize,
        /// Lines of the kind that there must be.
        least: usize,
    },
    /// A line whose cells can't be read.
    #[error("line {line}: what follows `{label}` isn't as declared")]
    Cells {
        /// Number of the line, from 1.
        line: usize,
        /// The label.
        label: &'static str,
    },
    /// A line that is too many or begins with no label.
    #[error("line {line}: it isn't expected there")]
    Unexpected {
        /// Number of the line, from 1.
        line: usize,
    },
}

/// Text of 1 to `MOST` characters on one line, without a bar and without spaces around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text<const MOST: usize>(String);

impl<const MOST: usize> Text<MOST> {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the text, owned.
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

/// Control characters and ends of lines beside those of ASCII, as a GBNF range.
const OTHER: &str = r"\x7F-\x9F\u2028\u2029";

const fn is_barred(c: char) -> bool {
    matches!(c, '\0'..='\x1f' | '|' | '\x7f'..='\u{9f}' | '\u{2028}' | '\u{2029}')
}

/// A whole number from 0 to 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u8);

impl Percent {
    /// Returns the number.
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

/// Declares a line: its label and its cells, as a struct.
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
                $(if $crate::companion::form::asked($crate::companion::form::form!(@size $size), size) {
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
                    $($line: if $crate::companion::form::asked($crate::companion::form::form!(@size $size), size) {
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

pub(crate) use {form, row};

/// Returns whether lines declared for `declared` are asked for in a form of `size`.
pub(crate) fn asked(declared: Size, size: Size) -> bool {
    declared == Size::Core || size == Size::Extended
}

/// Appends the GBNF of `cells` and the bars between them.
pub(crate) fn write_cells(out: &mut String, cells: &[fn(&mut String)]) {
    for (index, cell) in cells.iter().enumerate() {
        if index > 0 {
            let _ = write!(out, " \"{BAR}\" ");
        }
        cell(out);
    }
}

/// A grammar as its lines are declared.
#[derive(Debug, Default)]
pub(crate) struct Grammar {
    root: String,
    rules: String,
    count: usize,
}

impl Grammar {
    /// Adds `least` to `most` lines of one kind.
    pub(crate) fn lines<R: Row>(&mut self, least: usize, most: usize) {
        let rule = self.count;
        let label = R::LABEL;
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

    /// Returns the grammar.
    pub(crate) fn finish(self) -> String {
        format!("root ::={}\n{}", self.root, self.rules)
    }
}

/// An answer as its lines are read.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    rest: std::iter::Peekable<std::str::Lines<'a>>,
    line: usize,
}

impl<'a> Lines<'a> {
    /// Begins with all lines of `text`.
    pub(crate) fn new(text: &'a str) -> Self {
        Self { rest: text.trim_end_matches([' ', '\n']).lines().peekable(), line: 1 }
    }

    /// Reads the next `least` to `most` lines of one kind.
    ///
    /// # Errors
    /// [`FormError::Missing`] and [`FormError::Cells`].
    pub(crate) fn rows<R: Row>(&mut self, least: usize, most: usize) -> Result<Vec<R>, FormError> {
        let label = R::LABEL;
        let mut rows = Vec::new();
        let mut seen = 0;
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
    pub(crate) fn finish(mut self) -> Result<(), FormError> {
        let line = self.line;
        self.rest.next().map_or(Ok(()), |_| Err(FormError::Unexpected { line }))
    }
}

#[cfg(test)]
mod tests;
