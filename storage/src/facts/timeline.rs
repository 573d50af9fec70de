//! Where a new fact goes among those of its lane, whatever order they come in.
//!
//! A **lane** is a series of facts of which one holds at a time: those of a functional predicate of
//! one subject (where Ada lives), or those that say one value of a multi-valued one (that Ada likes
//! tea). Each fact holds from its start up to its end. A new one ends the fact that holds at its
//! start and is itself ended by the next start; it never touches what starts later. So the order of
//! writing doesn't matter to what was true when, save that of two with one start the one written
//! later wins. Ends only move back: what is known to have ended never comes back by itself.

/// The end of a fact that has none: later than every moment.
pub(crate) const OPEN: i64 = i64::MAX;

/// The time in which a fact holds: from `start` until before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) id: u64,
    pub(crate) start: i64,
    /// [`OPEN`] for one without an end.
    pub(crate) end: i64,
    pub(crate) inferred: bool,
}

impl Span {
    pub(crate) const fn holds(&self, at: i64) -> bool {
        self.start <= at && at < self.end
    }
}

/// The facts of a lane that hold at some moment, in the order of their starts.
pub(crate) trait Lane {
    type Error;

    /// The one with the last start up to `at`.
    fn last_until(&self, at: i64) -> Result<Option<Span>, Self::Error>;

    /// The one with the first start after `at`.
    fn first_after(&self, at: i64) -> Result<Option<Span>, Self::Error>;
}

/// A moment's neighbours in a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Neighbours {
    /// The fact that holds at that moment.
    pub(crate) holder: Option<Span>,
    /// The fact that starts next.
    pub(crate) next: Option<Span>,
}

/// Those of `at`; two look-ups however long the lane is.
pub(crate) fn neighbours<L: Lane>(lane: &L, at: i64) -> Result<Neighbours, L::Error> {
    // Spans of a lane don't overlap: when the last one to start has ended, so have all before it.
    let holder = lane.last_until(at)?.filter(|span| span.holds(at));
    Ok(Neighbours { holder, next: lane.first_after(at)? })
}

/// The fate of a new fact and of the one in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placement {
    /// The place where the new fact ends; its start when it never holds.
    pub(crate) end: i64,
    /// The fact that replaced it already.
    pub(crate) superseded_by: Option<u64>,
    /// The fact that it ends at its own start.
    pub(crate) cuts: Option<u64>,
}

/// Places a fact that holds from `start` until `end` at most. One that `yields` never holds where
/// another does that wasn't inferred.
pub(crate) fn place(start: i64, end: i64, yields: bool, around: Neighbours) -> Placement {
    if let Some(holder) = around.holder.filter(|holder| yields && !holder.inferred) {
        return Placement { end: start, superseded_by: Some(holder.id), cuts: None };
    }
    let cuts = around.holder.map(|holder| holder.id);
    match around.next {
        Some(next) if next.start < end => {
            Placement { end: next.start, superseded_by: Some(next.id), cuts }
        }
        _ => Placement { end, superseded_by: None, cuts },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::convert::Infallible;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// A lane in memory: every fact, and those that hold at some moment by start.
    #[derive(Default)]
    struct Memory {
        all: BTreeMap<u64, Span>,
        by_start: BTreeMap<i64, u64>,
    }

    impl Lane for Memory {
        type Error = Infallible;

        fn last_until(&self, at: i64) -> Result<Option<Span>, Infallible> {
            Ok(self.by_start.range(..=at).next_back().map(|(_, id)| self.all[id]))
        }

        fn first_after(&self, at: i64) -> Result<Option<Span>, Infallible> {
            Ok(self.by_start.range(at.saturating_add(1)..).next().map(|(_, id)| self.all[id]))
        }
    }

    impl Memory {
        fn close(&mut self, id: u64, at: i64) {
            let span = self.all.get_mut(&id).unwrap();
            span.end = span.end.min(at.max(span.start));
            if span.end == span.start && self.by_start.get(&span.start) == Some(&id) {
                self.by_start.remove(&span.start);
            }
        }

        fn add(&mut self, start: i64, end: i64, inferred: bool) -> (u64, Placement) {
            let id = self.all.len() as u64 + 1;
            let Ok(around) = neighbours(self, start);
            let placed = place(start, end, inferred, around);
            if let Some(cut) = placed.cuts {
                self.close(cut, start);
            }
            self.all.insert(id, Span { id, start, end: placed.end, inferred });
            if placed.end > start {
                assert_eq!(self.by_start.insert(start, id), None);
            }
            (id, placed)
        }
    }

    const MOMENTS: i64 = 24;

    /// The reference: what is true at each moment, painted moment by moment.
    struct Painted {
        truth: Vec<Option<(u64, bool)>>,
        added: u64,
    }

    impl Painted {
        fn add(&mut self, start: i64, end: i64, inferred: bool) {
            self.added += 1;
            let start = usize::try_from(start).unwrap();
            if inferred && self.truth[start].is_some_and(|(_, inferred)| !inferred) {
                return;
            }
            let old = self.truth.clone();
            let end = usize::try_from(end.min(MOMENTS)).unwrap();
            let stop = (start + 1..old.len())
                .find(|at| old[*at].is_some() && old[*at] != old[*at - 1])
                .unwrap_or(old.len());
            for at in start..stop {
                self.truth[at] = (at < end).then_some((self.added, inferred));
            }
        }

        fn retract(&mut self, id: u64, at: i64) {
            for truth in self.truth.iter_mut().skip(usize::try_from(at).unwrap()) {
                if truth.is_some_and(|(of, _)| of == id) {
                    *truth = None;
                }
            }
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Add { start: i64, length: Option<i64>, inferred: bool },
        Retract { nth: prop::sample::Index, at: i64 },
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..MOMENTS, prop::option::weighted(0.2, 1..8_i64), prop::bool::weighted(0.2))
                .prop_map(|(start, length, inferred)| Step::Add { start, length, inferred }),
            1 => (any::<prop::sample::Index>(), 0..MOMENTS)
                .prop_map(|(nth, at)| Step::Retract { nth, at }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn at_each_moment_the_truth_is_that_of_the_reference(steps in vec(step(), 1..40)) {
            let mut lane = Memory::default();
            let mut painted = Painted { truth: vec![None; MOMENTS as usize], added: 0 };
            for step in steps {
                match step {
                    Step::Add { start, length, inferred } => {
                        let end = length.map_or(OPEN, |length| start + length);
                        lane.add(start, end, inferred);
                        painted.add(start, end, inferred);
                    }
                    Step::Retract { nth, at } if painted.added > 0 => {
                        let id = nth.index(usize::try_from(painted.added).unwrap()) as u64 + 1;
                        lane.close(id, at);
                        painted.retract(id, at);
                    }
                    Step::Retract { .. } => {}
                }
                for (at, truth) in (0..).zip(&painted.truth) {
                    let holding: Vec<_> =
                        lane.all.values().filter(|span| span.holds(at)).map(|span| span.id).collect();
                    let expected: Vec<_> = truth.iter().map(|(id, _)| *id).collect();
                    prop_assert_eq!(holding, expected, "at {}", at);
                }
                prop_assert!(lane.all.values().all(|span| span.start <= span.end));
            }
        }

        /// Facts without ends are a function of when they start: any order of writing tells the same.
        #[test]
        fn the_order_of_writing_does_not_matter(
            starts in prop::collection::btree_set(0..MOMENTS, 1..16), seed: u64,
        ) {
            let mut order: Vec<i64> = starts.iter().copied().collect();
            order.sort_by_key(|start| (*start as u64 + 1).wrapping_mul(seed | 1));
            let mut lane = Memory::default();
            for start in order {
                lane.add(start, OPEN, false);
            }
            let mut spans: Vec<_> = lane.all.values().map(|span| (span.start, span.end)).collect();
            spans.sort_unstable();
            let starts: Vec<_> = starts.into_iter().collect();
            let ends = starts.iter().skip(1).copied().chain([OPEN]);
            prop_assert_eq!(spans, starts.iter().copied().zip(ends).collect::<Vec<_>>());
        }
    }

    /// An older event that is told later retired the newer one in a system before ours, with an end
    /// before its start.
    #[test]
    fn an_older_fact_never_retires_a_newer_one() {
        let mut lane = Memory::default();
        let (newer, _) = lane.add(10, OPEN, false);
        let (older, placed) = lane.add(0, OPEN, false);
        assert_eq!(placed, Placement { end: 10, superseded_by: Some(newer), cuts: None });
        assert_eq!(lane.all[&newer].end, OPEN);
        assert_eq!(lane.all[&older].end, 10);
    }

    #[test]
    fn of_two_with_one_start_the_later_written_wins() {
        let mut lane = Memory::default();
        let (first, _) = lane.add(5, OPEN, false);
        let (_, placed) = lane.add(5, OPEN, false);
        assert_eq!(placed, Placement { end: OPEN, superseded_by: None, cuts: Some(first) });
        assert_eq!(lane.all[&first].end, 5);
    }

    #[test]
    fn what_was_inferred_gives_way_to_what_was_said() {
        let mut lane = Memory::default();
        let (said, _) = lane.add(0, OPEN, false);
        let (_, placed) = lane.add(7, OPEN, true);
        assert_eq!(placed, Placement { end: 7, superseded_by: Some(said), cuts: None });
        let mut lane = Memory::default();
        let (inferred, _) = lane.add(0, OPEN, true);
        let (_, placed) = lane.add(7, OPEN, false);
        assert_eq!(placed.cuts, Some(inferred));
    }
}
