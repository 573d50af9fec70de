//! Stored text made harmless for the terminal that shows it.

use std::borrow::Cow;

/// Returns `text` with pictures in place of its control characters, but for line breaks and tabs, so
/// that it can't drive the terminal it is printed on: a model may emit them to imitate the program.
pub fn escape_control(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_harmful) {
        return text.into();
    }
    text.chars().map(|c| if is_harmful(c) { picture(c) } else { c }).collect::<String>().into()
}

fn is_harmful(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
}

fn picture(c: char) -> char {
    match u32::from(c) {
        code @ 0..0x20 => char::from_u32(0x2400 + code).unwrap_or('\u{fffd}'),
        0x7f => '\u{2421}',
        _ => '\u{fffd}',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_shown_not_obeyed() {
        assert_eq!(escape_control("a\u{1b}[2Jb\n\tc"), "a\u{241b}[2Jb\n\tc");
        assert_eq!(escape_control("plain"), "plain");
        assert_eq!(escape_control("\u{9b}1m\u{7f}"), "\u{fffd}1m\u{2421}");
    }
}
