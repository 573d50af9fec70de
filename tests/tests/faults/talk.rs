//! A conversation on a disk, and what must hold of it at any moment.

use std::sync::Arc;

use garret::agent::{Agent, Idled, Options, Outcome, Parts, TurnError};
use garret_core::gate::Mode;
use garret_core::model::ModelRole;
use garret_core::token::Token;
use garret_hal::clock::ManualClock;
use garret_storage::{Fact, FactFilter, Store};
use garret_tests::disk::Disk;
use garret_tests::scripted::{Act, ScriptedModel};
use garret_tests::talk::{TestAgent, parts, session, turn};

/// A small window, which a few turns fill.
pub(crate) const WINDOW: u32 = 4_096;

pub(crate) const READING: &str = "\
plain: 20
guess: 80 | so much work | to be told that giving the garden up is fine
guess: 30 | second thoughts | a plumber
guess: 10 | garden | a smaller garden
really: May I give the garden up?
next: Which plants need no watering? | Lavender and thyme.
next: Who could take over the beds? | A neighbour, perhaps.
";

/// A conversation and all that it runs on.
pub(crate) struct Talk {
    pub(crate) agent: TestAgent,
    pub(crate) model: ScriptedModel,
    pub(crate) disk: Disk,
    pub(crate) clock: Arc<ManualClock>,
}

pub(crate) fn options() -> Options {
    Options {
        system_prompt: "Be kind.".into(),
        compact_at: 80,
        companions: Mode::Turbo,
        ..Options::default()
    }
}

impl Talk {
    pub(crate) fn new() -> Self {
        Self::on(Disk::new(), model(WINDOW), options())
    }

    pub(crate) fn on(disk: Disk, model: ScriptedModel, options: Options) -> Self {
        let store = disk.open();
        Self::with(store, disk, model, options)
    }

    /// One whose store, on this disk, is open already.
    pub(crate) fn with(
        store: Arc<Store>,
        disk: Disk,
        model: ScriptedModel,
        options: Options,
    ) -> Self {
        let clock = Arc::new(ManualClock::at_unix_ms(garret_tests::talk::NOW_MS));
        let parts = Parts { clock: Arc::clone(&clock) as Arc<_>, ..parts(&model, store) };
        Self { agent: Agent::new(parts, options).unwrap(), model, disk, clock }
    }

    /// The same on what is on the disk now, as after a kill.
    pub(crate) fn killed(&self) -> Self {
        Self::on(Disk::of(self.disk.images()), model(WINDOW), options())
    }

    pub(crate) fn store(&self) -> &Store {
        self.agent.store()
    }

    pub(crate) fn try_say(&mut self, text: &str) -> Result<Outcome, TurnError> {
        turn(&mut self.agent, &session(), text)
    }

    pub(crate) fn say(&mut self, text: &str) -> Outcome {
        // Some time goes by from one turn to the next.
        self.clock.advance_us(60_000_000);
        self.try_say(text).expect("the turn is answered")
    }

    pub(crate) fn idle(&mut self) -> Idled {
        smol::block_on(self.agent.idle(&session()))
    }

    /// Says so many remarks, with idle time after each.
    pub(crate) fn chat(&mut self, count: u64) {
        for _ in 0..count {
            let said = self.said().len() as u64;
            self.say(&remark(said + 1));
            self.idle();
        }
    }

    /// The newest prompt of the conversation as text.
    pub(crate) fn prompt(&self) -> String {
        text(self.model.prompts().last().unwrap())
    }

    /// Messages and their replies.
    pub(crate) fn said(&self) -> Vec<(u64, String, Option<String>)> {
        said(self.store())
    }

    /// All facts, replaced ones too, as one line each.
    pub(crate) fn facts(&self) -> Vec<String> {
        facts(self.store())
    }

    /// Asserts what holds whatever happened.
    pub(crate) fn check(&self) {
        check(self.store());
        let Some(context) = self.agent.session_prefix(&session()).unwrap() else { return };
        assert!(context.from <= self.store().frontier(&session()).unwrap() + 1, "{context:?}");
        for id in &context.summaries {
            let found = self.store().summary(&session(), garret_storage::SummaryId(*id)).unwrap();
            assert!(found.is_some_and(|summary| summary.to < context.from), "s{id} {context:?}");
        }
    }
}

/// The records agree with each other, every turn up to the frontier is under exactly one leaf, and
/// no turn is under two.
pub(crate) fn check(store: &Store) {
    let report = store.verify().unwrap();
    assert!(report.is_clean(), "{report:?}");
    let summaries = store.summaries(&session()).unwrap();
    let turns = said(store);
    let frontier = store.frontier(&session()).unwrap();
    for (turn, ..) in &turns {
        let over = |depth: u8| {
            let covers = |s: &&garret_storage::Summary| s.from <= *turn && *turn <= s.to;
            summaries.iter().filter(covers).filter(|s| s.depth == depth).count()
        };
        assert!(over(0) == 1 || (over(0) == 0 && *turn > frontier), "turn {turn}: {summaries:?}");
        assert!(over(1) <= 1 && over(2) <= 1, "turn {turn}: {summaries:?}");
    }
    let mut facts = facts(store);
    let count = facts.len();
    facts.dedup();
    assert_eq!(facts.len(), count, "{facts:?}");
}

pub(crate) fn said(store: &Store) -> Vec<(u64, String, Option<String>)> {
    let said = store.with_turns(&session(), 1, |views| {
        let owned = |view: &garret_storage::TurnView<'_>| {
            (view.seq, view.user.to_owned(), view.reply.map(|reply| reply.text.to_owned()))
        };
        views.iter().map(owned).collect()
    });
    said.unwrap_or_default()
}

pub(crate) fn facts(store: &Store) -> Vec<String> {
    let line = |fact: Fact| {
        let Fact { predicate, object, text, turn, valid_at, valid_to, .. } = fact;
        let told = format!("{predicate}: {object:?} {text}");
        match turn {
            Some(turn) => format!("{told} turn {turn}, {valid_at} to {valid_to:?}"),
            // What was made of other facts, at any time.
            None => told,
        }
    };
    let facts = store.facts(&FactFilter { limit: 1_000, ..FactFilter::default() }).unwrap().facts;
    let mut lines: Vec<_> = facts.into_iter().map(line).collect();
    lines.sort();
    lines
}

/// The words of the user in a turn, with figures that no other turn has.
pub(crate) fn remark(turn: u64) -> String {
    format!(
        "Remark {turn}: the hive by the Fence holds {} bees today, I think, and I counted them twice because the first count seemed far too low.",
        turn * 1_009
    )
}

/// A model whose companions do their work well.
pub(crate) fn model(n_ctx: u32) -> ScriptedModel {
    ScriptedModel::new(n_ctx, []).companions(|role, prompt| {
        Act::Say(
            match role {
                ModelRole::Inferrer if text(prompt).contains("Which of these words") => {
                    "value: Acme\n"
                }
                ModelRole::Inferrer => READING,
                _ => "- the bees by the fence were counted again\n",
            }
            .into(),
        )
    })
}

pub(crate) fn text(prompt: &[Token]) -> String {
    let bytes: Vec<u8> = prompt.iter().filter_map(|token| u8::try_from(token.0).ok()).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
