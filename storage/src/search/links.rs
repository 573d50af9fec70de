//! What is one link away from what was found.
//!
//! A fact leads to the message it was said in and to the facts it is linked to; a message leads to
//! the facts that were said in it. What is reached stands beside the hits with [`PASSED_ON`] of the
//! relevance of the best hit that leads to it, if that is more than its own. What a search leaves
//! out isn't reached either.

use redb::ReadTransaction;

use crate::facts;
use crate::facts::{FactId, Node};
use crate::ground::error::Fault;
use crate::search::index::{Index, Wanted};
use crate::search::mix::Best;
use crate::search::unit::Ranked;
use crate::vectors::UnitKey;

/// How much of a hit's relevance what it leads to has. Of LoCoMo's questions the fifth hit has in the
/// middle that much of the first one's, so what the best hit leads to comes amid the first ten.
/// `garret-bench`'s `locomo --links` asks them of turns that are stored as facts, each linked to those
/// beside it: R@10 .723 with these links and .684 without, R@5 .631 and .611, MRR .539 and .532. Other
/// shares weren't tried there.
pub(crate) const PASSED_ON: f32 = 0.3;
/// Hits that are followed, the best ones.
const FOLLOWED: usize = 10;
/// Links of one hit that are followed, the newest ones.
const EACH: usize = 8;

/// Adds to `best` what the best `k` in it lead to.
pub(crate) fn follow(
    transaction: &ReadTransaction,
    index: &Index,
    wanted: &Wanted<'_>,
    best: &mut Best,
    k: usize,
) -> Result<(), Fault> {
    if index.facts.is_empty() {
        return Ok(());
    }
    for hit in best.clone().mixed(k.min(FOLLOWED)) {
        for key in reached(transaction, index, &hit)? {
            add(index, wanted, best, &hit, key);
        }
    }
    Ok(())
}

/// Returns where the links of a hit lead.
fn reached(
    transaction: &ReadTransaction,
    index: &Index,
    hit: &Ranked,
) -> Result<Vec<UnitKey>, Fault> {
    let mut near = Vec::new();
    if let UnitKey::Fact { id } = hit.key() {
        let node = Node::Fact(FactId(id));
        let links = facts::links_of(transaction, node)?.into_iter();
        let far = links.map(|link| if link.from == node { link.to } else { link.from });
        near.extend(far.filter_map(|far| match far {
            Node::Fact(FactId(id)) => Some(UnitKey::Fact { id }),
            Node::Entity(_) => None,
        }));
    } else {
        let said = facts::of_turn(transaction, hit.session, hit.turn)?;
        near.extend(said.into_iter().map(|FactId(id)| UnitKey::Fact { id }));
        near.retain(|fact| {
            let fact = index.document(*fact).and_then(|fact| index.units.get(fact as usize));
            fact.is_some_and(|fact| index.unranked(fact, None).origin() == Some(hit.key()))
        });
    }
    near.sort_unstable();
    near.dedup();
    near.drain(..near.len().saturating_sub(EACH));
    near.extend(hit.origin());
    Ok(near)
}

/// Adds what a link of `hit` leads to, or raises it where it is known.
fn add(index: &Index, wanted: &Wanted<'_>, best: &mut Best, hit: &Ranked, key: UnitKey) {
    let unit = index.document(key).and_then(|document| index.units.get(document as usize));
    let Some(unit) = unit.filter(|unit| wanted.filter.passes(index, unit)) else { return };
    let kind = index.fact_of(unit).map(|fact| fact.kind);
    let sort = best.of(kind);
    let known = sort.iter().position(|one| one.key() == key);
    let before = known.map_or_else(|| index.unranked(unit, wanted.now), |known| sort[known]);
    let relevance = PASSED_ON * hit.relevance;
    if before.relevance >= relevance {
        return;
    }
    let mut unit = Ranked { relevance, through: Some(hit.key()), ..before };
    unit.scored();
    match known {
        Some(known) => sort[known] = unit,
        None => sort.push(unit),
    }
    sort.sort_unstable_by(|a, b| b.cmp(a));
}
