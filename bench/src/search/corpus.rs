//! The records of a measured memory, and its queries.

use std::collections::HashSet;
use std::error::Error;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::synthetic::Random;

/// One thing that was said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) session: String,
    pub(super) speaker: String,
    /// Milliseconds since 1970.
    pub(super) at_ms: i64,
    pub(super) text: String,
}

/// One thing that is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Query {
    pub(super) text: String,
}

/// A line of `*_turns.jsonl`.
#[derive(Deserialize)]
struct Turn {
    conv: String,
    session: u64,
    timestamp: String,
    speaker: String,
    text: String,
}

/// `count` records: the turns of `data`, again and again with a fifth of the words exchanged for
/// others, or made-up sentences where there is no data.
pub(super) fn records(data: Option<&Path>, count: usize) -> Result<Vec<Record>, Box<dyn Error>> {
    let Some(data) = data else { return Ok(invented(count)) };
    let mut turns = Vec::new();
    for name in ["chitchat_turns.jsonl", "locomo_turns.jsonl"] {
        if let Ok(text) = fs::read_to_string(data.join(name)) {
            read(&text, &mut turns).map_err(|error| format!("{name}: {error}"))?;
        }
    }
    if turns.is_empty() {
        let data = data.display();
        return Err(format!("{data}: neither chitchat_turns.jsonl nor locomo_turns.jsonl").into());
    }
    Ok(repeated(&turns, count))
}

fn read(text: &str, records: &mut Vec<Record>) -> Result<(), Box<dyn Error>> {
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let turn: Turn = serde_json::from_str(line)?;
        let time: jiff::civil::DateTime = turn.timestamp.trim_end_matches('Z').parse()?;
        records.push(Record {
            session: format!("{}-{}", turn.conv, turn.session),
            speaker: turn.speaker,
            at_ms: jiff::tz::TimeZone::UTC.to_timestamp(time)?.as_millisecond(),
            text: turn.text,
        });
    }
    Ok(())
}

fn repeated(turns: &[Record], count: usize) -> Vec<Record> {
    let words: Vec<&str> = turns.iter().flat_map(|turn| turn.text.split_whitespace()).collect();
    let mut random = Random::new(11);
    let one = |number: usize| {
        let turn = &turns[number % turns.len()];
        let round = number / turns.len();
        if round == 0 || words.is_empty() {
            return turn.clone();
        }
        let mut exchange = |word| if random.below(5) == 0 { *random.pick(&words) } else { word };
        let text: Vec<_> = turn.text.split_whitespace().map(&mut exchange).collect();
        Record {
            session: format!("{}-{round}", turn.session),
            speaker: turn.speaker.clone(),
            at_ms: turn.at_ms + round as i64 * 3_600_000,
            text: text.join(" "),
        }
    };
    (0..count).map(one).collect()
}

/// Sentences of common and rare words, two speakers, twenty a session, a session a day.
fn invented(count: usize) -> Vec<Record> {
    let mut random = Random::new(13);
    let vocabulary = vocabulary(&mut random);
    let one = |number: usize| {
        let length = 5 + random.below(14);
        // Common words are common: the rank of a word is drawn evenly on a logarithmic scale.
        let ranks = vocabulary.len() as f64;
        let mut word = || &*vocabulary[(ranks.powf(random.unit()) - 1.0) as usize];
        let text: Vec<_> = (0..length).map(|_| word()).collect();
        let session = number / 20;
        let place = number % 20;
        Record {
            session: format!("day-{session}"),
            speaker: if place.is_multiple_of(2) { "Ada" } else { "Tom" }.to_owned(),
            at_ms: BEGAN_MS + session as i64 * 86_400_000 + place as i64 * 60_000,
            text: text.join(" ") + ".",
        }
    };
    (0..count).map(one).collect()
}

/// 2020-01-01T00:00Z.
const BEGAN_MS: i64 = 1_577_836_800_000;

fn vocabulary(random: &mut Random) -> Vec<String> {
    let common = "the a to and of in is was that it with on for at my we you but not so have went \
                  saw made found bought read heard house garden bee hive honey friend sister book \
                  market spring summer morning evening garden kitchen music train letter winter";
    let mut words: Vec<String> = common.split_whitespace().map(str::to_owned).collect();
    let mut known: HashSet<String> = words.iter().cloned().collect();
    let onsets = ["b", "d", "f", "gr", "k", "l", "m", "n", "p", "st", "t", "v"];
    let vowels = "aeiou";
    let vowels: Vec<_> = vowels.chars().collect();
    while words.len() < 20_000 {
        let mut word = String::new();
        for _ in 0..2 + random.below(3) {
            word.push_str(onsets[random.below(onsets.len())]);
            word.push(*random.pick(&vowels));
        }
        if known.insert(word.clone()) {
            words.push(word);
        }
    }
    words
}

/// `count` questions, each with up to five words of something that was said.
pub(super) fn queries(records: &[Record], count: usize) -> Vec<Query> {
    let mut random = Random::new(17);
    let forms =
        ["When did {n} say {w}?", "What about {w}?", "{w}", "Did {n} mention {w} last year?"];
    let mut one = |_| {
        let record = random.pick(records);
        let words: Vec<_> = record.text.split_whitespace().collect();
        let start = random.below(words.len().saturating_sub(4).max(1));
        let some: Vec<_> = words.iter().skip(start).take(5).copied().collect();
        let form = random.pick(&forms);
        Query { text: form.replace("{n}", &record.speaker).replace("{w}", &some.join(" ")) }
    };
    (0..count).map(&mut one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines;

    const LINES: &str = r#"{"conv":"c","dia_id":"D1:1","session":2,"timestamp":"2023-05-08T13:56:00Z","speaker":"Ada","text":"I keep bees behind the library"}
{"conv":"c","dia_id":"D1:2","session":2,"timestamp":"2023-05-08T13:57:00","speaker":"Tom","text":"How many hives do you have there?"}"#;

    fn temporary(name: &str, text: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(name), text).unwrap();
        folder
    }

    #[test]
    fn turns_come_first_as_they_are_and_then_with_other_words_in_other_sessions() {
        let folder = temporary("locomo_turns.jsonl", LINES);
        let records = records(Some(folder.path()), 41).unwrap();
        assert_eq!(records.len(), 41);
        assert_eq!(records[1].text, "How many hives do you have there?");
        assert_eq!(records[0].at_ms, 1_683_554_160_000);
        assert_eq!((&*records[0].session, &*records[40].session), ("c-2", "c-2-20"));
        let again: HashSet<_> = records.iter().map(|record| &record.text).collect();
        assert!(again.len() > 20, "{}", again.len());
        assert_eq!(records[40].text.split(' ').count(), records[0].text.split(' ').count());
    }

    #[test]
    fn data_without_turns_is_refused_by_name() {
        let folder = temporary("other.jsonl", "");
        let error = records(Some(folder.path()), 1).unwrap_err().to_string();
        assert!(error.contains("locomo_turns.jsonl"), "{error}");
        let folder = temporary("chitchat_turns.jsonl", "{}");
        let error = records(Some(folder.path()), 1).unwrap_err().to_string();
        assert!(error.starts_with("chitchat_turns.jsonl"), "{error}");
    }

    #[test]
    fn invented_records_are_the_same_in_each_run_and_differ_from_each_other() {
        let first = records(None, 500).unwrap();
        assert_eq!(first, records(None, 500).unwrap());
        let texts: HashSet<_> = first.iter().map(|record| &record.text).collect();
        assert_eq!(texts.len(), 500);
        assert!(first.is_sorted_by_key(|record| record.at_ms));
    }

    #[test]
    fn queries_have_words_of_what_was_said() {
        let records = records(None, 50).unwrap();
        let queries = queries(&records, 20);
        let said: HashSet<_> = records.iter().flat_map(|one| one.text.split(' ')).collect();
        for query in &queries {
            let known = |word: &str| said.contains(word.trim_end_matches('?'));
            assert!(query.text.split(' ').any(known), "{query:?}");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("queries.jsonl");
        lines::write(&path, &queries).unwrap();
        assert_eq!(lines::read::<Query>(&path).unwrap(), queries);
    }
}
