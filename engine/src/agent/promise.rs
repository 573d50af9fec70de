//! Promised lookups: replies that promise to look something up, in English.

/// Returns whether `text` is short and ends in a promise to look something up: "Let me check that for you."
pub(super) fn is_promise(text: &str) -> bool {
    let text = text.trim().to_lowercase().replace('\u{2019}', "'");
    if text.len() > LONGEST || text.ends_with('?') {
        return false;
    }
    let sentences = text
        .split_inclusive(['.', '!', '\n', ':'])
        .filter(|part| part.contains(char::is_alphabetic));
    sentences.rev().take(2).any(promises)
}

fn promises(sentence: &str) -> bool {
    BEGINNINGS.iter().any(|beginning| {
        sentence.match_indices(beginning).any(|(at, _)| {
            let rest = sentence.get(at + beginning.len()..).unwrap_or_default();
            let words = rest.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
            words.take(NEAR).take_while(|word| *word != "know").any(|word| WORK.contains(&word))
        })
    })
}

const BEGINNINGS: [&str; 8] = [
    "let me ",
    "i'll ",
    "i will ",
    "i'm going to ",
    "i am going to ",
    "allow me to ",
    "one moment",
    "give me a moment",
];
const WORK: [&str; 9] =
    ["look", "check", "search", "find", "retrieve", "lookup", "grep", "expand", "recall"];
/// Words between the beginning of a promise and what is promised.
const NEAR: usize = 4;
/// Bytes of a reply that is more than a promise.
const LONGEST: usize = 400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promises_are_told_from_answers() {
        for text in [
            "Let me look that up.",
            "Let me check that for you!",
            "Sure. I'll search our conversation for it.",
            "I\u{2019}ll quickly look that up for you. One moment.",
            "One moment while I look...",
        ] {
            assert!(is_promise(text), "{text}");
        }
        for text in [
            "Let me know if you find it.",
            "Let me know.",
            "Your sister is called Ada.",
            "I will always be here.",
            "Shall I look it up? Let me look it up?",
            "I looked it up: it is Ada.",
            "",
        ] {
            assert!(!is_promise(text), "{text}");
        }
        assert!(!is_promise(&("It is a long story. ".repeat(30) + "Let me look that up.")));
    }
}
