//! A conversation of any length, the same whenever it is held.
//!
//! Most messages are a few sentences with figures of their own. Some say something lasting about
//! the user, some ask for what was said long before, and now and then one is a page of notes.

use crate::synthetic::Random;

/// Returns the user's message of a turn.
pub(crate) fn message(turn: u64) -> String {
    let mut random = Random::new(turn.wrapping_mul(2) + 1);
    match turn {
        _ if turn.is_multiple_of(NOTES_EVERY) => notes(turn, &mut random),
        _ if turn % 10 == 5 && turn > 60 => {
            let (thing, _) = subject(turn - 50 - turn % 7);
            format!("What did I tell you about {thing}? I want to be sure before I go on.")
        }
        _ if turn % 7 == 3 => lasting(turn, &mut random),
        _ => remark(turn, &mut random),
    }
}

/// Returns the model's reply of a turn.
pub(crate) fn reply(turn: u64) -> String {
    let mut random = Random::new(turn.wrapping_mul(2));
    let (thing, place) = subject(turn);
    let mut text = format!("Thank you, I have noted what you said about {thing} {place}. ");
    for _ in 0..random.below(4) + 1 {
        text += random.pick::<&str>(&ADVICE);
        text.push(' ');
    }
    text.push_str(&format!("Shall we look at it again in {} days?", random.below(20) + 2));
    text
}

/// Returns the tool call of the model before it answers, if there is one.
pub(crate) fn call(turn: u64) -> Option<String> {
    let (thing, _) = subject(turn.saturating_sub(40).max(1));
    (turn % 25 == 5 && turn > 60).then(|| format!("<<garret-tool: lookup {thing}>>"))
}

/// Returns the subject of a turn: a thing that hardly any other turn is about, and its place.
fn subject(turn: u64) -> (String, &'static str) {
    let mut random = Random::new(turn);
    let kind = random.pick(&THINGS);
    let place = random.pick(&PLACES);
    (format!("{kind} {}", turn * 7 % 1_009), place)
}

fn remark(turn: u64, random: &mut Random) -> String {
    let (thing, place) = subject(turn);
    let mut text = format!("I looked at {thing} {place} today. ");
    for _ in 0..random.below(3) + 1 {
        let detail = random.pick(&DETAILS);
        let count = random.below(900) + 2;
        text.push_str(&detail.replace('#', &count.to_string()));
        text.push(' ');
    }
    text + "What do you think?"
}

fn lasting(turn: u64, random: &mut Random) -> String {
    let city = random.pick(&CITIES);
    let person = random.pick(&PEOPLE);
    match turn % 5 {
        0 => format!("I live in {city} now, we moved last week."),
        1 => format!("My favourite tea is {person}'s blend number {}.", turn % 90),
        2 => format!("I work as a surveyor in {city} these days."),
        3 => format!("My sister is called {person} and she lives in {city}."),
        _ => format!("I prefer short answers when {person} reads along."),
    }
}

fn notes(turn: u64, random: &mut Random) -> String {
    let mut text = format!("These are my notes number {turn}, please keep them.\n");
    for line in 1..=40 {
        let detail = random.pick(&DETAILS);
        let count = random.below(9_000) + 2;
        text.push_str(&format!("{line}. {}\n", detail.replace('#', &count.to_string())));
    }
    text
}

/// A page of notes comes as often.
const NOTES_EVERY: u64 = 60;
const THINGS: [&str; 12] = [
    "hive",
    "ledger",
    "orchard row",
    "map sheet",
    "well",
    "boat",
    "cabinet",
    "letter",
    "field",
    "lamp",
    "gate",
    "kiln",
];
const PLACES: [&str; 8] = [
    "behind the library",
    "near the pond",
    "at the harbour",
    "on the north slope",
    "by the old mill",
    "under the bridge",
    "in the attic",
    "across the river",
];
const PEOPLE: [&str; 6] = ["Mina", "Tom", "Ada", "Ravi", "Ines", "Olaf"];
const CITIES: [&str; 6] = ["Oslo", "Bergen", "Lisbon", "Graz", "Leeds", "Porto"];
const DETAILS: [&str; 10] = [
    "There were # marks along the edge.",
    "It cost # crowns to mend, which is more than I had thought.",
    "The last count was #, a little less than in spring.",
    "Somebody had painted the number # on it.",
    "It takes about # steps to walk around it.",
    "The wood is damp and smells of # different things.",
    "I measured # millimetres between the two boards.",
    "The neighbours say that it stood there for # years.",
    "We found # small shells beneath.",
    "On the list it has the number #, but the label is gone.",
];
const ADVICE: [&str; 8] = [
    "It is best to write the figure down before the weather turns.",
    "A second measurement from the other side would make it certain.",
    "I would leave it as it is until somebody can hold the ladder.",
    "Damp wood needs air more than anything else.",
    "Keep the label in a dry box, away from the light.",
    "You could ask at the harbour whether they have the old list.",
    "That is less than expected, yet nothing to worry about.",
    "Take the smaller brush, and begin at the top.",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_conversation_is_always_the_same_and_hardly_repeats_itself() {
        let all: Vec<_> = (1..=1_000).map(message).collect();
        assert_eq!(all, (1..=1_000).map(message).collect::<Vec<_>>());
        let distinct: std::collections::HashSet<_> = all.iter().collect();
        assert!(distinct.len() > 900, "{}", distinct.len());
        assert!(
            all.iter()
                .chain((1..=1_000).map(reply).collect::<Vec<_>>().iter())
                .all(|text| { !text.trim().is_empty() && !text.contains('|') })
        );
        assert_eq!((1..=1_000).filter_map(call).count(), 37);
    }
}
