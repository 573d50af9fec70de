//! The first hits of a search, read again together with the query: on a cross-encoder whose weights
//! are drawn from a seed, whose numbers are computed here a second time without llama.cpp.

use std::cell::Cell;
use std::path::Path;
use std::sync::{Arc, Mutex};

use garret::agent::{Agent, Options};
use garret::rerank::{Rerank, Reranking, find, merge};
use garret_core::model::PoolingError;
use garret_core::time::{Confidence, WallTime};
use garret_hal::media::{FileMedium, RamMedium};
use garret_llm::{Backend, LoadError, PoolingOptions, Reranker};
use garret_storage::search::{Found, Search};
use garret_storage::{NewFact, Store};
use garret_tests::cross_encoder::{CrossEncoder, Header, SPECIAL, WINDOW, WORDS};
use garret_tests::models::{EMBEDDER, STARTER};
use garret_tests::program::{garret, only, stderr, succeeded};
use garret_tests::scripted::ScriptedModel;
use garret_tests::talk;
use garret_tests::wire::{Searched, objects};
use proptest::prelude::*;
use tempfile::TempDir;

const SEED: u64 = 11;
const QUERY: &str = "when did the bees swarm";

fn load(path: &Path) -> Result<Reranker, LoadError> {
    let options = PoolingOptions { threads: 1, ..PoolingOptions::default() };
    Reranker::load(Backend::start().unwrap(), path, options)
}

/// A reranker, and the same for computing by hand.
fn reranker() -> (TempDir, Reranker, CrossEncoder) {
    let folder = tempfile::tempdir().unwrap();
    let by_hand = CrossEncoder::new(SEED);
    let reranker = load(&by_hand.write(&folder.path().join("r.gguf"))).unwrap();
    (folder, reranker, by_hand)
}

/// The approximation of ggml's activations, which are looked up in a table of halves.
const NEAR: f64 = 0.02;

fn assert_near(found: f32, wanted: f64, what: &str) {
    assert!((f64::from(found) - wanted).abs() < NEAR, "{found} instead of {wanted} for {what:?}");
}

/// Texts that differ in length and words.
fn texts() -> Vec<String> {
    (1..40)
        .map(|n| (0..n).map(|at| WORDS[(at * n + n) % WORDS.len()]).collect::<Vec<_>>())
        .map(|words| words.join(" "))
        .collect()
}

#[test]
fn scores_are_those_that_are_computed_by_hand() {
    let (_folder, reranker, by_hand) = reranker();
    let texts = texts();
    let texts: Vec<&str> = texts.iter().map(String::as_str).chain(["", "zebra", "rain"]).collect();
    let scores = reranker.scores(QUERY, &texts).unwrap();
    let wanted: Vec<f64> = texts.iter().map(|text| by_hand.score(QUERY, text)).collect();
    for ((text, score), wanted) in texts.iter().zip(&scores).zip(&wanted) {
        assert_near(*score, *wanted, text);
    }
    let greatest = wanted.iter().copied().fold(f64::MIN, f64::max);
    let least = wanted.iter().copied().fold(f64::MAX, f64::min);
    assert!(greatest - least > 20.0 * NEAR, "all alike: {wanted:?}");
    // The query is read, and which of both it is.
    let turned = reranker.scores("rain", &[QUERY]).unwrap()[0];
    assert_near(turned, by_hand.score("rain", QUERY), "the other way round");
    let score = reranker.scores(QUERY, &["rain"]).unwrap()[0];
    assert!(f64::from((turned - score).abs()) > 2.0 * NEAR, "{turned} {score}");
}

#[test]
fn what_is_asked_with_a_text_does_not_matter() {
    let (_folder, reranker, _) = reranker();
    let texts = texts();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let together = reranker.scores(QUERY, &texts).unwrap();
    let mut turned = texts.clone();
    turned.reverse();
    let mut backwards = reranker.scores(QUERY, &turned).unwrap();
    backwards.reverse();
    for ((text, score), other) in texts.iter().zip(&together).zip(&backwards) {
        let alone = reranker.scores(QUERY, &[text]).unwrap()[0];
        assert!((score - alone).abs() < 1e-3 && (score - other).abs() < 1e-3, "{text}");
    }
    assert_eq!(reranker.scores(QUERY, &[]).unwrap(), Vec::<f32>::new());
}

/// So many words, which are as many tokens.
fn words(count: usize) -> Vec<&'static str> {
    WORDS.iter().copied().cycle().take(count).collect()
}

#[test]
fn a_long_text_counts_as_its_best_window() {
    let (_folder, reranker, by_hand) = reranker();
    let size = WINDOW - SPECIAL - QUERY.split(' ').count();
    let step = size - size / 4;
    let mut best = Vec::new();
    let lengths = [size, size + 1, 2 * size, 3 * size + 7, 9_000];
    for (length, first) in lengths.into_iter().flat_map(|length| [(length, 0), (length, 5)]) {
        // One word many times, and all others behind.
        let text = [vec![WORDS[first]; size / 2], words(length - size / 2)].concat();
        let starts = (0..Reranker::MOST_WINDOWS).map(|window| window * step);
        let starts = starts.take_while(|start| *start == 0 || start + size < length + step);
        let scores: Vec<f64> = starts
            .map(|start| &text[start..length.min(start + size)])
            .map(|window| by_hand.score(QUERY, &window.join(" ")))
            .collect();
        let wanted = scores.iter().copied().fold(f64::MIN, f64::max);
        let score = reranker.scores(QUERY, &["rain", &text.join(" "), "oak"]).unwrap()[1];
        assert_near(score, wanted, &format!("{length} words"));
        best.push((scores[0] - wanted).abs() > 3.0 * NEAR);
    }
    assert!(best.contains(&true), "the first window is always the best: choose another seed");
}

#[test]
fn of_a_long_query_both_ends_are_read() {
    let (_folder, reranker, by_hand) = reranker();
    let most = reranker.max_query_tokens();
    assert_eq!(most, (WINDOW - SPECIAL) / 2);
    let whole = words(most).join(" ");
    assert_near(
        reranker.scores(&whole, &["oak"]).unwrap()[0],
        by_hand.score(&whole, "oak"),
        &whole,
    );
    for over in [1, 5, 700] {
        let query = words(most + over);
        let ends = [&query[..most], &query[over..]].map(|end| by_hand.score(&end.join(" "), "oak"));
        let score = reranker.scores(&query.join(" "), &["oak"]).unwrap()[0];
        assert_near(score, ends[0].max(ends[1]), &format!("{over} words too many: {ends:?}"));
    }
}

#[test]
fn a_model_that_does_not_rank_is_refused_when_it_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    for (header, word) in [
        (Header::Headless, "without a head that ranks"),
        (Header::TwoLabels, "gives 2 numbers"),
        (Header::Prompted, "a prompt of its own"),
    ] {
        let model = CrossEncoder::new(SEED).with(header);
        let error = load(&model.write(&folder.path().join("m.gguf"))).unwrap_err().to_string();
        assert!(error.contains("m.gguf: can't rank texts here") && error.contains(word), "{error}");
    }
    for name in [STARTER, EMBEDDER] {
        let Some(path) = garret_tests::models::find(name) else { continue };
        let error = load(&path).unwrap_err().to_string();
        assert!(error.contains("without a head that ranks"), "{name}: {error}");
    }
    let error = load(&folder.path().join("none.gguf")).unwrap_err().to_string();
    assert!(error.contains("no such file"), "{error}");
}

#[test]
fn a_window_too_small_for_query_and_text_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = CrossEncoder::new(SEED).write(&folder.path().join("r.gguf"));
    for (threads, max_tokens, option) in [(1, 18, "max_tokens"), (0, 64, "threads")] {
        let options = PoolingOptions { threads, max_tokens, ..PoolingOptions::default() };
        let error = Reranker::load(Backend::start().unwrap(), &path, options).unwrap_err();
        assert!(error.to_string().starts_with(option), "{error}");
    }
}

/// Gives each text the number that a script has for it, and counts how often it was asked.
#[derive(Debug)]
struct Scripted {
    scores: Vec<(&'static str, f32)>,
    asked: Mutex<Vec<usize>>,
    fails_from: usize,
}

impl Scripted {
    fn new(scores: &[(&'static str, f32)]) -> Self {
        Self { scores: scores.to_vec(), asked: Mutex::default(), fails_from: usize::MAX }
    }
}

impl Rerank for Scripted {
    fn score_into(&self, _: &str, texts: &[&str], scores: &mut [f32]) -> Result<(), PoolingError> {
        let mut asked = self.asked.lock().unwrap();
        asked.push(texts.len());
        if asked.len() > self.fails_from {
            return Err(PoolingError::NotFinite);
        }
        for (text, score) in texts.iter().zip(scores) {
            let known = self.scores.iter().find(|(known, _)| text.contains(known));
            *score = known.map_or(0.0, |(_, score)| *score);
        }
        Ok(())
    }
}

/// A store of notes about bees, the best answer to `bees` first.
fn notes() -> Store {
    let store = Store::on_medium("test", Box::new(RamMedium::new())).unwrap();
    let at = WallTime { unix_ms: 1_790_000_000_000, confidence: Confidence::Good };
    for (number, text) in NOTES.iter().enumerate() {
        store.accept(&format!("s{number}").parse().unwrap(), text, at).unwrap();
    }
    store
}

const NOTES: [&str; 6] = [
    "The bees are in the oak, and bees are bees.",
    "We saw bees by the river, many bees.",
    "A jar of honey for the neighbour who likes bees.",
    "Somebody said that bees sleep in winter.",
    "The garden has flowers for bees.",
    "Nobody is afraid of bees here.",
];

fn texts_of(found: &Found) -> Vec<&str> {
    found.hits.iter().map(|hit| hit.text.as_str()).collect()
}

#[test]
fn the_first_hits_are_ordered_by_both_and_the_others_stay() {
    let store = notes();
    let search = Search::new("bees", 5);
    let before = find(&store, &search, None).unwrap();
    assert_eq!(before, store.find(&search).unwrap(), "without a reranker a search is as it was");
    assert!(before.hits.iter().all(|hit| hit.rerank.is_none()));
    let plain = texts_of(&before);
    let best: &'static str = NOTES.into_iter().find(|note| *note == plain[3]).unwrap();
    let by = Scripted::new(&[(best, 2.5)]);
    let found = find(&store, &search, Some(Reranking { top: 4, ..Reranking::new(&by) })).unwrap();
    // First in one order and fourth in the other, against first and second.
    assert_eq!(texts_of(&found), [plain[0], plain[3], plain[1], plain[2], plain[4]]);
    let scores: Vec<_> = found.hits.iter().map(|hit| hit.rerank).collect();
    assert_eq!(scores, [Some(0.0), Some(2.5), Some(0.0), Some(0.0), None]);
    let one = |found: &Found| found.hits.iter().map(|hit| hit.score).sum::<f32>();
    assert_eq!(one(&found), one(&before), "scores are the search's");
    assert_eq!(*by.asked.lock().unwrap(), [4]);
}

/// The text that a reranker likes best comes into a short list from behind it.
#[test]
fn more_hits_are_read_than_are_wanted() {
    let store = notes();
    let all = find(&store, &Search::new("bees", 6), None).unwrap();
    let plain = texts_of(&all);
    let liked = |at: usize| NOTES.into_iter().find(|note| *note == plain[at]).unwrap();
    let by = Scripted::new(&[(liked(4), 9.0), (liked(3), 8.0), (liked(0), -9.0)]);
    let found = find(&store, &Search::new("bees", 2), Some(Reranking::new(&by))).unwrap();
    assert_eq!(found.hits.len(), 2);
    assert!(texts_of(&found).contains(&plain[4]), "{:?}", texts_of(&found));
    assert_eq!(found.searched, all.searched);
}

/// However many facts the reranker likes, messages that answer keep their places.
#[test]
fn facts_have_the_share_of_what_is_wanted() {
    let store = notes();
    let at = WallTime { unix_ms: 1_790_000_000_000, confidence: Confidence::Good };
    for number in 0..12 {
        let text = format!("Bees fact {number}");
        let fact = NewFact { text: &text, inferred: number % 2 == 0, ..NewFact::default() };
        store.add_fact(&fact, at).unwrap();
    }
    let by = Scripted::new(&[("Bees fact", 9.0)]);
    for (k, most, most_inferred) in [(1, 1, 1), (4, 2, 1), (5, 3, 2)] {
        let found = find(&store, &Search::new("bees", k), Some(Reranking::new(&by))).unwrap();
        let kinds: Vec<_> = found.hits.iter().map(|hit| hit.kind.as_str()).collect();
        let count = |kind: &str| kinds.iter().filter(|other| **other == kind).count();
        assert_eq!(kinds.len(), k);
        assert_eq!(k - count("message"), most, "{kinds:?}");
        assert!(count("derives") <= most_inferred, "{kinds:?}");
    }
}

#[test]
fn a_reranker_that_fails_or_is_stopped_leaves_the_order_of_the_search() {
    let store = notes();
    let before = store.find(&Search::new("bees", 6)).unwrap();
    let mut by = Scripted::new(&[(NOTES[5], 9.0)]);
    by.fails_from = 1;
    let found = find(&store, &Search::new("bees", 6), Some(Reranking::new(&by))).unwrap();
    assert_eq!(found, before);
    assert_eq!(*by.asked.lock().unwrap(), [4, 2], "it fails in the middle");
    let by = Scripted::new(&[(NOTES[5], 9.0)]);
    let left = Cell::new(1);
    let go_on = || left.replace(0) > 0;
    let stopped = Reranking { go_on: &go_on, ..Reranking::new(&by) };
    assert_eq!(find(&store, &Search::new("bees", 6), Some(stopped)).unwrap(), before);
    assert_eq!(*by.asked.lock().unwrap(), [4], "nothing is read after the stop");
}

#[test]
fn what_a_chat_remembers_is_ranked_again() {
    // Only some of what is found has room.
    let remembered = |by: Option<Scripted>| {
        let model = ScriptedModel::new(8_192, []);
        let mut agent = Agent::new(
            talk::parts(&model, Arc::new(notes())),
            Options { memory_tokens: Some(500), ..Options::default() },
        )
        .unwrap();
        if let Some(by) = by {
            agent = agent.with_reranker(Arc::new(by));
        }
        talk::say(&mut agent, "bees").memory
    };
    let plain = remembered(None);
    let last = (0..NOTES.len()).rev().find(|at| !plain.contains(&format!("s{at}/1/user"))).unwrap();
    let liked = remembered(Some(Scripted::new(&[(NOTES[last], 5.0)])));
    assert!(liked.contains(&format!("s{last}/1/user")), "{plain:?} {liked:?}");
    assert_eq!(remembered(Some(Scripted::new(&[]))), plain, "all alike: the order of the search");
}

proptest! {
    /// Nothing is lost, and equal numbers change nothing.
    #[test]
    fn merging_orders_all(scores in prop::collection::vec(-9.0_f32..9.0, 0..30)) {
        let order = merge(&scores);
        let mut all = order.clone();
        all.sort_unstable();
        prop_assert!(all.into_iter().eq(0..scores.len()));
        prop_assert!(merge(&vec![1.0; scores.len()]).into_iter().eq(0..scores.len()));
        // Who is better in both orders is better.
        let place = |hit: usize| order.iter().position(|other| *other == hit);
        for (a, b) in (0..scores.len()).flat_map(|b| (0..b).map(move |a| (a, b))) {
            prop_assert!(scores[a] < scores[b] || place(a) < place(b), "{} {}", a, b);
        }
    }
}

/// A home in which some was said, and a reranker.
fn home() -> (TempDir, CrossEncoder) {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(&home.path().join("data"), "default", |path| {
        Ok(Box::new(FileMedium::open(path)?))
    });
    let (store, at) =
        (store.unwrap(), WallTime { unix_ms: 1_790_000_000_000, confidence: Confidence::Good });
    for (number, text) in texts().iter().enumerate().take(12) {
        store.accept(&format!("s{number}").parse().unwrap(), &format!("{text} bees"), at).unwrap();
    }
    let by_hand = CrossEncoder::new(SEED);
    by_hand.write(&home.path().join("r.gguf"));
    (home, by_hand)
}

fn command(home: &TempDir, args: &[&str]) -> std::process::Command {
    let mut command = garret(home.path());
    command.env("GARRET_DATA", home.path().join("data")).env("GARRET_BATCH_THREADS", "1");
    command.env("GARRET_RERANKER", home.path().join("r.gguf")).args(args);
    command
}

fn searched(home: &TempDir, args: &[&str]) -> Searched {
    let args = [&["memory", "search", "--json", QUERY], args].concat();
    only(objects(&succeeded(&command(home, &args).output().unwrap())))
}

#[test]
fn the_command_ranks_again_as_it_is_told() {
    let (home, by_hand) = home();
    let plain = searched(&home, &["--reranker", "off"]);
    assert_eq!(searched(&home, &["--rerank", "0"]).hits, plain.hits);
    assert!(plain.hits.iter().all(|hit| !hit.parts.contains_key("rerank")));
    let ranked = searched(&home, &["--rerank", "3"]);
    let (first, rest) = ranked.hits.split_at(3);
    assert_eq!(rest, &plain.hits[3..], "what isn't read stays as it was");
    for hit in first {
        assert_near(hit.parts["rerank"] as f32, by_hand.score(QUERY, &hit.text), &hit.text);
    }
    let scores: Vec<f32> =
        plain.hits.iter().map(|hit| by_hand.score(QUERY, &hit.text) as f32).collect();
    let ids =
        |searched: &Searched| searched.hits.iter().map(|hit| hit.id.clone()).collect::<Vec<_>>();
    let wanted: Vec<_> =
        merge(&scores[..3]).into_iter().map(|at| plain.hits[at].id.clone()).collect();
    assert_eq!(ids(&ranked)[..3], wanted);
    let all = searched(&home, &[]);
    assert!(all.hits.iter().all(|hit| hit.parts.contains_key("rerank")));
    assert_ne!(ids(&all), ids(&plain), "the drawn weights agree with the search by chance: {SEED}");
    let told = command(&home, &["memory", "search", QUERY, "--explain"]).output().unwrap();
    assert!(succeeded(&told).contains(", rerank "));
}

#[test]
fn a_reranker_that_cannot_be_used_is_an_error_at_the_start() {
    let (home, _) = home();
    CrossEncoder::new(SEED).with(Header::Headless).write(&home.path().join("r.gguf"));
    let output = command(&home, &["memory", "search", "bees"]).output().unwrap();
    assert!(!output.status.success());
    assert!(stderr(&output).contains("without a head that ranks"), "{}", stderr(&output));
    // Nobody asks for it here.
    succeeded(&command(&home, &["memory", "search", "bees", "--rerank", "0"]).output().unwrap());
    let none = ["memory", "search", "bees", "--reranker", "off", "--rerank", "5"];
    let output = command(&home, &none).output().unwrap();
    assert!(stderr(&output).contains("there is no reranker: give --reranker FILE"));
}

#[test]
fn models_says_what_a_reranker_is() {
    let (home, _) = home();
    let file = home.path().join("r.gguf");
    let file = file.to_str().unwrap();
    let told = succeeded(&command(&home, &["models", "check", file]).output().unwrap());
    assert!(told.contains("reranker model `Drawn`, architecture bert"), "{told}");
    assert!(told.contains("\n  needs about ") && told.contains(" MiB are free"), "{told}");
    for role in ["embedder", "chat"] {
        let output = command(&home, &["models", "check", file, "--role", role]).output().unwrap();
        assert!(!output.status.success(), "{role}");
    }
}
