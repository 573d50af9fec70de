//! Statements of users about themselves and what is theirs, as relation and value.

use std::ops::Range;

use super::phrases::{
    ADVERBS, JOINS, NO_THING, NO_TRAIT, NOT_SAID, PHRASES, Phrase, STOPS, TRADES, TRAITS, TURNS,
    Value, WIDE,
};
use garret_language::scripts::is_unspaced;
use garret_language::sentences::{Sentence, Text, Word, among};

/// Something that a user said of a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The subject: `user`, or a thing of the user's or of the world.
    pub subject: String,
    /// The relation, such as `lives_in`.
    pub relation: String,
    /// The value, in the user's words.
    pub object: String,
    /// The bytes of the value in the message.
    pub object_at: Range<usize>,
    /// The bytes of the words that make the statement, value included.
    pub quote_at: Range<usize>,
    /// The statement denies, or says that something is no more.
    pub ended: bool,
    /// The end of the value is plain; otherwise it may reach too far.
    pub plain: bool,
}

/// Returns whether a word says what somebody is, such as `vegetarian`.
pub fn is_trait(word: &str) -> bool {
    among(TRAITS, &word.to_lowercase())
}

/// Finds the statements of a text, at most [`MAX_STATEMENTS`].
pub(super) fn find(text: &Text<'_>) -> Vec<Statement> {
    let mut found = Vec::new();
    for sentence in text.sentences.iter().filter(|sentence| !sentence.question) {
        let words = &sentence.words;
        let mut at = 0;
        while at < words.len() {
            let statement = phrased(text.whole, words, at).or_else(|| owned(text.whole, words, at));
            match statement {
                Some((statement, next)) => {
                    found.push(statement);
                    at = next.max(at + 1);
                }
                None => at += 1,
            }
        }
        found.extend(wide(text.whole, sentence));
        if found.len() >= MAX_STATEMENTS {
            break;
        }
    }
    found.truncate(MAX_STATEMENTS);
    found
}

/// Reads a statement by a phrase that begins at a word; with it, the word after it.
fn phrased(whole: &str, words: &[Word], at: usize) -> Option<(Statement, usize)> {
    if at > 0 && words.get(at - 1).is_some_and(|word| among(NOT_SAID, &word.text)) {
        return None;
    }
    let denied = words.get(at.saturating_sub(2)..at).unwrap_or_default();
    let denied = denied.iter().any(|word| matches!(&*word.text, "no" | "nunca"));
    PHRASES.iter().find_map(|phrase| {
        let (after, turned) = matches(words, at, phrase)?;
        let value = value(whole, words, after, phrase.value)?;
        let relation = relation(phrase.relation, &value.object)?;
        let says_no = phrase.words.starts_with("i quit") || phrase.ended;
        // "No, I live in Oslo" affirms; Spanish "no vivo en" denies.
        let denied = denied
            && !phrase.words.starts_with("i ")
            && !phrase.words.starts_with("i|")
            && !phrase.words.starts_with("my ");
        let statement = Statement {
            subject: "user".to_owned(),
            relation: relation.to_owned(),
            object_at: value.at.clone(),
            quote_at: words.get(at)?.at.start..value.at.end,
            object: value.object,
            ended: says_no ^ (turned || denied),
            plain: value.plain,
        };
        Some((statement, value.next))
    })
}

/// Matches a phrase at a word; returns the word after it, and whether it is turned round.
fn matches(words: &[Word], at: usize, phrase: &Phrase) -> Option<(usize, bool)> {
    let mut at = at;
    let mut turned = false;
    for (nth, choices) in phrase.words.split(' ').enumerate() {
        let mut skipped = 0;
        loop {
            let word = words.get(at)?;
            if choices.split('|').any(|choice| choice == word.text) {
                break;
            }
            let turns = among(TURNS, &word.text);
            let skip = nth > 0 && skipped < 3 && (turns || among(ADVERBS, &word.text));
            if !skip || words.get(at.checked_sub(1)?)?.ends_clause {
                return None;
            }
            turned |= turns;
            skipped += 1;
            at += 1;
        }
        at += 1;
    }
    // After the whole phrase: "je n'habite plus a", "ich mag keine", "I am not a".
    if words.get(at).is_some_and(|word| matches!(&*word.text, "keine" | "keinen" | "pas")) {
        turned = true;
        at += 1;
    }
    Some((at, turned))
}

struct FoundValue {
    object: String,
    at: Range<usize>,
    next: usize,
    plain: bool,
}

/// Reads the value that begins at a word.
fn value(whole: &str, words: &[Word], from: usize, kind: Value) -> Option<FoundValue> {
    let mut start = from;
    while words
        .get(start)
        .is_some_and(|word| among(ARTICLES, &word.text) || among(ADVERBS, &word.text))
    {
        start += 1;
    }
    if start > 0 && words.get(start - 1).is_some_and(|word| word.ends_clause) {
        return None;
    }
    if kind == Value::Age {
        return age(whole, words, start);
    }
    let first = words.get(start)?;
    if kind == Value::Trait && !among(TRAITS, &first.text) {
        return None;
    }
    let wide = whole.get(first.at.clone())?.chars().all(is_unspaced);
    if kind == Value::Name && !first.capital && !wide {
        return None;
    }
    let refused = kind == Value::Thing || kind == Value::Any || kind == Value::Place;
    if refused && !first.capital && among(NO_THING, &first.text) {
        return None;
    }
    let mut end = start;
    let mut plain = false;
    while let Some(word) = words.get(end) {
        let joins = among(JOINS, &word.text) && matches!(kind, Value::Any | Value::Thing);
        let stops = among(STOPS, &word.text) && !joins;
        let named = kind != Value::Name || word.capital || wide;
        if stops || !named {
            plain = true;
            break;
        }
        end += 1;
        if word.ends_clause || end == words.len() {
            plain = true;
            break;
        }
        let most = if kind == Value::Trait { 1 } else { MAX_VALUE_WORDS };
        if end - start == most {
            plain |= kind == Value::Trait;
            break;
        }
    }
    let last = words.get(end.checked_sub(1)?).filter(|_| end > start)?;
    let at = first.at.start..last.at.end;
    let joins = words.get(start..end)?.iter().any(|word| among(JOINS, &word.text));
    let plain = plain && !joins && end - start <= PLAIN_WORDS;
    Some(FoundValue { object: tidy(whole.get(at.clone())?), at, next: end, plain })
}

/// Reads a number of years that a person can have, and is said to: `34`, `34 years old`.
fn age(whole: &str, words: &[Word], at: usize) -> Option<FoundValue> {
    let word = words.get(at)?;
    let years: u8 = word.text.parse().ok()?;
    let unit = words.get(at + 1);
    let named = unit.is_some_and(|unit| among(YEARS, &unit.text));
    let bare = word.ends_clause || at + 1 == words.len();
    let begins_i = !matches!(&*words.get(at.checked_sub(1)?)?.text, "tengo" | "ai");
    if !(1..=120).contains(&years) || !(named || (bare && begins_i)) {
        return None;
    }
    let range = word.at.clone();
    Some(FoundValue {
        object: whole.get(range.clone())?.to_owned(),
        at: range,
        next: at + 1,
        plain: true,
    })
}

/// Reads `my dog is called Rex`, `my dog's name is Rex`, `my favourite colour is green`, `the meeting is at
/// four`.
fn owned(whole: &str, words: &[Word], at: usize) -> Option<(Statement, usize)> {
    let opening = words.get(at)?;
    let mine = among(OWNERS, &opening.text);
    if !mine && &*opening.text != "the" {
        return None;
    }
    let rest = words.get(at + 1..)?;
    let is = rest.iter().take(5).position(|word| among(COPULAS, &word.text))?;
    let subject = rest.get(..is)?.iter().filter(|word| !among(ADVERBS, &word.text));
    let mut subject: Vec<&str> = subject.map(|word| &*word.text).collect();
    if subject.ends_with(&["'s", "name"]) {
        subject.truncate(subject.len() - 2);
    }
    let clean = |word: &&str| word.chars().all(|c| c.is_alphanumeric() || c == '-');
    let is_trait = matches!(subject.len(), 1..=3)
        && subject.iter().all(clean)
        && !subject.iter().any(|word| among(NO_TRAIT, word));
    if !is_trait {
        return None;
    }
    let mut from = at + 1 + is + 1;
    let mut turned = false;
    while let Some(word) = words.get(from) {
        let turns = among(TURNS, &word.text);
        if !turns && !among(NAMING, &word.text) && !among(ADVERBS, &word.text) {
            break;
        }
        turned |= turns;
        from += 1;
    }
    let value = value(whole, words, from, Value::Any)?;
    let text = whole.get(value.at.clone())?;
    let exact = text.chars().any(|c| c.is_ascii_digit())
        || words.get(from).is_some_and(|word| word.capital || is_time(&word.text));
    let favourite = mine && matches!(subject.first(), Some(&"favourite" | &"favorite"));
    if !exact && !favourite {
        return None;
    }
    let spelled = subject.join("_").replace("favorite", "favourite");
    let (subject, relation) = match mine {
        true => ("user".to_owned(), spelled),
        false => (subject.join(" "), "is".to_owned()),
    };
    let statement = Statement {
        subject,
        relation,
        object_at: value.at.clone(),
        quote_at: opening.at.start..value.at.end,
        object: value.object,
        ended: turned,
        plain: value.plain,
    };
    Some((statement, value.next))
}

/// Reads a statement in a script without spaces.
fn wide(whole: &str, sentence: &Sentence) -> Option<Statement> {
    let range = sentence.range()?;
    let text = whole.get(range.clone())?;
    if !text.chars().any(is_unspaced) {
        return None;
    }
    WIDE.iter().find_map(|phrase| {
        let end = text.find(phrase.after)?;
        let head = text.get(..end)?;
        let cut = phrase
            .before
            .iter()
            .filter_map(|before| head.rfind(before).map(|at| at + before.len()));
        let must_cut = phrase.relation == "name";
        let start = cut.max().or((!must_cut).then_some(0))?;
        let object = head.get(start..)?.trim();
        if object.is_empty() || object.chars().count() > MAX_UNSPACED_LETTERS {
            return None;
        }
        let start = end - head.get(start..)?.trim_start().len();
        let at = range.start + start..range.start + start + object.len();
        Some(Statement {
            subject: "user".to_owned(),
            relation: phrase.relation.to_owned(),
            object: object.to_owned(),
            object_at: at.clone(),
            quote_at: range.clone(),
            ended: WIDE_NO.split(", ").any(|no| text.contains(no)),
            plain: true,
        })
    })
}

/// Returns the relation of a value: what somebody is may be their trade.
fn relation(relation: &'static str, object: &str) -> Option<&'static str> {
    if relation != "is_a" {
        return Some(relation);
    }
    let last = object.split(' ').next_back()?.to_lowercase();
    match TRADES.split(", ").any(|ending| last.ends_with(ending)) {
        true if !among(NOT_TRADES, &last) => Some("occupation"),
        _ => Some("about"),
    }
}

fn is_time(word: &str) -> bool {
    among(WEEKDAYS, word) || word.starts_with(|c: char| c.is_ascii_digit())
}

/// Returns a value without the punctuation and the breaks within it.
fn tidy(object: &str) -> String {
    let object = object.split_whitespace().collect::<Vec<_>>().join(" ");
    object.trim_matches(|c: char| matches!(c, '.' | ',' | ';' | ':' | '!' | '\'')).to_owned()
}

const ARTICLES: &str = "a, an, the, my, der, die, den, eine, einen, la, el, le, les";
const OWNERS: &str = "my, our, mein, meine, mon, mi";
const COPULAS: &str = "is, are, was, ist, est, es";
const NAMING: &str = "called, named, on, at, in, for, due, due on, set";
const YEARS: &str = "years, year, yo, jahre, ans, a\u{f1}os";
const WEEKDAYS: &str = "monday, tuesday, wednesday, thursday, friday, saturday, sunday, noon, midnight, tomorrow, \
     today, tonight";
const NOT_TRADES: &str = "person, mother, father, sister, brother, daughter, lover, beginner, fighter, vegetarian, \
     christian, member, foster, sufferer, giant";
const WIDE_NO: &str = "\u{c54a}, \u{c548} , \u{306a}\u{3044}, \u{307e}\u{305b}\u{3093}";
/// Most statements of a message.
const MAX_STATEMENTS: usize = 8;
/// Most words of a value.
const MAX_VALUE_WORDS: usize = 8;
/// Words of a value beyond which its end isn't plain.
const PLAIN_WORDS: usize = 4;
/// Most letters of a value in a script without spaces.
const MAX_UNSPACED_LETTERS: usize = 16;
