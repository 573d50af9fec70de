//! The manual: the guide for users, the map of the code, its words, and the reasons behind both.
//!
//! - [`guide`]: every command, for those who use it.
//! - [`architecture`]: what holds, how a turn runs, what each room is for and what goes where.
//! - [`glossary`]: every term, with one meaning each.
//! - [`decisions`]: why it is built as it is, as questions and answers.
//! - [`contributing`]: set-up, tests, where code goes, recipes for common changes.
//! - [`style`]: the rules of this tree.
//!
//! Each page is a Markdown file beside this module, so that it reads the same in the repository, in
//! an editor and in `cargo doc`. Paths in it are those of the repository; `tests/hygiene.py` checks
//! that they exist.

/// Declares a page. Of two definitions of a link the first counts: here the page of the
/// documentation, in the repository the file that the page itself names.
macro_rules! page {
    ($name:ident, $file:literal) => {
        #[doc = "[architecture]: crate::manual::architecture"]
        #[doc = "[contributing]: crate::manual::contributing"]
        #[doc = "[decisions]: crate::manual::decisions"]
        #[doc = "[glossary]: crate::manual::glossary"]
        #[doc = "[guide]: crate::manual::guide"]
        #[doc = ""]
        #[doc = include_str!($file)]
        pub mod $name {}
    };
}

page!(architecture, "architecture.md");
page!(contributing, "contributing.md");
page!(decisions, "decisions.md");
page!(glossary, "glossary.md");
page!(guide, "guide.md");
page!(style, "style.md");
