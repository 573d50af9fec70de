//! The power goes at every moment of a story about facts: each write is there whole, with all that
//! it ends, or not at all.

use garret_hal::media::RamMedium;

use crate::crash::{Images, Run};
use crate::facts_model::{Answer, Model, Op, Row, apply, dump, in_order, workload};
use crate::model::Pair;

/// The reference before the first and after each operation.
fn history(ops: &[Op]) -> Vec<Model> {
    let mut models = vec![Model::default()];
    for op in ops {
        let mut model = models.last().unwrap().clone();
        assert!(matches!(model.apply(op), Answer::Added(_) | Answer::Done), "{op:?}");
        models.push(model);
    }
    models
}

fn survivor(images: &Images) -> Vec<Row> {
    let pair = Pair::<RamMedium>::of(images.clone());
    let found = dump(&pair.open());
    assert!(pair.bytes() == *images, "opening and reading wrote");
    found
}

#[test]
fn a_change_of_facts_is_whole_or_not_there_at_any_cut() {
    // What kills a store here is the cut.
    let ops: Vec<_> = workload().into_iter().filter(|op| !matches!(op, Op::Kill)).collect();
    let models = history(&ops);
    let mut nth = 0;
    let run = Run::perform(Images::default(), &ops, |store, op| {
        let model = &models[nth];
        nth += 1;
        if matches!(op, Op::Reopen) {
            return true;
        }
        let expected = in_order(model.clone().apply(op));
        assert_eq!(in_order(apply(store, model, op).unwrap()), expected);
        false
    });
    let rows: Vec<_> = models.into_iter().map(|model| model.facts).collect();
    let (mut images, mut in_flight) = (0, 0);
    for cut in run.cuts() {
        let allowed = run.allowed(&rows, cut);
        for survivors in run.survivors(cut) {
            let found = survivor(&survivors);
            assert!(allowed.contains(&found), "cut {cut:?}: {found:#?}");
            images += 1;
            in_flight += usize::from(found != allowed[0]);
        }
    }
    eprintln!("{images} images, {in_flight} with the operation under way");
    assert!(images > 400, "the story shrank to {images} images");
    assert!(in_flight > 0, "no cut came after the last write and before its acknowledgement");
}
