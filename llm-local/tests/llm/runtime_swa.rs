//! A model with sliding-window attention: taking back more than a window must not go wrong.
use crate::support::runtime::*;
use garret_core::model::ModelRole;
use garret_llm::{Backend, LlamaChat, Model, ModelOptions};

/// Issue llama.cpp#21831 and its kin: after a rollback deeper than the window the logits are those
/// of a fresh context, up to rounding; and what comes before the rollback isn't decoded again.
#[test]
fn a_deep_rollback_gives_the_logits_of_a_fresh_context() {
    let Some(path) = find(SLIDING) else { return };
    let model = Model::load(Backend::start().unwrap(), &path, ModelOptions::default()).unwrap();
    let window = model.swa().expect("the file names its window").tokens as usize;
    let used = LlamaChat::spawn(model.clone(), options(2_048, 64)).unwrap();
    let fresh = LlamaChat::spawn(model.clone(), options(2_048, 64)).unwrap();
    let long = prose(&model, "In the beginning", window + 400);
    used.next_logits(ModelRole::Main, &long).unwrap();
    let mut short = long[..256].to_vec();
    short.extend(tokens(&model, " And then the capital of France, which is"));
    assert!(short.len() + window < long.len() + 64, "the rollback must be deep");
    let changed = short.iter().zip(&long).take_while(|(a, b)| a == b).count();
    let reply = run(&used, request(ModelRole::Main, &short, 1)).unwrap();
    assert_eq!((reply.reused as usize, reply.prefilled as usize), (changed, short.len() - changed));
    let after = used.next_logits(ModelRole::Main, &short).unwrap();
    let clean = fresh.next_logits(ModelRole::Main, &short).unwrap();
    assert_eq!(likeliest(&after), likeliest(&clean));
    let apart = after.iter().zip(&clean).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(apart < 1.0, "{apart}");
}
