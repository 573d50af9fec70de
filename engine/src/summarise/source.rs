//! What is summed up, as a text.

use std::fmt::Write;

use garret_core::id::TurnSeq;
use garret_core::prompt::{EncodeError, PromptEncoder};
use garret_core::shorten::shorten;
use garret_storage::SummaryId;

use crate::agent::quote::{is_break, plain};
use crate::agent::remembered::{FOOT, HEAD};
use crate::local_time;

/// A summary to be made.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// 0 for one of turns.
    pub(crate) depth: u8,
    /// The first turn that it covers.
    pub(crate) from: TurnSeq,
    /// The last one.
    pub(crate) to: TurnSeq,
    /// The summaries that it sums up; none for one of turns.
    pub(crate) sources: Vec<SummaryId>,
    /// What was said, or the texts of the summaries, in order.
    pub(crate) lines: Vec<Line>,
    /// Tokens of all lines.
    pub(crate) source_tokens: u32,
    /// When the first of it was said, in milliseconds since 1970, if that is known.
    pub(crate) earliest_ms: Option<i64>,
    /// When the last of it was.
    pub(crate) latest_ms: Option<i64>,
}

/// Something that was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// In which turn.
    pub(crate) turn: TurnSeq,
    /// By whom; `notes` for a summary.
    pub(crate) speaker: String,
    /// When, in milliseconds since 1970, if that is known.
    pub(crate) at_ms: Option<i64>,
    /// The words.
    pub(crate) text: String,
}

/// The lines as text, each with its time, turn and speaker; one of more than `most` tokens is shown
/// in part. What was pasted and means nothing to a reader is left out.
pub(crate) fn transcript<E: PromptEncoder>(
    encoder: &mut E,
    lines: &[Line],
    most: usize,
) -> Result<String, EncodeError<E::Error>> {
    let mut text = String::new();
    for line in lines {
        let words = readable(&line.text);
        let shown = shorten(encoder, &words, most)?;
        let at = line.at_ms.and_then(minute).map(|at| at + " | ").unwrap_or_default();
        // A String takes whatever is written to it.
        let _ = write!(text, "[{at}turn {} | {}] ", line.turn, plain(&line.speaker));
        // No line of what was said may look like the head of another one.
        let words: String = shown.content().parts().collect();
        for (number, words) in words.split(is_break).enumerate() {
            text.push_str(if number > 0 { "\n> " } else { "" });
            text.push_str(words);
        }
        if shown.left_out() > 0 {
            let _ = write!(text, " [the whole of it: turn {}]", line.turn);
        }
        text.push('\n');
    }
    Ok(text)
}

/// `text` without blocks that were put into a prompt and without long runs of encoded data.
fn readable(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, block)) = rest.split_once(HEAD.trim_end())
        && let Some((_, after)) = block.split_once(FOOT.trim_end())
    {
        words.push_str(before);
        rest = after;
    }
    words.push_str(rest);
    let encoded = |word: &str| {
        let data = word.starts_with("data:") && word.contains(";base64,");
        data || (word.len() >= ENCODED_BYTES && word.bytes().all(is_encoded))
    };
    if !words.split_whitespace().any(encoded) {
        return words;
    }
    let parts = words.split_inclusive(char::is_whitespace);
    let shown = parts.map(|part| match part.trim_end() {
        word if encoded(word) => "(data) ",
        _ => part,
    });
    shown.collect()
}

/// No word of any language is as long, and a line of base64 is hardly shorter.
const ENCODED_BYTES: usize = 76;

const fn is_encoded(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_')
}

fn minute(ms: i64) -> Option<String> {
    local_time::format(ms, "%Y-%m-%d %H:%M")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_data_and_injected_blocks_are_left_out() {
        let picture = format!("Look: data:image/png;base64,{} nice?", "iVBORw0KGgo".repeat(40));
        assert_eq!(readable(&picture), "Look: (data) nice?");
        assert_eq!(readable(&"QUJD".repeat(30)), "(data) ");
        let block = [HEAD, "> old\n", FOOT, "Hi."].concat();
        assert_eq!(readable(&block).trim(), "Hi.");
        // Whoever writes the beginning of one alone doesn't hide what follows.
        let begun = [HEAD, "My bees swarmed."].concat();
        assert_eq!(readable(&begun), begun);
        assert_eq!(readable(&[&block, &*begun].concat()).trim(), ["Hi.", &begun].concat());
        let prose = "Donaudampfschifffahrtsgesellschaftskapitaen  says\nhello ";
        assert_eq!(readable(prose), prose);
    }
}
