//! The use of links in finding what answers.
//!
//! No data at hand has facts with links and questions about them, so every turn is stored as a
//! fact, which has no neighbours as messages have, and linked to the turns beside it. What comes
//! right before or after a hit often answers: the links can do for facts what neighbours do for
//! messages.

use std::collections::HashMap;
use std::error::Error;

use garret_core::time::{Confidence, WallTime};
use garret_hal::media::RamMedium;
use garret_storage::search::Search;
use garret_storage::{FactSource, LinkKind, NewFact, Node, Store};

use super::History;
use super::data::{Question, Turn};

/// Asks all questions of turns that are facts, without links and with them.
pub(super) fn run(
    histories: &HashMap<&str, History<'_>>,
    questions: &[Question],
) -> Result<(), Box<dyn Error>> {
    for linked in [false, true] {
        let mut found = Vec::with_capacity(questions.len());
        for history in histories.values() {
            let facts = Facts::of(&history.said, linked)?;
            for question in questions {
                if history.said.first().is_some_and(|turn| turn.conv == question.conv) {
                    found.push((question, facts.ask(question)?));
                }
            }
        }
        let title = if linked { "linked to those beside them" } else { "without links" };
        super::print(&format!("turns as facts, {title}"), found.into_iter());
    }
    Ok(())
}

/// The turns of a conversation as facts.
struct Facts<'a> {
    store: Store,
    /// Turns by the ids of their facts.
    turns: HashMap<String, &'a str>,
}

impl<'a> Facts<'a> {
    fn of(said: &[&'a Turn], linked: bool) -> Result<Self, Box<dyn Error>> {
        let store = Store::on_medium("links", Box::new(RamMedium::new()))?;
        let mut turns = HashMap::new();
        let mut before = None;
        for turn in said {
            let unix_ms = turn.at_ms()?;
            let fact = NewFact {
                text: &turn.whole(),
                source: FactSource::from_name(&*turn.speaker),
                subject: Some(&turn.speaker),
                predicate: Some("said"),
                valid_at: Some(unix_ms),
                salience: Some(5.0),
                ..NewFact::default()
            };
            let at = WallTime { unix_ms, confidence: Confidence::Good };
            let id = store.add_fact(&fact, at)?.id;
            if let Some((session, before)) = before
                && linked
                && session == turn.session
                && before != id
            {
                store.link(Node::Fact(before), LinkKind::Related, Node::Fact(id))?;
            }
            before = Some((turn.session, id));
            turns.insert(id.to_string(), &*turn.dia_id);
        }
        Ok(Self { store, turns })
    }

    fn ask(&self, question: &Question) -> Result<Vec<&'a str>, Box<dyn Error>> {
        let found = self.store.find(&Search::new(&question.question, 10))?;
        Ok(found.hits.iter().filter_map(|hit| self.turns.get(&hit.id).copied()).collect())
    }
}
