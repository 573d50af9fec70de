//! The faulty medium against a simple model, and the shape of what it leaves.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// A workload; each write's bytes are decided by its place in it, never zero.
#[derive(Clone, Debug)]
enum Step {
    Write(u64, usize),
    SetLen(u64),
    Sync,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..4_000_u64, 1..2_000_usize).prop_map(|(at, len)| Step::Write(at, len)),
        1 => (0..4_000_u64).prop_map(Step::SetLen),
        1 => Just(Step::Sync),
    ]
}

fn workload() -> impl Strategy<Value = Vec<Step>> {
    vec(step(), 1..12)
}

fn filling(nth: usize, len: usize) -> Vec<u8> {
    vec![u8::try_from(nth + 1).unwrap(); len]
}

/// Runs until the first refusal; how many steps were acknowledged, and that refusal.
fn run(medium: &FaultyMedium, steps: &[Step]) -> (usize, Option<MediumError>) {
    for (nth, step) in steps.iter().enumerate() {
        let done = match step {
            Step::Write(at, len) => medium.write_at(*at, &filling(nth, *len)),
            Step::SetLen(len) => medium.set_len(*len),
            Step::Sync => medium.sync(),
        };
        if let Err(error) = done {
            return (nth, Some(error));
        }
    }
    (steps.len(), None)
}

/// The steps on a vector.
fn model(steps: &[Step]) -> Vec<u8> {
    let mut data = Vec::new();
    for (nth, step) in steps.iter().enumerate() {
        match step {
            Step::Write(at, len) => {
                let range = *at as usize..*at as usize + len;
                data.resize(data.len().max(range.end), 0);
                data[range].copy_from_slice(&filling(nth, *len));
            }
            Step::SetLen(len) => data.resize(*len as usize, 0),
            Step::Sync => {}
        }
    }
    data
}

fn last_sync(steps: &[Step]) -> usize {
    steps.iter().rposition(|step| matches!(step, Step::Sync)).map_or(0, |last| last + 1)
}

/// The value that each sector-aligned piece of `bytes` (at `offset`) has throughout, if one.
fn pieces(image: &[u8], offset: usize, len: usize) -> Vec<Option<u8>> {
    let mut out = Vec::new();
    let mut at = offset;
    while at < offset + len {
        let end = (offset + len).min((at / SECTOR + 1) * SECTOR);
        let piece = &image[at..end];
        out.push(piece.iter().all(|byte| *byte == piece[0]).then_some(piece[0]));
        at = end;
    }
    out
}

fn cut_after_bytes(n: u64) -> Faults {
    Faults { cut_after_bytes: Some(n), ..Faults::default() }
}

proptest! {
    /// Synced state is the model's at its last sync, and every unsynced byte of an image is one
    /// that some step could have put there.
    #[test]
    fn an_image_holds_what_was_synced_and_nothing_invented(steps in workload(), seed: u64) {
        let medium = FaultyMedium::new(Faults::default());
        run(&medium, &steps);
        let (durable, unsynced) = steps.split_at(last_sync(&steps));
        prop_assert_eq!(medium.image(), model(&steps));
        prop_assert_eq!(medium.durable_image(), model(durable));
        prop_assert_eq!(medium.image_after_cut(0), model(durable));
        prop_assert_eq!(medium.image_after_cut(1), model(&steps));

        let image = medium.image_after_cut(seed);
        prop_assert_eq!(&image, &medium.image_after_cut(seed));
        let old = model(durable);
        let shrunk = unsynced.iter().any(|step| matches!(step, Step::SetLen(_)));
        for (at, byte) in image.iter().enumerate() {
            let written = unsynced.iter().enumerate().any(|(nth, step)| {
                let covers = matches!(step, Step::Write(from, len)
                    if (*from as usize..*from as usize + len).contains(&at));
                covers && usize::from(*byte) == durable.len() + nth + 1
            });
            let kept = old.get(at).copied().unwrap_or(0) == *byte;
            prop_assert!(written || kept || (shrunk && *byte == 0), "byte {at} is {byte}");
        }
    }

    /// Without a length change nothing can take synced bytes away.
    #[test]
    fn a_cut_never_shortens_what_was_synced(steps in workload(), seed: u64) {
        let medium = FaultyMedium::new(Faults::default());
        run(&medium, &steps);
        let unsynced = &steps[last_sync(&steps)..];
        prop_assume!(!unsynced.iter().any(|step| matches!(step, Step::SetLen(_))));
        prop_assert!(medium.image_after_cut(seed).len() >= medium.durable_image().len());
    }

    /// A run that loses power and the recording of a run that doesn't agree on what is left.
    #[test]
    fn a_recording_tells_what_a_cut_run_leaves(
        steps in workload(),
        cut in 0.0..1.0_f64,
        seed: u64,
    ) {
        let whole = FaultyMedium::new(Faults::default());
        prop_assert_eq!(run(&whole, &steps).1, None);
        let recording = whole.recording();
        prop_assert_eq!(recording.ops().len() as u64, whole.ops());

        let limit = (whole.bytes_written() as f64 * cut) as u64;
        let torn = FaultyMedium::new(cut_after_bytes(limit));
        let (acknowledged, error) = run(&torn, &steps);
        if limit < whole.bytes_written() {
            prop_assert_eq!(error, Some(MediumError::PowerCut));
        }
        prop_assert_eq!(torn.bytes_written(), limit);
        let last = torn.ops() as usize - acknowledged;
        let at = if last == 0 {
            Cut { ops: acknowledged, torn: 0 }
        } else {
            let Some(Op::Write { bytes, .. }) = torn.recording().ops().last().cloned() else {
                return Err(TestCaseError::fail("only a write can be torn"));
            };
            Cut { ops: acknowledged, torn: bytes.len() }
        };
        prop_assert_eq!(torn.image_after_cut(seed), recording.image_after_cut(at, seed));
    }

    #[test]
    fn operation_and_sync_limits_cut_between_steps(steps in workload(), limit in 0..14_u64) {
        let by_ops = FaultyMedium::new(Faults { cut_after_ops: Some(limit), ..Faults::default() });
        let (acknowledged, error) = run(&by_ops, &steps);
        prop_assert_eq!(acknowledged as u64, limit.min(steps.len() as u64));
        prop_assert_eq!(error.is_some(), limit < steps.len() as u64);
        prop_assert_eq!(by_ops.image(), model(&steps[..acknowledged]));

        let by_syncs = Faults { cut_after_syncs: Some(limit), ..Faults::default() };
        let by_syncs = FaultyMedium::new(by_syncs);
        let (acknowledged, _) = run(&by_syncs, &steps);
        let syncs = |steps: &[Step]| steps.iter().filter(|s| matches!(s, Step::Sync)).count();
        prop_assert_eq!(by_syncs.syncs(), limit.min(syncs(&steps) as u64));
        prop_assert!(acknowledged == steps.len() || !by_syncs.has_power());
    }

    #[test]
    fn a_full_medium_keeps_what_fits_and_works_on(steps in workload(), capacity in 0..4_000_u64) {
        let medium = FaultyMedium::new(Faults { capacity: Some(capacity), ..Faults::default() });
        let (acknowledged, error) = run(&medium, &steps);
        prop_assert!(medium.len()? <= capacity);
        let before = model(&steps[..acknowledged]);
        if error.is_none() {
            prop_assert_eq!(medium.image(), before);
            return Ok(());
        }
        prop_assert_eq!(error, Some(MediumError::Full));
        let mut with_refused = model(&steps[..=acknowledged]);
        prop_assert!(with_refused.len() as u64 > capacity);
        with_refused.truncate(medium.len()? as usize);
        prop_assert_eq!(medium.image(), with_refused);

        medium.set_faults(Faults::default());
        prop_assert_eq!(run(&medium, &steps[acknowledged..]).1, None);
    }
}

/// A disk that is full still takes what overwrites.
#[test]
fn a_full_medium_can_be_overwritten() {
    let faults = Faults { capacity: Some(4), ..Faults::default() };
    let medium = FaultyMedium::with_image(b"abcdef".to_vec(), faults);
    assert_eq!(medium.write_at(3, b"DEF"), Ok(()));
    assert_eq!(medium.write_at(5, b"FG"), Err(MediumError::Full));
    assert_eq!(medium.set_len(7), Err(MediumError::Full));
    assert_eq!(medium.image(), b"abcDEF");
    assert_eq!(medium.set_len(2), Ok(()));
}

#[test]
fn every_limit_of_bytes_is_a_different_moment() {
    let steps = [Step::Write(0, 3), Step::Sync, Step::Write(1, 4), Step::Sync, Step::Write(0, 2)];
    let whole = FaultyMedium::new(Faults::default());
    run(&whole, &steps);
    let seen: Vec<_> = (0..=whole.bytes_written())
        .map(|limit| {
            let medium = FaultyMedium::new(cut_after_bytes(limit));
            let (acknowledged, _) = run(&medium, &steps);
            (acknowledged, medium.durable_image().len(), medium.image().len())
        })
        .collect();
    let expected = [
        (0, 0, 0),
        (0, 0, 1),
        (0, 0, 2),
        (1, 0, 3), // written, the sync never came
        (2, 3, 3),
        (2, 3, 3),
        (2, 3, 4),
        (3, 3, 5),
        (4, 5, 5),
        (5, 5, 5),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn without_power_nothing_answers() {
    let medium = FaultyMedium::with_image(b"image".to_vec(), cut_after_bytes(0));
    assert!(!medium.has_power());
    assert_eq!(medium.len(), Err(MediumError::PowerCut));
    assert_eq!(medium.is_empty(), Err(MediumError::PowerCut));
    assert_eq!(medium.read_at(0, &mut [0]), Err(MediumError::PowerCut));
    assert_eq!(medium.write_at(0, b"x"), Err(MediumError::PowerCut));
    assert_eq!(medium.write_at(0, b""), Err(MediumError::PowerCut));
    assert_eq!(medium.set_len(0), Err(MediumError::PowerCut));
    assert_eq!(medium.sync(), Err(MediumError::PowerCut));
    assert_eq!(medium.ops(), 0);
    assert_eq!(medium.image_after_cut(9), b"image");
}

/// One unsynced write over four sectors of synced ones: each sector is wholly old or wholly new,
/// and among a few hundred seeds every one of the 16 combinations is seen.
#[test]
fn sectors_survive_whole_and_in_any_combination() {
    assert_eq!(SECTOR, 512, "what devices of every kind write at least at once");
    let medium = FaultyMedium::with_image(vec![1; 4 * SECTOR], Faults::default());
    medium.write_at(100, &[2; 3 * SECTOR]).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..400 {
        let image = medium.image_after_cut(seed);
        assert_eq!(image[..100], [1; 100]);
        assert_eq!(image[100 + 3 * SECTOR..], [1; SECTOR - 100]);
        let pieces = pieces(&image, 100, 3 * SECTOR);
        assert!(pieces.iter().all(Option::is_some), "seed {seed} tore a sector: {pieces:?}");
        seen.insert(pieces);
    }
    assert_eq!(seen.len(), 16);
}

/// A file system may keep a longer length and lose the data, or lose both, or only the length
/// change; each must be seen.
#[test]
fn growth_and_length_changes_have_fates_of_their_own() {
    let grown = FaultyMedium::with_image(vec![1; 10], Faults::default());
    grown.write_at(10, &[2; 10]).unwrap();
    let images: Vec<_> = (0..200).map(|seed| grown.image_after_cut(seed)).collect();
    let zeros = [[1; 10], [0; 10]].concat();
    let whole = [[1; 10], [2; 10]].concat();
    for image in [vec![1; 10], zeros, whole] {
        assert!(images.contains(&image), "{image:?} never seen");
    }

    let shrunk = FaultyMedium::with_image(vec![1; 10], Faults::default());
    shrunk.set_len(4).unwrap();
    let lengths: Vec<_> = (0..200).map(|seed| shrunk.image_after_cut(seed).len()).collect();
    assert!(lengths.contains(&4) && lengths.contains(&10));
    assert!(lengths.iter().all(|len| [4, 10].contains(len)));
}

#[test]
fn a_later_write_may_survive_an_earlier_one() {
    let medium = FaultyMedium::with_image(vec![0; 2 * SECTOR], Faults::default());
    medium.write_at(0, b"first").unwrap();
    medium.write_at(SECTOR as u64, b"second").unwrap();
    let reordered = (0..200)
        .map(|seed| medium.image_after_cut(seed))
        .any(|image| &image[..5] == b"\0\0\0\0\0" && &image[SECTOR..SECTOR + 6] == b"second");
    assert!(reordered);
}

#[test]
fn cuts_visit_every_moment_in_order() {
    let medium = FaultyMedium::new(Faults::default());
    medium.write_at(0, b"abcde").unwrap();
    medium.sync().unwrap();
    medium.set_len(2).unwrap();
    let recording = medium.recording();
    let cuts: Vec<_> = recording.cuts(2).map(|cut| (cut.ops, cut.torn)).collect();
    assert_eq!(cuts, [(0, 0), (0, 2), (0, 4), (1, 0), (2, 0), (3, 0)]);
    assert_eq!(recording.cuts(0).count(), 8);
    let images: Vec<_> = recording.cuts(2).map(|cut| recording.image_after_cut(cut, 1)).collect();
    let expected: [&[u8]; 6] = [b"", b"ab", b"abcd", b"abcde", b"abcde", b"ab"];
    assert_eq!(images, expected);
    let beyond = Cut { ops: 99, torn: 99 };
    assert_eq!(recording.image_after_cut(beyond, 0), b"abcde");
}

#[test]
fn a_recording_knows_where_it_began() {
    let medium = FaultyMedium::with_image(b"before".to_vec(), Faults::default());
    medium.write_at(0, b"after").unwrap();
    assert_eq!(medium.recording().base().snapshot(), b"before");
}

#[test]
fn handles_share_one_medium_across_threads() {
    let medium = FaultyMedium::new(Faults::default());
    std::thread::scope(|scope| {
        for nth in 0..4_u8 {
            let handle = medium.clone();
            scope.spawn(move || handle.write_at(u64::from(nth) * 8, &[nth + 1; 8]).unwrap());
        }
    });
    assert_eq!(medium.ops(), 4);
    assert_eq!(medium.bytes_written(), 32);
    assert_eq!(medium.image(), [[1; 8], [2; 8], [3; 8], [4; 8]].concat());
}

#[test]
fn media_of_one_device_lose_power_together_and_sync_alone() {
    let one = FaultyMedium::new(Faults::default());
    let two = one.beside(b"two".to_vec());
    one.write_at(0, b"first").unwrap();
    two.write_at(0, b"T").unwrap();
    two.sync().unwrap();
    one.write_at(0, b"later").unwrap();
    assert_eq!((one.ops(), two.ops(), one.syncs()), (4, 4, 1));
    assert_eq!(
        (one.durable_image(), two.durable_image()),
        (Vec::new(), b"Two".to_vec()),
        "a sync is of its own medium"
    );
    assert_eq!((one.image_after_cut(1), two.image_after_cut(0)), (b"later".into(), b"Two".into()));

    let recording = two.recording();
    let owners: Vec<_> = (0..5).map(|op| recording.owner(op)).collect();
    assert_eq!(owners, [Some(0), Some(1), Some(1), Some(0), None]);
    let images = |ops, torn, seed| recording.images_after_cut(Cut { ops, torn }, seed);
    assert_eq!(images(2, 0, 0), [b"".to_vec(), b"two".to_vec()]);
    assert_eq!(images(2, 0, 1), [b"first".to_vec(), b"Two".to_vec()]);
    assert_eq!(images(3, 0, 0), [b"".to_vec(), b"Two".to_vec()]);
    assert_eq!(images(3, 2, 1), [b"larst".to_vec(), b"Two".to_vec()]);
    assert_eq!(images(1, 1, 1), [b"first".to_vec(), b"Two".to_vec()]);

    two.set_faults(Faults { cut_after_ops: Some(4), ..Faults::default() });
    assert_eq!(one.sync(), Err(MediumError::PowerCut));
    assert_eq!(two.len(), Err(MediumError::PowerCut));
}

#[test]
fn media_of_one_device_share_its_room() {
    let one = FaultyMedium::new(Faults { capacity: Some(10), ..Faults::default() });
    let two = one.beside(vec![2; 4]);
    assert_eq!(one.write_at(0, &[1; 7]), Err(MediumError::Full));
    assert_eq!(one.image(), [1; 6]);
    assert_eq!(two.set_len(5), Err(MediumError::Full));
    one.set_len(1).unwrap();
    two.set_len(9).unwrap();
    two.write_at(8, &[2]).unwrap();
    assert_eq!(one.write_at(1, &[1]), Err(MediumError::Full));
}

/// The fates of two media aren't the same, or a pair would survive in step too often.
#[test]
fn media_of_one_device_have_fates_of_their_own() {
    let one = FaultyMedium::new(Faults::default());
    let two = one.beside(Vec::new());
    one.write_at(0, &[1; 16 * SECTOR]).unwrap();
    two.write_at(0, &[1; 16 * SECTOR]).unwrap();
    let recording = one.recording();
    let cut = Cut { ops: 2, torn: 0 };
    let differs = |seed: &u64| {
        let images = recording.images_after_cut(cut, *seed);
        images[0] != images[1]
    };
    assert!((2..50).filter(differs).count() > 40);
    assert!(!differs(&0) && !differs(&1));
}
