use proptest::prelude::*;

use super::*;

const QUIET: Signals = Signals {
    fill: 0.2,
    topic_changed: Some(false),
    words: 12,
    freshness: false,
    anaphora: 0.0,
    hedge: 0.0,
    oblique: 0.0,
    anchored: false,
    spans: 0,
    contradiction: false,
    personal: false,
    tag_compact: false,
    tag_infer: false,
};
const FRESH: Signals = Signals { freshness: true, ..QUIET };
const CONTRADICTION: Signals = Signals { contradiction: true, ..QUIET };

fn decide(gate: &mut Gate, signals: &Signals) -> Decision {
    gate.decide(Mode::ColdStart, signals)
}

fn loud() -> Gate {
    let mut gate = Gate::default();
    assert!(decide(&mut gate, &CONTRADICTION).infer);
    gate
}

#[test]
fn a_quiet_message_runs_no_companion() {
    let mut gate = Gate::default();
    for _ in 0..50 {
        let decision = decide(&mut gate, &QUIET);
        assert!(!decision.infer && !decision.compact && !decision.extract);
        assert_eq!(decision.reasons, Reasons::default());
    }
}

#[test]
fn freshness_alone_never_fires() {
    let mut gate = Gate::default();
    for _ in 0..12 {
        assert!(!decide(&mut gate, &FRESH).infer);
    }
}

#[test]
fn freshness_and_a_date_fire_at_once() {
    let dated = Signals { anchored: true, spans: 1, ..FRESH };
    let decision = decide(&mut Gate::default(), &dated);
    assert!(decision.infer && !decision.compact);
    assert!(decision.reasons.has(Reason::FreshnessTied));
}

#[test]
fn a_tag_is_a_hard_floor() {
    let mut gate = Gate::default();
    let infer = Signals { tag_infer: true, ..QUIET };
    assert!(decide(&mut gate, &infer).infer);
    let compact = Signals { tag_compact: true, ..QUIET };
    assert!(decide(&mut gate, &compact).compact);
    let off = gate.decide(Mode::Off, &Signals { tag_infer: true, tag_compact: true, ..QUIET });
    assert!(!off.infer && !off.compact, "what is off stays off");
}

#[test]
fn a_gate_that_fired_is_quiet_again_within_five_quiet_turns() {
    let mut gate = Gate::default();
    let everything =
        Signals { freshness: true, anchored: true, anaphora: 1.0, hedge: 1.0, ..CONTRADICTION };
    for _ in 0..10 {
        assert!(decide(&mut gate, &everything).infer);
    }
    let fired = (0..5).filter(|_| decide(&mut gate, &QUIET).infer).count();
    assert!(fired < 5);
    assert!(!decide(&mut gate, &QUIET).infer);
}

/// An inference that is sure of itself must not ask for the next one for ever: with .95 at every
/// turn the score would settle at .44, above the lower threshold.
#[test]
fn a_sure_inference_does_not_latch() {
    let mut gate = loud();
    let mut fired = 0;
    for _ in 0..40 {
        gate.inferred(0.95);
        fired += u8::from(decide(&mut gate, &QUIET).infer);
    }
    assert!(fired <= 5, "{fired} of 40");
    gate.inferred(0.95);
    let noticed = decide(&mut gate, &CONTRADICTION);
    assert!(!noticed.reasons.has(Reason::Confidence) && noticed.infer);
    gate.inferred(0.95);
    assert!(decide(&mut gate, &QUIET).reasons.has(Reason::Confidence));
}

/// The lower threshold is for a conversation that just was hard to read, not for every later one.
#[test]
fn weak_signals_do_not_keep_the_lower_threshold_for_ever() {
    let mut gate = loud();
    for _ in 0..6 {
        decide(&mut gate, &FRESH);
    }
    assert!(!decide(&mut gate, &FRESH).infer);
}

#[test]
fn between_the_thresholds_what_ran_before_decides() {
    let weak = Signals { anaphora: 1.0, ..QUIET };
    assert!(!decide(&mut Gate::default(), &weak).infer);
    let mut gate = loud();
    let decision = decide(&mut gate, &weak);
    assert!(decision.infer);
    let mut gate = Gate::default();
    let filling = Signals { fill: 0.75, ..QUIET };
    assert!(!decide(&mut gate, &filling).compact);
    assert!(decide(&mut gate, &filling).compact, "0.2 and 0.8 of 0.2");
    assert!(decide(&mut gate, &QUIET).compact, "0.288 isn't below the lower threshold");
}

#[test]
fn addresses_in_an_empty_window_never_compact() {
    let mut gate = Gate::default();
    for _ in 0..30 {
        let links = Signals { fill: 0.3, spans: 12, anchored: true, ..QUIET };
        assert!(!decide(&mut gate, &links).compact);
    }
    let decision = decide(&mut gate, &Signals { fill: 0.66, ..QUIET });
    assert!(decision.compact && decision.reasons.has(Reason::Spans));
}

#[test]
fn a_full_window_compacts_in_every_mode() {
    for mode in [Mode::Off, Mode::ColdStart, Mode::Turbo] {
        let full = Signals { fill: 0.8, ..QUIET };
        assert!(Gate::default().decide(mode, &full).compact);
        let empty = Gate::default().decide(mode, &QUIET);
        assert!(!empty.compact);
        assert_eq!(empty.infer, mode == Mode::Turbo);
    }
}

#[test]
fn a_compaction_answers_what_asked_for_it() {
    let mut gate = Gate::default();
    let filling = Signals { fill: 0.79, spans: 5, ..QUIET };
    assert!(decide(&mut gate, &filling).compact);
    gate.compacted();
    assert!(!decide(&mut gate, &QUIET).compact);
    assert!(!decide(&mut gate, &Signals { fill: 0.66, ..QUIET }).compact);
}

#[test]
fn a_session_gone_back_to_begins_with_its_newest_message() {
    let gate = loud().reopened(&QUIET);
    assert_eq!(gate, Gate::default());
    let seeded = loud().reopened(&Signals { freshness: true, anaphora: 0.5, ..QUIET });
    let weak = Signals { anaphora: 0.5, ..QUIET };
    let mut seeded = seeded;
    let mut fresh = Gate::default();
    let with = decide(&mut seeded, &weak);
    let without = decide(&mut fresh, &weak);
    assert!((with.infer_score - without.infer_score - 0.25).abs() < 1e-6);
    let most = loud().reopened(&Signals { freshness: true, anaphora: 9.0, ..QUIET });
    assert!(most.infer <= INFER);
}

#[test]
fn a_confidence_counts_once() {
    let mut gate = Gate::default();
    gate.inferred(0.95);
    let first = decide(&mut gate, &QUIET);
    assert!(!first.infer && first.reasons.has(Reason::Confidence));
    assert!(!decide(&mut gate, &QUIET).reasons.has(Reason::Confidence));
}

/// Findings that no companion ever made have bits in gates that were stored.
#[test]
fn a_gate_that_was_stored_with_findings_is_read() {
    let mut bytes = loud().to_bytes();
    bytes[15] |= 0b110;
    assert_eq!(Gate::from_bytes(&bytes), Some(loud()));
}

#[test]
fn what_is_told_is_read_for_facts() {
    let told = Signals { personal: true, ..QUIET };
    let decision = decide(&mut Gate::default(), &told);
    assert!(decision.extract && !decision.infer && !decision.compact);
    assert!(decide(&mut Gate::default(), &CONTRADICTION).extract);
    assert!(!Gate::default().decide(Mode::Off, &told).extract);
}

#[test]
fn an_unknown_topic_says_nothing() {
    let unknown = Signals { topic_changed: None, words: 2, ..QUIET };
    assert!(!decide(&mut Gate::default(), &unknown).infer);
    let changed = Signals { topic_changed: Some(true), ..unknown };
    let decision = decide(&mut Gate::default(), &changed);
    assert!(decision.reasons.has(Reason::TopicChanged));
    assert!(decision.infer_score >= 0.5);
}

#[test]
fn every_reason_has_a_bit_and_a_name_of_its_own() {
    let mut bits = 0;
    for reason in Reason::ALL {
        assert_eq!(bits & reason.bit(), 0, "{reason}");
        bits |= reason.bit();
        let same = Reason::ALL.iter().filter(|other| other.as_str() == reason.as_str());
        assert_eq!(same.count(), 1);
    }
    for mode in [Mode::Off, Mode::ColdStart, Mode::Turbo] {
        assert_eq!(mode.as_str().parse(), Ok(mode));
    }
    assert_eq!("on".parse::<Mode>(), Err(UnknownMode));
}

fn signals() -> impl Strategy<Value = Signals> {
    let shares = prop::array::uniform4(any::<f32>());
    let numbers = (shares, any::<u32>(), any::<u8>());
    let flags = prop::array::uniform6(any::<bool>());
    (numbers, flags, any::<Option<bool>>()).prop_map(|(numbers, flags, topic_changed)| {
        let ([fill, anaphora, hedge, oblique], words, spans) = numbers;
        let [freshness, anchored, contradiction, personal, tag_compact, tag_infer] = flags;
        Signals {
            fill,
            topic_changed,
            words,
            freshness,
            anaphora,
            hedge,
            oblique,
            anchored,
            spans,
            contradiction,
            personal,
            tag_compact,
            tag_infer,
        }
    })
}

proptest! {
    /// Sensors may fail as they like, with what isn't a number too: scores stay in range, and after
    /// five quiet messages the gate is quiet.
    #[test]
    fn whatever_sensors_say_the_gate_stays_sane(
        noise in prop::collection::vec((signals(), any::<f32>()), 0..20),
    ) {
        let mut gate = Gate::default();
        for (signals, confidence) in &noise {
            let decision = decide(&mut gate, signals);
            prop_assert!((0.0..=MOST).contains(&decision.infer_score));
            prop_assert!((0.0..=MOST).contains(&decision.compact_score));
            prop_assert!(decision.infer || !signals.tag_infer);
            gate.inferred(*confidence);
            prop_assert_eq!(Gate::from_bytes(&gate.to_bytes()), Some(gate));
        }
        gate.inferred(0.0);
        gate.compacted();
        for _ in 0..5 {
            decide(&mut gate, &QUIET);
        }
        let decision = decide(&mut gate, &QUIET);
        prop_assert!(!decision.infer && !decision.compact);
    }

    #[test]
    fn any_bytes_are_a_sane_gate_or_none(
        bytes in prop::collection::vec(any::<u8>(), 0..=20), valid in any::<bool>(),
    ) {
        let mut bytes = bytes;
        if valid {
            bytes.resize(Gate::BYTES, 0);
            bytes[0] = 1;
            bytes[Gate::BYTES - 1] = 0;
        }
        if let Some(mut gate) = Gate::from_bytes(&bytes) {
            let decision = decide(&mut gate, &QUIET);
            prop_assert!((0.0..=MOST).contains(&decision.infer_score));
        }
    }
}
