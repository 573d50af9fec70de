//! Two hundred turns with everything that happens around them, as a table.
//!
//! A scripted user talks, comes back to old subjects, says things of themselves and now and then is
//! too fast for idle work; the model fails in the middle of a reply, a companion answers nonsense,
//! the program is killed, the disk is full. One seed decides all of it, and the clock is the
//! test's. For each turn the table has the tokens of each block, what was left out, what was in the
//! cache and what was read, and what companions were asked; at the end, what is stored. It is
//! compared with the stored one, so a change of behaviour shows where it begins. After a change
//! that is meant:
//!
//! ```text
//! GARRET_SIM=write cargo test -p garret-tests --test sim && git diff tests/sim
//! ```

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail as tests do"
)]

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use garret::agent::{Agent, Options, Outcome, Parts};
use garret_core::gate::Mode;
use garret_core::model::ModelRole;
use garret_core::receipt::{BlockName, OmissionKind};
use garret_hal::clock::ManualClock;
use garret_hal::media::Faults;
use garret_storage::FactFilter;
use garret_tests::disk::Disk;
use garret_tests::scripted::{Act, ScriptedModel};
use garret_tests::talk::{NOW_MS, TestAgent, parts, session, turn};

const TURNS: u64 = 200;

/// Draws numbers; the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        // Knuth's multiplier for 64 bits; the upper half is the better one.
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// An event of a turn beside the talk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Event {
    Nothing,
    /// The next message comes before there was any idle time.
    Hurry,
    /// The program ends and is started anew.
    Restart,
    /// The program is killed after the reply.
    Kill,
    /// The model fails in the middle of its reply.
    ModelFails,
    /// Companions answer nonsense.
    Nonsense,
    /// The disk is full while the message is written.
    FullDisk,
}

impl Event {
    fn draw(dice: &mut Dice) -> Self {
        match dice.below(40) {
            0 => Self::Restart,
            1 => Self::Kill,
            2 => Self::ModelFails,
            3 => Self::Nonsense,
            4 => Self::FullDisk,
            5..10 => Self::Hurry,
            _ => Self::Nothing,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "",
            Self::Hurry => "hurry",
            Self::Restart => "restart",
            Self::Kill => "killed",
            Self::ModelFails => "model fails",
            Self::Nonsense => "nonsense",
            Self::FullDisk => "full disk",
        }
    }
}

const READING: &str = "\
plain: 20
guess: 80 | cost me | to be told how to spend fewer hours
guess: 20 | the garden | a plumber
guess: 10 | the weather | a hat
really: How can I spend fewer hours on it?
next: How many hours are usual? | Twenty in a week.
next: Who can help for some hours? | A neighbour, perhaps.
";

const THINGS: [&str; 6] =
    ["the bees", "the garden", "the boat", "my sister", "the roof", "the cellar"];
const TOWNS: [&str; 5] = ["Oslo", "Bergen", "Lima", "Kyiv", "Rome"];

/// The words of the user in a turn.
fn message(dice: &mut Dice, turn: u64) -> String {
    let thing = THINGS[dice.below(6) as usize];
    match dice.below(10) {
        0 => format!("I live in {} now.", TOWNS[dice.below(5) as usize]),
        1 => format!("I like number {} of {thing}.", dice.below(9)),
        2 | 3 => format!("What did I say of {thing} before?"),
        4 => format!("Note {turn} on {thing}: ") + &"it was seen again and counted. ".repeat(40),
        _ => format!("Note {turn}: {thing} cost me {} hours today.", dice.below(90) + 10),
    }
}

/// A conversation and all that it runs on.
struct Simulation {
    dice: Dice,
    agent: TestAgent,
    model: ScriptedModel,
    disk: Disk,
    clock: Arc<ManualClock>,
    nonsense: Arc<AtomicBool>,
    /// Requests of companions that the table tells of already.
    told: usize,
    table: String,
}

impl Simulation {
    fn new(window: u32) -> Self {
        let nonsense = Arc::new(AtomicBool::new(false));
        let is_nonsense = Arc::clone(&nonsense);
        let model = ScriptedModel::new(window, []).companions(move |role, _| {
            let answer = match role {
                _ if is_nonsense.load(Ordering::SeqCst) => "I'd rather not say.",
                ModelRole::Inferrer => READING,
                _ => "- the bees, the garden and the boat took hours\n",
            };
            Act::Say(answer.into())
        });
        let disk = Disk::new();
        let clock = Arc::new(ManualClock::at_unix_ms(NOW_MS));
        let agent = agent(&model, &disk, &clock);
        let table = format!(
            "{:>4} {:>6} {:>7} {:>7} {:>6} {:>6} {:>7}  {:>4} {:>6} {:>6}  {:>6} {:>6}  {}\n",
            "turn",
            "system",
            "tracked",
            "history",
            "carry",
            "memory",
            "message",
            "old",
            "summed",
            "middle",
            "reused",
            "read",
            "companions, event",
        );
        Self { dice: Dice(12), agent, model, disk, clock, nonsense, told: 0, table }
    }

    /// The requests of companions since this was called before.
    fn asked(&mut self) -> String {
        let asked = self.model.asked();
        let new = &asked[self.told..];
        let count = |role| new.iter().filter(|asked| asked.role == role).count();
        let roles = [
            ("infer", ModelRole::Inferrer),
            ("sum up", ModelRole::Compactor),
            ("rebase", ModelRole::Rebase),
        ];
        let told = roles.map(|(name, role)| (name, count(role))).into_iter();
        let told =
            told.filter(|(_, count)| *count > 0).map(|(name, count)| format!("{name} {count}"));
        self.told = asked.len();
        told.collect::<Vec<_>>().join(", ")
    }

    fn restart(&mut self, images: Vec<Vec<u8>>) {
        self.disk = Disk::of(images);
        self.agent = agent(&self.model, &self.disk, &self.clock);
    }

    fn step(&mut self, n: u64) {
        // Minutes, and now and then a night.
        let minutes = if self.dice.below(20) == 0 { 600 } else { self.dice.below(5) + 1 };
        self.clock.advance_us(minutes * 60_000_000);
        let event = Event::draw(&mut self.dice);
        let text = message(&mut self.dice, n);
        let reply = format!("Reply {n}: ") + &"so it is. ".repeat(self.dice.below(12) as usize);
        match event {
            Event::ModelFails => self.model.then(Act::Fail(reply)),
            // A message that isn't stored isn't shown to the model.
            Event::FullDisk => {}
            _ => self.model.then(Act::Say(reply)),
        }
        self.nonsense.store(event == Event::Nonsense, Ordering::SeqCst);
        if event == Event::FullDisk {
            let capacity = Some(self.disk.used());
            self.disk.set_faults(Faults { capacity, ..Faults::default() });
            // More than any file has room for.
            let long = text.clone() + &"x".repeat(1 << 21);
            assert!(turn(&mut self.agent, &session(), &long).is_err(), "turn {n}");
            self.disk.set_faults(Faults::default());
        } else {
            let outcome = turn(&mut self.agent, &session(), &text);
            assert_eq!(outcome.is_err(), event == Event::ModelFails, "turn {n}: {outcome:?}");
            match event {
                Event::Hurry => {}
                Event::Kill => self.restart(self.disk.images()),
                _ => drop(smol::block_on(self.agent.idle(&session()))),
            }
            if event == Event::Restart {
                self.restart(self.disk.images());
            }
            self.row(n, event, outcome.ok().as_ref());
            return;
        }
        self.row(n, event, None);
    }

    fn row(&mut self, n: u64, event: Event, outcome: Option<&Outcome>) {
        let asked = self.asked();
        let what = [asked.as_str(), event.name()];
        let what: Vec<_> = what.into_iter().filter(|text| !text.is_empty()).collect();
        write!(self.table, "{n:>4} ").unwrap();
        if let Some(receipt) = outcome.map(|outcome| &outcome.receipt) {
            let tokens = |name| receipt.block(name).map_or(0, |block| block.tokens);
            write!(
                self.table,
                "{:>6} {:>7} {:>7} {:>6} {:>6} {:>7}  {:>4} {:>6} {:>6}  {:>6} {:>6}",
                tokens(BlockName::System),
                tokens(BlockName::Tracked),
                tokens(BlockName::History),
                tokens(BlockName::Carry),
                tokens(BlockName::Memory),
                tokens(BlockName::Message),
                receipt.left_out(OmissionKind::OldTurns),
                receipt.left_out(OmissionKind::SummedUp),
                receipt.left_out(OmissionKind::MessageMiddle)
                    + receipt.left_out(OmissionKind::HistoryMiddle),
                receipt.reused_tokens,
                receipt.prefilled_tokens,
            )
            .unwrap();
        } else {
            write!(self.table, "{:>76}", "").unwrap();
        }
        writeln!(self.table, "  {}", what.join("; ")).unwrap();
        // A row ends with what it says, not with blanks.
        self.table.truncate(self.table.trim_end().len());
        self.table.push('\n');
    }

    /// The table with what is stored at the end.
    fn end(mut self) -> String {
        let store = self.agent.store();
        assert!(store.verify().unwrap().is_clean());
        let filter = FactFilter { limit: 1_000, ..FactFilter::default() };
        let facts = store.facts(&filter).unwrap().facts;
        let latest = facts.iter().filter(|fact| fact.superseded_by.is_none()).count();
        let turns = store.session(&session()).unwrap().unwrap().turns;
        let summaries = store.summaries(&session()).unwrap();
        let of_depth = |depth| summaries.iter().filter(|summary| summary.depth == depth).count();
        writeln!(
            self.table,
            "\n{turns} turns, {} facts ({latest} not superseded), summaries: {} + {} + {}, frontier {}",
            facts.len(),
            of_depth(0),
            of_depth(1),
            of_depth(2),
            store.frontier(&session()).unwrap(),
        )
        .unwrap();
        self.table
    }
}

fn agent(model: &ScriptedModel, disk: &Disk, clock: &Arc<ManualClock>) -> TestAgent {
    let parts = Parts { clock: Arc::clone(clock) as Arc<_>, ..parts(model, disk.open()) };
    let options = Options {
        system_prompt: "Be kind.".into(),
        show_time: true,
        compact_at: 80,
        companions: Mode::ColdStart,
        ..Options::default()
    };
    Agent::new(parts, options).unwrap()
}

/// Plays the story in a window of so many tokens and compares the table with the stored one.
fn play(window: u32, name: &str) {
    let mut simulation = Simulation::new(window);
    for n in 1..=TURNS {
        simulation.step(n);
    }
    let table = simulation.end();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("sim").join(name);
    if std::env::var("GARRET_SIM").is_ok_and(|told| told == "write") {
        std::fs::write(&path, &table).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    if let Some((at, (now, before))) =
        table.lines().zip(stored.lines()).enumerate().find(|(_, (now, before))| now != before)
    {
        panic!("{name}, line {}:\n{before}\nis now\n{now}\nGARRET_SIM=write stores it", at + 1);
    }
    assert_eq!(table.lines().count(), stored.lines().count(), "{name} has other rows");
}

#[test]
fn two_hundred_turns_in_2k() {
    play(2_048, "2k.txt");
}

#[test]
fn two_hundred_turns_in_8k() {
    play(8_192, "8k.txt");
}
