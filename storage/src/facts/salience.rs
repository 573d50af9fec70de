//! How much a fact matters, rated once when it is written, by rules alone.

use unicode_segmentation::UnicodeSegmentation as _;

/// Hundredths of a point from 0 to 1,000 (a salience of 0 to 10).
///
/// Begins at 4.0; a date or time of day +1.6, a number +0.9, a name after the first word +1.2; up
/// to three words -2.5, else +0.18 for each word over three, at most +1.8; what the model inferred
/// -2.0, what the user didn't say -1.0. A text without words is worth 0.
pub(crate) fn rate(text: &str, by_user: bool, inferred: bool) -> u16 {
    let words: Vec<&str> = text.split_whitespace().collect();
    let count = words.iter().map(|word| count(word)).sum();
    if count == 0 {
        return 0;
    }
    let length = match count {
        ..=3 => -250,
        _ => i32::try_from(count - 3).map_or(180, |over| over.saturating_mul(18).min(180)),
    };
    let parts = [
        (400, true),
        (160, tells_a_time(&words)),
        (90, text.chars().any(char::is_numeric)),
        (120, words.iter().skip(1).any(|word| is_name(word))),
        (length, true),
        (-200, inferred),
        (-100, !by_user),
    ];
    let sum: i32 = parts.iter().filter(|(_, holds)| *holds).map(|(points, _)| points).sum();
    u16::try_from(sum.clamp(0, 1_000)).unwrap_or(0)
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

fn tells_a_time(words: &[&str]) -> bool {
    let bare = |word: &&str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_ascii_lowercase();
    let words: Vec<String> = words.iter().map(bare).collect();
    words.iter().any(|word| is_date(word) || is_clock(word))
        || words.windows(2).any(|pair| {
            let [a, b] = pair else { return false };
            let month = |word: &String| MONTHS.contains(&&**word);
            let of_day = |word: &String| matches!(&**word, "am" | "pm" | "o'clock");
            let number = |word: &String| word.starts_with(|c: char| c.is_ascii_digit());
            (month(a) && number(b)) || (number(a) && (month(b) || of_day(b)))
        })
}

/// Three numbers, such as `2026-11-30` or `30.11.26`, or a year of our time.
fn is_date(word: &str) -> bool {
    let numbers = |separator| {
        let parts: Vec<_> = word.split(separator).collect();
        parts.len() == 3 && parts.iter().all(|part| is_number(part) && part.len() <= 4)
    };
    ['-', '/', '.'].into_iter().any(numbers)
        || (is_number(word) && matches!(word.parse(), Ok(1_900..2_100)))
}

/// `17:45`, `17:45:00`, `5pm` or `5:45pm`.
fn is_clock(word: &str) -> bool {
    let digits = word.strip_suffix("am").or_else(|| word.strip_suffix("pm"));
    let mut parts = digits.unwrap_or(word).split(':');
    let hour = parts.next().is_some_and(|hour| is_number(hour) && hour.len() <= 2);
    let minutes: Vec<_> = parts.collect();
    hour && minutes.iter().all(|part| is_number(part) && part.len() == 2)
        && (digits.is_some() || matches!(minutes.len(), 1 | 2))
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Words in what stands between spaces: a date is one, a sentence of Chinese has several.
fn count(word: &str) -> usize {
    if word.is_ascii() {
        usize::from(word.bytes().any(|byte| byte.is_ascii_alphanumeric()))
    } else {
        word.unicode_words().count()
    }
}

/// A capital and another letter: `I` isn't a name.
fn is_name(word: &str) -> bool {
    let mut letters = word.chars().skip_while(|c| !c.is_alphanumeric());
    letters.next().is_some_and(char::is_uppercase)
        && letters.next().is_some_and(char::is_alphabetic)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_rule_counts() {
        let user = |text| rate(text, true, false);
        assert_eq!(user(""), 0);
        assert_eq!(user(" ... "), 0);
        assert_eq!(user("bees are nice"), 150);
        assert_eq!(user("my bees are nice"), 400 + 18);
        assert_eq!(user("my bees like Oslo"), 400 + 18 + 120);
        assert_eq!(user("Today I like it"), 400 + 18);
        assert_eq!(user("my bees are 7"), 400 + 18 + 90);
        assert_eq!(user("my bees arrived 2026-05-01"), 400 + 18 + 90 + 160);
        assert_eq!(rate("my bees are nice", false, false), 400 + 18 - 100);
        assert_eq!(rate("my bees are nice", true, true), 400 + 18 - 200);
        assert_eq!(rate("bees", false, true), 0);
        let long = "we keep bees ".repeat(20) + "in Oslo since 1 May 2019";
        assert_eq!(user(&long), 400 + 160 + 90 + 120 + 180);
    }

    #[test]
    fn times_are_told_from_numbers() {
        let told = |text: &str| tells_a_time(&text.split_whitespace().collect::<Vec<_>>());
        for text in
            ["at 17:45.", "at 5pm", "at 5 pm", "5:30pm", "May 7", "7 May", "in 2019", "1/2/26"]
        {
            assert!(told(text), "{text}");
        }
        for text in
            ["at 17", "I may go", "7 bees", "3:2 lead", "1.2.3.4", "room 12345", "ram", "pm"]
        {
            assert!(!told(text), "{text}");
        }
    }

    /// Words are counted where a script puts no spaces.
    #[test]
    fn a_sentence_without_spaces_is_not_one_word() {
        assert_eq!(rate("\u{6211}\u{4f4f}\u{5728}\u{4e1c}\u{4eac}", true, false), 400 + 36);
    }

    proptest! {
        #[test]
        fn salience_is_within_its_range(text in any::<String>(), user: bool, inferred: bool) {
            let said = rate(&text, user, inferred);
            prop_assert!(said <= 1_000);
            prop_assert!(rate(&text, true, false) >= said);
        }
    }
}
