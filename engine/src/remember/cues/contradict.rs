//! Contradictions: statements that can't be true beside what is known.

use garret_storage::facts::is_multi_valued;

use super::statements::Statement;

/// A fact that is known to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownFact<'a> {
    /// The subject of the fact.
    pub subject: &'a str,
    /// The relation, such as `lives_in`.
    pub relation: &'a str,
    /// The value.
    pub object: &'a str,
}

/// Returns the first known fact that `statement` can't be true beside: one of the same subject and relation,
/// with another value where there can be one only, or with the same value that is denied now; or its
/// opposite of the same value.
pub fn contradicted<'k>(statement: &Statement, known: &[KnownFact<'k>]) -> Option<KnownFact<'k>> {
    let about = |fact: &&KnownFact<'k>| same(fact.subject, &statement.subject);
    let facts = || known.iter().filter(about);
    let clashes = |fact: &&KnownFact<'k>| {
        let related = fact.relation == statement.relation;
        let alike = alike(fact.object, &statement.object);
        match (related, statement.ended) {
            (true, true) => alike,
            (true, false) => !alike && !is_multi_valued(fact.relation),
            (false, false) => alike && opposite(fact.relation) == Some(&*statement.relation),
            (false, true) => false,
        }
    };
    facts().find(clashes).copied()
}

fn same(a: &str, b: &str) -> bool {
    a.to_lowercase() == b.to_lowercase()
}

/// Returns whether two values may mean the same: one has all words of the other.
pub fn alike(a: &str, b: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        let lower = text.to_lowercase();
        let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(|word| word.trim_end_matches('s').to_owned()).collect()
    };
    let a = words(a);
    let b = words(b);
    let within = |few: &[String], many: &[String]| few.iter().all(|word| many.contains(word));
    within(&a, &b) || within(&b, &a)
}

fn opposite(relation: &str) -> Option<&'static str> {
    match relation {
        "likes" | "enjoys" | "loves" | "prefers" => Some("dislikes"),
        "dislikes" | "hates" => Some("likes"),
        _ => None,
    }
}
