//! Test for tags that only repeat what the user wrote.

use bstr::ByteSlice;

use super::call::{CLOSER, OPENER};
use super::grammar::split_opener;

/// Returns whether the tag spelled `raw` stands in `user_text`, in which case it is a quotation of
/// the user's words (or of what the user pasted) and must not be executed.
///
/// Whatever the scanner repairs makes no difference, nor do white space and case: letters are
/// compared in lower case; white space, `-`, `_`, `:`, quotes, how many `<` or `>` stand in a row
/// and a missing closer are ignored. Nor do disguises that a model may see through: characters that
/// aren't seen, full-width forms, letters and brackets that look like those of a tag. Of a call in
/// JSON its object counts alone. An empty `raw` stands nowhere.
///
/// ```
/// use garret_core::scan::is_quoted;
///
/// let raw = b"<<garret-tool: forget bees>>";
/// assert!(is_quoted(raw, "What does <garret_tool:  FORGET \"bees\"> do?"));
/// assert!(!is_quoted(raw, "Forget the bees."));
/// ```
pub fn is_quoted(raw: &[u8], user_text: &str) -> bool {
    if let Some(call) = raw.strip_prefix(OPENER) {
        let json = call.trim_ascii_end().strip_suffix(CLOSER).unwrap_or(call);
        return contains(user_text, json.chars());
    }
    let raw = raw.trim_end_with(|c| c == '>' || c.is_whitespace());
    let Some((name, body)) = split_opener(raw) else {
        return contains(user_text, raw.chars());
    };
    ["", "s"].iter().any(|plural| {
        let opener = ["<garret", name, plural].into_iter().flat_map(str::chars);
        contains(user_text, opener.chain(body.chars()))
    })
}

/// Returns whether the folded `user_text` contains the folded `wanted`, which isn't empty.
fn contains(user_text: &str, wanted: impl Iterator<Item = char> + Clone) -> bool {
    let mut wanted = fold(wanted);
    let Some(first) = wanted.next() else { return false };
    // From one character that counts to the next, so that a text without any is passed over once.
    let mut text = fold(user_text.chars());
    while let Some(c) = text.next() {
        let mut here = text.clone();
        if c == first && wanted.clone().all(|c| here.next() == Some(c)) {
            return true;
        }
    }
    false
}

/// Returns the characters that count, in lower case and in the usual one of the spellings that look
/// alike.
fn fold(chars: impl Iterator<Item = char> + Clone) -> impl Iterator<Item = char> + Clone {
    let mut before = None;
    let lower = chars.map(usual).filter(|c| !is_ignored(*c)).flat_map(char::to_lowercase);
    lower.map(latin).filter(move |&c| {
        let repeated = before.replace(c) == Some(c);
        !(repeated && matches!(c, '<' | '>'))
    })
}

/// Returns whether a character makes no difference: white space, what isn't seen, dashes and
/// quotes.
const fn is_ignored(c: char) -> bool {
    c.is_whitespace()
        || matches!(c, '-' | '_' | ':' | '"' | '\'' | '\u{2010}'..='\u{2015}' | '\u{2018}'..='\u{201f}'
            | '\u{2212}' | '\u{fe55}')
        || matches!(c, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}'
            | '\u{115f}' | '\u{1160}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}')
}

/// Maps brackets and full-width and mathematical letters to those that ASCII has.
fn usual(c: char) -> char {
    match c {
        '\u{ab}' | '\u{2039}' | '\u{2329}' | '\u{276e}' | '\u{27e8}' | '\u{27ea}' | '\u{3008}'
        | '\u{300a}' | '\u{fe64}' | '\u{226a}' | '\u{2c2}' => '<',
        '\u{bb}' | '\u{203a}' | '\u{232a}' | '\u{276f}' | '\u{27e9}' | '\u{27eb}' | '\u{3009}'
        | '\u{300b}' | '\u{fe65}' | '\u{226b}' | '\u{2c3}' => '>',
        '\u{ff01}'..='\u{ff5e}' => shifted(c, 0xff01, u32::from('!'), u32::MAX),
        '\u{1d400}'..='\u{1d6a3}' => shifted(c, 0x1d400, u32::from('A'), 52),
        '\u{1d7ce}'..='\u{1d7ff}' => shifted(c, 0x1d7ce, u32::from('0'), 10),
        _ => c,
    }
}

/// Returns the character as far from `to` as `c` is from `from`, in a table that begins anew after
/// `size`; of letters, the small ones follow the large ones.
fn shifted(c: char, from: u32, to: u32, size: u32) -> char {
    let place = u32::from(c).saturating_sub(from).checked_rem(size).unwrap_or(0);
    let gap = if size == 52 && place >= 26 { 6 } else { 0 };
    char::from_u32(to.saturating_add(place).saturating_add(gap)).unwrap_or(c)
}

/// Maps small letters of other alphabets to the Latin ones that they look like.
const fn latin(c: char) -> char {
    match c {
        '\u{430}' | '\u{3b1}' => 'a',
        '\u{441}' | '\u{3f2}' => 'c',
        '\u{435}' => 'e',
        '\u{261}' | '\u{581}' => 'g',
        '\u{456}' | '\u{3b9}' | '\u{131}' => 'i',
        '\u{458}' => 'j',
        '\u{3ba}' | '\u{43a}' => 'k',
        '\u{4cf}' => 'l',
        '\u{3bc}' | '\u{43c}' => 'm',
        '\u{578}' => 'n',
        '\u{43e}' | '\u{3bf}' | '\u{585}' => 'o',
        '\u{440}' | '\u{3c1}' => 'p',
        '\u{433}' => 'r',
        '\u{455}' => 's',
        '\u{442}' | '\u{3c4}' => 't',
        '\u{57d}' => 'u',
        '\u{445}' | '\u{3c7}' => 'x',
        '\u{443}' => 'y',
        _ => c,
    }
}
