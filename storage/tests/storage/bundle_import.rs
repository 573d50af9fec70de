//! Exports and imports: what comes back is what there was, damage is told and changes nothing, and
//! what meets other records agrees with them.

use garret_hal::media::RamMedium;
use garret_storage::{
    BundleCounts, Format, ImportError, ImportReport, Place, Store, Taken, WriteError,
};
use proptest::collection::vec;
use proptest::prelude::*;
use sha2::Digest as _;

use crate::bundle::{facts, fill, forget, summed_up};
use crate::crash::Run;
use crate::facts_model;
use crate::model::{self, NAMESPACE, Op, Pair, apply, dump, open};

const FORMATS: [Format; 2] = [Format::Bundle, Format::Lines];

fn exported(store: &Store, format: Format) -> Vec<u8> {
    let mut bytes = Vec::new();
    store.export(&mut bytes, format).unwrap();
    bytes
}

fn filled() -> Store {
    let store = open(&RamMedium::new());
    fill(&store);
    store
}

fn empty() -> Store {
    open(&RamMedium::new())
}

/// Everything an export has, in one form; equal only where the stores are.
fn everything(store: &Store) -> String {
    String::from_utf8(exported(store, Format::Lines)).unwrap()
}

#[test]
fn an_empty_store_takes_in_what_another_one_had() {
    let store = filled();
    for format in FORMATS {
        let mut bytes = Vec::new();
        let counts = store.export(&mut bytes, format).unwrap();
        let other = Store::on_medium("elsewhere", Box::new(RamMedium::new())).unwrap();
        let report = other.import(&*bytes, Taken::Refuse).unwrap();
        assert_eq!((report.counts, &*report.namespace), (counts, NAMESPACE));
        assert_eq!((report.known_facts, &*report.renamed), (0, &[][..]));
        let stats = store.stats().unwrap();
        assert_eq!((counts.sessions, counts.turns), (stats.sessions, stats.turns));
        assert_eq!((counts.replies, counts.facts), (stats.replies, stats.facts.all));
        assert_eq!((counts.entities, counts.links), (stats.entities, stats.links));
        assert_eq!(dump(&other).unwrap(), dump(&store).unwrap());
        assert_eq!(facts(&other), facts(&store));
        assert_eq!(summed_up(&other), summed_up(&store));
        assert_eq!(other.entities().unwrap(), store.entities().unwrap());
        assert_eq!(other.verify().unwrap().problems, []);
        // What comes next gets the same numbers.
        let next = Op::Accept { session: 0, text: "and on".to_owned(), ms: 1 };
        assert_eq!(apply(&other, &next).unwrap(), apply(&empty_with(&store), &next).unwrap());
        assert!(!other.search("swarmed", None, 5).unwrap().hits.is_empty());
    }
}

/// What was forgotten stays so, with its line in the ledger, once however often it comes.
#[test]
fn what_was_forgotten_does_not_come_back() {
    let store = Pair::<RamMedium>::default().open();
    fill(&store);
    forget(&store);
    let letters = "letters".parse().unwrap();
    for format in FORMATS {
        let bytes = exported(&store, format);
        let other = empty();
        other.import(&*bytes, Taken::Refuse).unwrap();
        assert_eq!(everything(&other), everything(&store));
        assert_eq!(other.verify().unwrap().problems, []);
        assert_eq!(other.erasures().unwrap(), store.erasures().unwrap());
        let seqs = other.with_turns(&letters, 1, |turns| turns.len()).unwrap();
        assert_eq!((seqs, other.session(&letters).unwrap().unwrap().turns), (1, 2));
        assert_eq!(other.damaged_turns(&letters).unwrap(), []);
        let report = other.import(&*bytes, Taken::Rename).unwrap();
        assert_eq!(other.erasures().unwrap().len(), 1);
        assert_eq!(other.verify().unwrap().problems, []);
        let again = &report.renamed.iter().find(|(from, _)| *from == letters).unwrap().1;
        assert_eq!(other.with_turns(again, 1, |turns| turns.len()).unwrap(), 1);
        assert_eq!(other.damaged_turns(again).unwrap(), []);
    }
    // Backups, too; and writing goes on.
    let copy = empty_with(&store);
    assert_eq!(everything(&copy), everything(&store));
    apply(&store, &Op::Title { session: 3, title: "After".to_owned() }).unwrap();
    apply(&store, &Op::Title { session: 3, title: "After that".to_owned() }).unwrap();
    assert!(store.pending().unwrap() > 0);
}

/// A backup of a store, open.
fn empty_with(store: &Store) -> Store {
    let medium = RamMedium::new();
    store.backup(Box::new(medium.clone())).unwrap();
    open(&medium)
}

/// A store with what random operations left.
fn store_of(facts: &[facts_model::Op], conversations: &[Op]) -> Store {
    let pair = Pair::<RamMedium>::default();
    let store = pair.open();
    let mut known = facts_model::Model::default();
    for op in facts {
        let before = known.clone();
        known.apply(op);
        if !matches!(op, facts_model::Op::Reopen | facts_model::Op::Kill) {
            facts_model::apply(&store, &before, op).unwrap();
        }
    }
    for op in conversations.iter().filter(|op| !matches!(op, Op::Reopen)) {
        apply(&store, op).unwrap();
    }
    store
}

fn random() -> impl Strategy<Value = Store> {
    let facts = vec(crate::facts_operations::op(), 0..40);
    let conversations = vec(crate::operations::op(), 0..30);
    (facts, conversations).prop_map(|(facts, conversations)| store_of(&facts, &conversations))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").map_or(24, |cases| cases.parse().unwrap()),
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn any_store_comes_back_whole(store in random()) {
        prop_assert_eq!(store.verify()?.problems, []);
        for format in FORMATS {
            let other = empty();
            other.import(&*exported(&store, format), Taken::Refuse)?;
            prop_assert_eq!(everything(&other), everything(&store));
            prop_assert_eq!(dump(&other)?, dump(&store)?);
            prop_assert_eq!(facts_model::dump(&other), facts_model::dump(&store));
            prop_assert_eq!(other.verify()?.problems, []);
        }
    }

    /// Whatever meets: all tables agree, what was said is all there, and a second time adds no
    /// fact.
    #[test]
    fn any_two_stores_can_be_one(store in random(), other in random()) {
        let (ours, theirs) = (dump(&store)?, dump(&other)?);
        let before = store.stats()?;
        let bytes = exported(&other, Format::Bundle);
        let report = store.import(&*bytes, Taken::Rename)?;
        prop_assert_eq!(store.verify()?.problems, []);
        let name = |id: &str| {
            let renamed = report.renamed.iter().find(|(from, _)| from.as_str() == id);
            renamed.map_or_else(|| id.to_owned(), |(_, to)| to.to_string())
        };
        let mut expected = theirs;
        expected.sessions.iter_mut().for_each(|session| session.id = name(&session.id));
        expected.sessions.extend(ours.sessions);
        prop_assert_eq!(dump(&store)?, expected);
        let stats = store.stats()?;
        prop_assert_eq!(stats.facts.all, before.facts.all + report.counts.facts - report.known_facts);
        let again = store.import(&*bytes, Taken::Rename)?;
        prop_assert_eq!(store.verify()?.problems, []);
        prop_assert_eq!(again.renamed.len() as u64, again.counts.sessions);
        // Those that were cut off by ours came to hold at fewer moments, and may come again.
        prop_assert!(again.known_facts >= report.known_facts);
    }
}

/// A store that nothing may change, and how it was.
struct Untouched {
    pair: Pair<RamMedium>,
    store: Store,
    before: String,
}

impl Untouched {
    fn new() -> Self {
        let pair = Pair::<RamMedium>::default();
        let store = pair.open();
        apply(&store, &Op::Accept { session: 4, text: "mine".to_owned(), ms: 3 }).unwrap();
        let before = everything(&store);
        Self { pair, store, before }
    }

    fn refuses(&self, bytes: &[u8]) -> ImportError {
        let error = self.store.import(bytes, Taken::Refuse).unwrap_err();
        assert!(error.to_string().contains("nothing was imported"), "{error}");
        error
    }

    fn stays(self) {
        assert_eq!(everything(&self.store), self.before);
        assert_eq!(self.store.verify().unwrap().problems, []);
        drop(self.store);
        assert_eq!(everything(&self.pair.open()), self.before);
    }
}

/// Every place at both ends, and some between.
fn places(len: usize) -> impl Iterator<Item = usize> {
    (0..len).filter(move |at| *at < 500 || at % 23 == 0 || at + 300 > len)
}

#[test]
fn an_export_cut_short_anywhere_is_refused() {
    let store = filled();
    let untouched = Untouched::new();
    for format in FORMATS {
        let bytes = exported(&store, format);
        for end in places(bytes.len()) {
            let error = untouched.refuses(&bytes[..end]);
            assert!(matches!(error, ImportError::CutShort { .. }), "{format:?} {end}: {error}");
        }
    }
    untouched.stays();
}

#[test]
fn an_export_with_a_wrong_bit_anywhere_is_refused() {
    let store = filled();
    let untouched = Untouched::new();
    for format in FORMATS {
        let bytes = exported(&store, format);
        for at in places(bytes.len()) {
            let mut wrong = bytes.clone();
            wrong[at] ^= 1 << (at % 8);
            untouched.refuses(&wrong);
        }
        let longer = [&*bytes, b"\n"].concat();
        assert!(untouched.refuses(&longer).to_string().contains("follows the end"));
        assert!(untouched.refuses(&bytes.repeat(2)).to_string().contains("follows the end"));
    }
    untouched.stays();
}

#[test]
fn damage_is_named_by_frame_and_line() {
    let store = filled();
    let untouched = Untouched::new();
    let bundle = exported(&store, Format::Bundle);
    let at = bundle.windows(5).position(|bytes| bytes == b"Moss.").unwrap();
    let mut wrong = bundle.clone();
    wrong[at] ^= 1;
    let error = untouched.refuses(&wrong);
    let ImportError::Damaged { at: Place::Frame(frame), .. } = error else { panic!("{error}") };
    assert!(frame > 10 && error.to_string().contains(&format!("frame {frame}")), "{error}");

    let mut lines: Vec<String> = everything(&store).lines().map(str::to_owned).collect();
    lines[7] = "{\"kind\":\"turn\"}".to_owned();
    let error = untouched.refuses((lines.join("\n") + "\n").as_bytes());
    assert!(error.to_string().contains("line 8"), "{error}");
    untouched.stays();
}

#[test]
fn what_is_no_export_and_what_is_newer_is_refused() {
    let untouched = Untouched::new();
    for other in [&b"my letters"[..], b"{\"kind\":\"thesis\"}\n", b"Garret journal\r\n", b"[]"] {
        let error = untouched.refuses(other);
        assert!(matches!(error, ImportError::NotABundle), "{error}");
    }
    let mut bundle = exported(&filled(), Format::Bundle);
    bundle[16] = 9;
    let line = b"{\"kind\":\"garret\",\"version\":9,\"language\":\"new\"}\n".to_vec();
    for newer in [bundle, line] {
        let error = untouched.refuses(&newer);
        assert!(matches!(error, ImportError::Newer { found: 9, known: 1 }), "{error}");
    }
    untouched.stays();
}

#[test]
fn a_session_whose_name_is_taken_is_refused_or_renamed() {
    let store = filled();
    let bytes = exported(&store, Format::Bundle);
    let before = everything(&store);
    let error = store.import(&*bytes, Taken::Refuse).unwrap_err();
    assert!(matches!(error, ImportError::SessionExists { .. }), "{error}");
    assert_eq!(everything(&store), before);

    let (sessions, had) = (store.sessions().unwrap(), facts(&store));
    for number in 2..4 {
        let report = store.import(&*bytes, Taken::Rename).unwrap();
        assert_eq!(report.renamed.len(), sessions.len());
        for (from, to) in &report.renamed {
            assert_eq!(to.as_str(), format!("{from}-{number}"));
            let said = |id| {
                store.with_turns(id, 1, |turns| {
                    turns.iter().map(|turn| turn.user.to_owned()).collect::<Vec<_>>()
                })
            };
            assert_eq!(said(from).unwrap(), said(to).unwrap());
        }
        assert_eq!(report.known_facts, report.counts.facts);
        assert_eq!(facts(&store), had, "no fact is there twice");
        assert_eq!(store.verify().unwrap().problems, []);
    }
    assert_eq!(store.sessions().unwrap().len(), 3 * sessions.len());
}

#[test]
fn a_long_name_makes_room_for_its_number() {
    let store = empty();
    let id = "\u{e9}".repeat(32).parse().unwrap();
    let at =
        garret_core::time::WallTime { unix_ms: 1, confidence: garret_core::time::Confidence::Good };
    store.accept(&id, "hello", at).unwrap();
    let bytes = exported(&store, Format::Lines);
    let report = store.import(&*bytes, Taken::Rename).unwrap();
    assert_eq!(report.renamed[0].1.as_str(), format!("{}-2", "\u{e9}".repeat(31)));
}

/// Lines of an export with some of them changed, and an end that fits.
fn changed(store: &Store, change: impl Fn(&str) -> Vec<String>) -> Vec<u8> {
    let lines = everything(store);
    let mut counts = BundleCountsLine::default();
    let mut changed = Vec::new();
    for line in lines.lines().filter(|line| !line.contains("\"kind\":\"end\"")) {
        for line in change(line) {
            counts.count(&line);
            changed.extend(line.into_bytes());
            changed.push(b'\n');
        }
    }
    changed.extend(counts.end().into_bytes());
    changed
}

#[derive(Default)]
struct BundleCountsLine([u64; 7]);

impl BundleCountsLine {
    const KINDS: [&str; 6] = ["session", "turn", "reply", "fact", "entity", "link"];

    fn count(&mut self, line: &str) {
        if line.contains("\"kind\":\"garret\"") {
            return;
        }
        let kind = |kind: &&str| line.starts_with(&format!("{{\"kind\":\"{kind}\""));
        if let Some(kind) = Self::KINDS.iter().position(kind) {
            self.0[kind] += 1;
        }
        self.0[6] += 1;
    }

    fn end(&self) -> String {
        let counts = Self::KINDS.iter().zip(["s", "s", "", "s", "", "s"]).zip(self.0);
        let plural = |kind: &str| match kind {
            "reply" => "replies".to_owned(),
            "entity" => "entities".to_owned(),
            kind => format!("{kind}s"),
        };
        let counts = counts.map(|((kind, _), count)| format!("\"{}\":{count}", plural(kind)));
        let counts: Vec<String> = counts.collect();
        let (counts, records) = (counts.join(","), self.0[6]);
        format!("{{\"kind\":\"end\",\"counts\":{{{counts},\"records\":{records}}}}}\n")
    }
}

/// People may change an export, as long as it makes sense.
#[test]
fn lines_that_were_changed_by_hand_are_taken() {
    let store = filled();
    let bytes = changed(&store, |line| vec![line.replace("Bergen", "Troms\u{f8}")]);
    let other = empty();
    other.import(&*bytes, Taken::Refuse).unwrap();
    assert_eq!(everything(&other).matches("Troms\u{f8}").count(), 2);
    assert_eq!(other.verify().unwrap().problems, []);
}

#[test]
fn lines_that_make_no_sense_are_refused() {
    let store = filled();
    let untouched = Untouched::new();
    let is = |line: &str, kind: &str| line.starts_with(&format!("{{\"kind\":\"{kind}\""));
    let swap = |kind: &'static str, from: &'static str, to: &'static str| {
        changed(&store, |line| {
            vec![if is(line, kind) { line.replacen(from, to, 1) } else { line.to_owned() }]
        })
    };
    let without = |kind: &'static str, n: usize| {
        let seen = std::cell::Cell::new(0);
        changed(&store, |line| {
            seen.set(seen.get() + usize::from(is(line, kind)));
            if is(line, kind) && seen.get() == n { vec![] } else { vec![line.to_owned()] }
        })
    };
    let twice = |kind: &'static str| {
        changed(&store, |line| vec![line.to_owned(); 1 + usize::from(is(line, kind))])
    };
    let none = changed(&store, |line| vec![line.to_owned()]);
    assert!(empty().import(&*none, Taken::Refuse).is_ok());
    let mut others = Vec::new();
    for (wrong, expected) in [
        (without("counters", 1), "too early"),
        (without("session", 1), "next turn"),
        (without("turn", 1), "answers"),
        (without("entity", 1), "subject isn't there"),
        (without("fact", 1), "isn't there"),
        (without("fact", 2), "isn't there"),
        (twice("counters"), "twice"),
        (twice("session"), "missing"),
        (twice("turn"), "next turn"),
        (twice("reply"), "answers"),
        (twice("entity"), "number"),
        (twice("fact"), "number"),
        (swap("session", "\"turns\":", "\"turns\":1"), "missing"),
        (swap("session", "\"id\":\"", "\"id\":\" "), "white space"),
        (swap("session", "\"activity\":", "\"activity\":1000"), "rank"),
        (swap("session", "\"number\":", "\"number\":1000"), "number"),
        (swap("turn", "\"speaker\":\"Ada\"", "\"speaker\":\"user\""), "speaker"),
        (swap("turn", "\"clock\":\"", "\"clock\":\"x"), "clock"),
        (swap("reply", "\"finish\":\"", "\"finish\":\"x"), "finish"),
        (swap("reply", "\"model_fingerprint\":\"", "\"model_fingerprint\":\"0"), "hexadecimal"),
        (swap("fact", "\"valid_at_ms\":10,", "\"valid_at_ms\":1000,"), "ends before"),
        (swap("fact", "\"superseded_by\":2", "\"superseded_by\":1"), "replaced itself"),
        (swap("fact", "\"superseded_by\":2", "\"superseded_by\":90"), "never given"),
        (swap("fact", "\"valid_to_ms\":30,", "\"valid_to_ms\":40,"), "same time"),
        (swap("fact", "\"text\":\"Ada likes tea.\"", "\"text\":\" \""), "no words"),
        (swap("fact", "\"confidence\":1.0", "\"confidence\":1.5"), "confidence"),
        (swap("fact", "\"turn\":1", "\"turn\":null"), "turn"),
        (swap("usage", "\"fact\":1", "\"fact\":0"), "never given"),
        (swap("link", "\"to\":\"f", "\"to\":\"f100"), "never given"),
        (swap("link", "\"from\":\"f", "\"from\":\"x"), "links nothing"),
        (swap("entity", "\"name\":\"Ada\"", "\"name\":\" \""), "name"),
        (swap("counters", "\"next_fact\":", "\"next_fact\":999999999999999"), "out of range"),
        (swap("counters", "\"next_fact\":", "\"facts\":"), "facts"),
    ] {
        let error = untouched.refuses(&wrong);
        let named = matches!(error, ImportError::Damaged { at: Place::Line(_), .. });
        if !named || !error.to_string().contains(expected) {
            others.push(format!("{expected}: {error}"));
        }
    }
    assert_eq!(others, [""; 0]);
    untouched.stays();
}

/// What people and other programs rely on.
#[test]
fn lines_say_what_there_is() {
    let lines = everything(&filled());
    let lines: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).collect::<Vec<_>>();
    assert_eq!(lines[0]["namespace"], NAMESPACE);
    let turn = of("turn").into_iter().find(|turn| turn["speaker"] == "Ada").unwrap().clone();
    let expected = serde_json::json!({
        "kind": "turn", "session": "letters", "turn": 1, "speaker": "Ada",
        "text": "The bees have swarmed.", "at": "1970-01-01T00:00:00.005Z", "at_ms": 5,
        "clock": "good",
    });
    assert_eq!(turn, expected);
    let reply = of("reply").into_iter().find(|reply| reply["text"] == "Where to?").unwrap();
    assert_eq!((&reply["finish"], &reply["tokens"]), (&"stop".into(), &serde_json::json!([])));
    let fact = of("fact")[0];
    assert_eq!((&fact["id"], &fact["text"]), (&1.into(), &"Ada lives in Oslo.".into()));
    assert_eq!((&fact["valid_to_ms"], &fact["superseded_by"]), (&20.into(), &3.into()));
    assert_eq!(fact["quote"], "I keep bees");
    assert_eq!(of("link")[0]["link"], "derived_from");
    assert_eq!(lines.last().unwrap()["counts"]["facts"], of("fact").len());
}

/// `FORMAT.md`, "Bundles", written out by hand.
#[test]
fn the_bytes_of_a_bundle_are_those_of_the_format() {
    let bytes = exported(&empty(), Format::Bundle);
    let mut expected = b"Garret bundle\r\n\x1a\x01\0\0\0".to_vec();
    expected.extend(u16::try_from(NAMESPACE.len()).unwrap().to_le_bytes());
    expected.extend(NAMESPACE.bytes());
    let seal = |bytes: &mut Vec<u8>| {
        let check = sha2::Sha256::digest(&*bytes);
        bytes.extend(&check[..8]);
    };
    seal(&mut expected);
    // Counters: variant 0; next session 1, activity 0, next fact 1, next entity 1.
    expected.extend([5, 0, 0, 0, 0, 1, 0, 1, 1]);
    seal(&mut expected);
    let hash = sha2::Sha256::digest(&*expected);
    // The end: variant 9; no sessions, turns, replies, facts, entities or links, one record.
    expected.extend([41, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 1, 1]);
    expected.extend(hash);
    seal(&mut expected);
    assert_eq!(bytes, expected);
}

/// Two stores that know different things about the same person.
#[test]
fn facts_that_meet_each_other_keep_one_value_at_a_time() {
    let (store, other) = (filled(), empty());
    let at = garret_core::time::WallTime {
        unix_ms: 100,
        confidence: garret_core::time::Confidence::Good,
    };
    let lives = |text, object, valid_at| garret_storage::NewFact {
        text,
        subject: Some("ADA"),
        predicate: Some("lives in"),
        object: Some(object),
        valid_at: Some(valid_at),
        ..Default::default()
    };
    let rome = other.add_fact(&lives("Ada went to Rome.", "Rome", 15), at).unwrap().id;
    other.add_fact(&lives("Oslo, they say.", "oslo", 5), at).unwrap();
    other.import(&*exported(&store, Format::Bundle), Taken::Refuse).unwrap();
    assert_eq!(other.verify().unwrap().problems, []);
    assert_eq!(other.entities().unwrap().len(), 2, "ADA is Ada");
    let holds = |at: i64| {
        let filter = garret_storage::FactFilter {
            as_of: Some(at),
            subject: Some("Ada"),
            predicate: Some("lives_in"),
            ..Default::default()
        };
        let page = other.facts(&filter).unwrap();
        page.facts.iter().map(|fact| fact.object.clone().unwrap()).collect::<Vec<_>>().join(" ")
    };
    let moments = [4, 5, 14, 15, 19, 20, 29, 30, 1_000].map(holds);
    assert_eq!(moments, ["", "oslo", "oslo", "Rome", "Rome", "Moss", "Moss", "Bergen", "Bergen"]);
    let rome = other.fact(rome).unwrap().unwrap();
    assert_eq!((rome.valid_to, rome.latest), (Some(20), false));
}

/// Nothing, or all of it, at every moment that the power could go; with enough in it that pages go
/// to the device before the end.
#[test]
fn a_power_cut_during_an_import_leaves_all_or_nothing() {
    let source = filled();
    for turn in 0..12 {
        let text = format!("{turn} {}", "long letters ".repeat(40_000));
        apply(&source, &Op::Accept { session: 4, text, ms: turn }).unwrap();
    }
    let bundle = exported(&source, Format::Bundle);
    let mine = Op::Accept { session: 1, text: "mine".to_owned(), ms: 3 };
    let accept = |store: &Store| {
        apply(store, &mine).unwrap();
    };
    let import = |store: &Store| {
        store.import(&*bundle, Taken::Rename).unwrap();
    };
    let steps: [&dyn Fn(&Store); 2] = [&accept, &import];
    let mut dumps = Vec::new();
    let store = empty();
    dumps.push(model::dump(&store).unwrap());
    for step in &steps {
        step(&store);
        dumps.push(model::dump(&store).unwrap());
    }
    let run = Run::perform(Default::default(), &steps, |store, step| {
        step(store);
        false
    });
    let cuts = run.cuts();
    let (mut before, mut after) = (0, 0);
    for cut in cuts.iter().step_by((cuts.len() / 40).max(1)).chain(cuts.last()) {
        let images = run.survivors(*cut).swap_remove(0);
        let store = Pair::of(images).open();
        let found = model::dump(&store).unwrap();
        assert!(run.allowed(&dumps, *cut).contains(&found), "{cut:?}");
        assert_eq!(store.verify().unwrap().problems, [], "{cut:?}");
        before += usize::from(found == dumps[1]);
        after += usize::from(found == dumps[2]);
        // It goes on either way.
        apply(&store, &mine).unwrap();
    }
    assert!(before > 2 && after > 0, "{before} {after}");
}

/// A reader that fails in the middle.
#[test]
fn a_source_that_fails_imports_nothing() {
    struct Failing<'a>(&'a [u8]);
    impl std::io::Read for Failing<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            match self.0.read(out)? {
                0 => Err(std::io::Error::other("the stick was pulled out")),
                read => Ok(read),
            }
        }
    }
    let untouched = Untouched::new();
    for format in FORMATS {
        let bytes = exported(&filled(), format);
        let error = untouched.store.import(Failing(&bytes[..900]), Taken::Refuse).unwrap_err();
        assert!(matches!(error, ImportError::From { .. }), "{error}");
        assert!(error.to_string().contains("pulled out"), "{error}");
    }
    untouched.stays();
}

/// Whoever reads an export has all of it or an error.
#[test]
fn an_export_of_a_damaged_store_is_an_error() {
    let medium = RamMedium::new();
    fill(&open(&medium));
    let mut image = medium.snapshot();
    while let Some(at) = image.windows(12).position(|bytes| bytes == b"I keep bees.") {
        image[at] = b'U';
    }
    let store = open(&RamMedium::from_bytes(image));
    for format in FORMATS {
        let mut bytes = Vec::new();
        let error = store.export(&mut bytes, format).unwrap_err();
        assert!(error.to_string().contains("damaged turn record, turn 1"), "{error}");
        assert!(matches!(
            empty().import(&*bytes, Taken::Refuse),
            Err(ImportError::CutShort { .. })
        ));
    }
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    assert!(filled().export(Full, Format::Bundle).is_err());
}

#[test]
fn a_full_device_imports_nothing() {
    let bytes = exported(&filled(), Format::Bundle);
    let faults = garret_hal::media::Faults { capacity: Some(90_000), ..Default::default() };
    let medium = garret_hal::media::FaultyMedium::new(faults);
    let store = open(&medium);
    apply(&store, &Op::Accept { session: 4, text: "mine".to_owned(), ms: 3 }).unwrap();
    let before = everything(&store);
    let error = store.import(&*bytes, Taken::Refuse).unwrap_err();
    assert!(matches!(error, ImportError::Store(WriteError::Full)), "{error}");
    assert_eq!(everything(&store), before);
    medium.set_faults(garret_hal::media::Faults::default());
    let report: ImportReport = store.import(&*bytes, Taken::Refuse).unwrap();
    assert_ne!(report.counts, BundleCounts::default());
    assert_eq!(store.verify().unwrap().problems, []);
}
