//! Wishes and defects of tags.

/// Wish of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagKind<'a> {
    /// Runs a tool.
    Tool {
        /// The tool, as the model spelled it: compare without regard to ASCII case. Never empty.
        verb: &'a str,
        /// Payload of the tool; can be empty.
        payload: &'a str,
    },
    /// Starts companions; none if no name was known.
    Companions(Companions),
    /// Runs a tool, in the form of the model's own template.
    Call {
        /// An object with the name of the tool and its arguments, as the model wrote it: perhaps
        /// not valid JSON.
        json: &'a str,
    },
}

/// Defect of a stripped tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TagDefect {
    /// A tag that isn't closed before the output ended, or a blank line or another tag began.
    Unclosed,
    /// A tool's tag without a verb.
    NoVerb,
    /// A tag that isn't UTF-8.
    NotUtf8,
}

/// A companion a model can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Companion {
    /// Compactor, which summarises what leaves the window: `compact`.
    Compact,
    /// Inferrer, which works out what the user is after: `infer`.
    Infer,
}

impl Companion {
    /// Every companion.
    pub const ALL: [Self; 2] = [Self::Compact, Self::Infer];

    /// Returns the name in a tag.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Compact => "compact",
            Self::Infer => "infer",
        }
    }
}

/// A set of companions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Companions {
    compact: bool,
    infer: bool,
}

impl Companions {
    /// Returns whether `companion` is in the set.
    pub const fn contains(self, companion: Companion) -> bool {
        match companion {
            Companion::Compact => self.compact,
            Companion::Infer => self.infer,
        }
    }

    /// Returns the set with `companion` in it.
    #[must_use]
    pub const fn with(mut self, companion: Companion) -> Self {
        match companion {
            Companion::Compact => self.compact = true,
            Companion::Infer => self.infer = true,
        }
        self
    }

    /// Returns whether nothing is in the set.
    pub fn is_empty(self) -> bool {
        self.iter().next().is_none()
    }

    /// Returns the companions in the set.
    pub fn iter(self) -> impl Iterator<Item = Companion> {
        Companion::ALL.into_iter().filter(move |&companion| self.contains(companion))
    }

    /// Returns the set of the known names in `list`, whatever separates them.
    pub(super) fn parse(list: &str) -> Self {
        list.split(|c: char| !c.is_alphanumeric())
            .filter_map(|name| {
                Companion::ALL.into_iter().find(|one| one.as_str().eq_ignore_ascii_case(name))
            })
            .fold(Self::default(), Self::with)
    }
}
