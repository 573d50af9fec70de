//! How often the gate is right, on dialogues judged by hand, beside the plain rule that it
//! came from. `cargo test --workspace --test model gate -- --nocapture` prints the table.

use garret::embed::Embed;
use garret::remember::cues::{self, Cues, KnownFact, contradicted, topic_changed};
use garret_core::gate::{Gate, Mode, Signals};
use garret_llm::{Backend, Embedder, PoolingOptions};
use garret_tests::dialogues::{Dialogue, dialogues};
use garret_tests::models::{EMBEDDER, find};

mod plain_rule;

/// The answer of a rule to a dialogue's last message.
#[derive(Clone, Copy, Debug, Default)]
struct Said {
    infer: bool,
    compact: bool,
    contradiction: bool,
}

/// A measure of whether two messages differ in topic, if that can be known.
type Topic<'a> = &'a dyn Fn(&str, &str) -> Option<bool>;

fn garret(dialogue: &Dialogue, topic: Topic<'_>) -> Said {
    let mut gate = Gate::default();
    let mut said = Said::default();
    let seen: Vec<Cues> = dialogue.user.iter().map(|text| cues::read(text)).collect();
    for (at, now) in seen.iter().enumerate() {
        let told = seen[..at].iter().flat_map(|seen| &seen.statements);
        let known: Vec<_> = told
            .filter(|statement| !statement.ended)
            .map(|told| KnownFact {
                subject: &told.subject,
                relation: &told.relation,
                object: &told.object,
            })
            .collect();
        let clash = now.statements.iter().any(|told| contradicted(told, &known).is_some());
        let before = at.checked_sub(1).map(|before| &*dialogue.user[before]);
        let signals = Signals {
            fill: fill(dialogue, at),
            topic_changed: before.and_then(|before| topic(before, &dialogue.user[at])),
            contradiction: clash,
            ..now.signals()
        };
        let decision = gate.decide(Mode::ColdStart, &signals);
        if decision.compact {
            gate.compacted();
        }
        let (infer, compact) = (decision.infer, decision.compact);
        said = Said { infer, compact, contradiction: clash };
    }
    said
}

fn fill(dialogue: &Dialogue, at: usize) -> f32 {
    let before = dialogue.user.len() - 1 - at;
    dialogue.fill - 0.02 * before as f32
}

/// Right alarms, false alarms and missed ones.
#[derive(Clone, Copy, Debug, Default)]
struct Score {
    right: usize,
    wrong: usize,
    missed: usize,
}

impl Score {
    fn precision(self) -> f64 {
        ratio(self.right, self.right + self.wrong)
    }

    fn recall(self) -> f64 {
        ratio(self.right, self.right + self.missed)
    }
}

fn ratio(part: usize, whole: usize) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

/// Scores for inference, compaction and contradiction.
fn score(half: &[Dialogue], rule: impl Fn(&Dialogue) -> Said) -> [Score; 3] {
    let mut scores = [Score::default(); 3];
    for dialogue in half {
        let said = rule(dialogue);
        let pairs = [
            (said.infer, dialogue.infer),
            (said.compact, dialogue.compact),
            (said.contradiction, dialogue.contradiction),
        ];
        if std::env::var_os("GATE_ERRORS").is_some() && pairs[0].0 != pairs[0].1 {
            eprintln!("{pairs:?} {} {:?}", dialogue.number, dialogue.user);
        }
        for (score, pair) in scores.iter_mut().zip(pairs) {
            match pair {
                (true, true) => score.right += 1,
                (true, false) => score.wrong += 1,
                (false, true) => score.missed += 1,
                (false, false) => {}
            }
        }
    }
    scores
}

fn print(name: &str, scores: [Score; 3]) {
    let cells = scores.map(|score| format!("{:.2} {:.2}", score.precision(), score.recall()));
    println!("{name:44} | {} | {} | {}", cells[0], cells[1], cells[2]);
}

fn halves() -> (Vec<Dialogue>, Vec<Dialogue>) {
    let all = dialogues();
    assert_eq!(all.len(), 200);
    assert!(all.iter().all(|dialogue| dialogue.user.len() >= 2));
    all.into_iter().partition(|dialogue| dialogue.number % 2 == 1)
}

fn embedder() -> Option<Embedder> {
    let path = find(EMBEDDER)?;
    let options = PoolingOptions { threads: 1, ..PoolingOptions::default() };
    let embedder = Embedder::load(Backend::start().unwrap(), &path, options).unwrap();
    Some(embedder)
}

#[test]
fn the_gate_is_right_more_often_than_a_plain_rule() {
    let (seen, unseen) = halves();
    let unknown: Topic<'_> = &|_, _| None;
    println!(
        "precision and recall                         | infer     | compact   | contradiction"
    );
    for (half, dialogues) in [("looked at", &seen), ("not looked at", &unseen)] {
        print(&format!("garret, no embedder, {half}"), score(dialogues, |d| garret(d, unknown)));
        let hashed = score(dialogues, |d| plain_rule::said(d, &plain_rule::hashed_topic));
        print(&format!("plain rule, hashes for an embedder, {half}"), hashed);
    }
    let [infer, compact, contradiction] = score(&unseen, |d| garret(d, unknown));
    let [plain_infer, _, plain_contradiction] =
        score(&unseen, |d| plain_rule::said(d, &plain_rule::hashed_topic));
    assert!(infer.precision() >= 0.9 && infer.recall() >= 0.7, "{infer:?}");
    assert!(compact.precision() >= 0.9 && compact.recall() >= 0.8, "{compact:?}");
    assert!(contradiction.precision() >= 0.9 && contradiction.recall() >= 0.8);
    assert!(infer.precision() > plain_infer.precision());
    assert!(contradiction.precision() > plain_contradiction.precision());
}

#[test]
fn a_real_embedder_adds_topics_without_false_alarms() {
    let Some(embedder) = embedder() else { return };
    let real = |before: &str, now: &str| topic_changed(&embedder as &dyn Embed, before, now);
    let (seen, unseen) = halves();
    for (half, dialogues) in [("looked at", &seen), ("not looked at", &unseen)] {
        print(&format!("garret, MiniLM, {half}"), score(dialogues, |d| garret(d, &real)));
        let plain = score(dialogues, |d| plain_rule::said(d, &real));
        print(&format!("plain rule, MiniLM, {half}"), plain);
    }
    let [infer, ..] = score(&unseen, |d| garret(d, &real));
    let [plain, ..] = score(&unseen, |d| plain_rule::said(d, &real));
    assert!(infer.precision() >= 0.8 && infer.recall() >= 0.7, "{infer:?}");
    assert!(infer.precision() > plain.precision());
}
