//! Stored text that is to be shown to people.

use std::borrow::Cow;

/// Text that can't drive the terminal it is printed on: control characters but line breaks and
/// tabs, which a model may emit to imitate the program, are shown as pictures of themselves.
pub fn tame(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_wild) {
        return text.into();
    }
    text.chars().map(|c| if is_wild(c) { picture(c) } else { c }).collect::<String>().into()
}

fn is_wild(c: char) -> bool {
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
        assert_eq!(tame("a\u{1b}[2Jb\n\tc"), "a\u{241b}[2Jb\n\tc");
        assert_eq!(tame("plain"), "plain");
        assert_eq!(tame("\u{9b}1m\u{7f}"), "\u{fffd}1m\u{2421}");
    }
}
