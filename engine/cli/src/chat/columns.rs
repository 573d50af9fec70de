//! Two texts side by side.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The lines of two texts in columns of `width` cells each, `BETWEEN` them.
pub(super) fn side_by_side(left: &str, right: &str, width: usize) -> String {
    let left = wrapped(left, width);
    let right = wrapped(right, width);
    let mut text = String::new();
    for row in 0..left.len().max(right.len()) {
        let cell = |column: &[String]| column.get(row).cloned().unwrap_or_default();
        let left = cell(&left);
        let right = cell(&right);
        let pad = " ".repeat(width.saturating_sub(left.width()));
        text += [&*left, &*pad, BETWEEN, &*right].concat().trim_end();
        text.push('\n');
    }
    text
}

/// A line between two rows of such columns.
pub(super) fn rule(width: usize) -> String {
    let dashes = "-".repeat(width);
    format!("{dashes}-+-{dashes}\n")
}

/// The width of each of two columns of a screen of `cells`.
pub(super) const fn width(cells: usize) -> usize {
    cells.saturating_sub(BETWEEN.len()) / 2
}

/// The lines of `text`, each of at most `width` cells: broken between words where there are some,
/// and elsewhere where there are none.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    text.lines().flat_map(|line| wrapped_line(&line.replace('\t', "    "), width)).collect()
}

fn wrapped_line(line: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = line;
    loop {
        let fitting = fitting(rest, width);
        let (head, tail) = rest.split_at(fitting);
        if tail.is_empty() {
            lines.push(head.trim_end().to_owned());
            return lines;
        }
        // White space at the beginning is no place to break.
        let indent = head.len() - head.trim_start().len();
        let at_space = tail.starts_with(' ').then_some(fitting);
        let space = at_space.or_else(|| head.rfind(' ').filter(|at| *at > indent));
        let (head, tail) = rest.split_at(space.unwrap_or(fitting));
        lines.push(head.trim_end().to_owned());
        rest = if space.is_some() { tail.trim_start() } else { tail };
    }
}

/// Bytes of the longest beginning of `line` that has at most `width` cells, and at least one
/// character.
fn fitting(line: &str, width: usize) -> usize {
    let mut cells = 0;
    let over = line.char_indices().find(|(at, c)| {
        cells += c.width().unwrap_or(0);
        cells > width && *at > 0
    });
    over.map_or(line.len(), |(at, _)| at)
}

/// The end of `text`, on one line of at most `width` cells.
pub(super) fn tail(text: &str, width: usize) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut cells = 0;
    let from = line.char_indices().rev().take_while(|(_, c)| {
        cells += c.width().unwrap_or(0);
        cells <= width
    });
    let from = from.last().map_or(line.len(), |(at, _)| at);
    line.get(from..).unwrap_or_default().to_owned()
}

const BETWEEN: &str = " | ";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_stand_side_by_side() {
        let text = side_by_side("Bees live here.\n\n  ok", "Yes", 8);
        assert_eq!(text, "Bees     | Yes\nlive     |\nhere.    |\n         |\n  ok     |\n");
        assert_eq!(rule(3), "----+----\n");
    }

    #[test]
    fn wide_characters_take_two_cells() {
        assert_eq!(wrapped("\u{871c}\u{8702}\u{871c}", 4), ["\u{871c}\u{8702}", "\u{871c}"]);
        assert_eq!(tail("ab\n\u{871c}", 4), "b \u{871c}");
    }

    #[test]
    fn a_code_keeps_its_indent() {
        assert_eq!(wrapped("    let x = 1;", 10), ["    let x", "= 1;"]);
        assert_eq!(wrapped("abcdefgh", 3), ["abc", "def", "gh"]);
    }

    proptest! {
        #[test]
        fn no_line_is_too_wide_and_no_word_is_lost(text in "(\\PC|[a-z]{0,9} |\n){0,40}", width in 2_usize..30) {
            let lines = wrapped(&text, width);
            prop_assert!(lines.iter().all(|line| line.width() <= width), "{lines:?}");
            let visible = |text: &str| text.replace(char::is_whitespace, "");
            prop_assert_eq!(visible(&lines.concat()), visible(&text));
            prop_assert!(tail(&text, width).width() <= width);
        }
    }
}
