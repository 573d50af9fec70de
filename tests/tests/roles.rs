//! What each role gets of the model behind it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::sync::Arc;

use garret::agent::{Agent, Options};
use garret::companion::form::{Form as _, Size};
use garret::infer::reading::Reading;
use garret::open;
use garret_core::gate::Mode;
use garret_core::model::ModelFacts;
use garret_hal::media::RamMedium;
use garret_storage::Store;
use garret_tests::models::{QWEN, config, find_optional};
use garret_tests::program::only;
use garret_tests::scripted::ScriptedModel;
use garret_tests::talk::{TestAgent, parts, say, session};

fn agent(model: &ScriptedModel, companion_size: Option<Size>) -> TestAgent {
    let store = Store::on_medium("test", Box::new(RamMedium::new())).unwrap();
    let companions = Mode::Turbo;
    let options = Options { companions, companion_size, ..Options::default() };
    Agent::new(parts(model, Arc::new(store)), options).unwrap()
}

/// The inferrer's form goes by the size of the model and its window, unless it is chosen.
#[test]
fn how_much_companions_are_asked_goes_by_model_and_window() {
    let (small, large) = (1_500_000_000, 3_000_000_000);
    for (n_ctx, parameters, chosen, size) in [
        (16_384, large, None, Size::Extended),
        (16_384, small, None, Size::Core),
        (8_192, large, None, Size::Core),
        (16_384, small, Some(Size::Extended), Size::Extended),
        (16_384, large, Some(Size::Core), Size::Core),
    ] {
        let model = ScriptedModel::new(n_ctx, []).with_parameters(parameters);
        let mut agent = agent(&model, chosen);
        say(&mut agent, "What about the bees?");
        smol::block_on(agent.idle(&session()));
        let asked = only(model.asked());
        assert_eq!(asked.grammar, Some(Reading::grammar(size)), "{n_ctx} {parameters} {chosen:?}");
    }
}

/// Tools go by the same number of parameters.
#[test]
fn tools_go_by_model_and_window() {
    let facts = |n_ctx, parameters| ModelFacts { n_ctx, fingerprint: [0; 32], parameters };
    let large = Some(3_000_000_000);
    let uses = |tools, facts| {
        open::uses_tools(&config(Path::new("m"), Path::new("d"), &[("tools", tools)]), facts)
    };
    assert!(uses("auto", facts(4_096, large)));
    assert!(!uses("auto", facts(2_048, large)));
    assert!(!uses("auto", facts(4_096, Some(1_500_000_000))));
    assert!(!uses("auto", facts(4_096, None)));
    assert!(uses("on", facts(2_048, None)));
    assert!(!uses("off", facts(32_768, large)));
}

/// What a real model of 1.5 billion parameters writes into the larger form can be read.
#[test]
fn a_real_model_fills_in_the_extended_form() {
    let Some(model) = find_optional(QWEN) else { return };
    let folder = tempfile::tempdir().unwrap();
    let settings = [
        ("window", "4096"),
        ("max_tokens", "8"),
        ("companions", "turbo"),
        ("companion_schema", "extended"),
        ("threads", "2"),
        ("batch_threads", "2"),
    ];
    let mut agent = open::agent(&config(&model, folder.path(), &settings)).unwrap();
    for message in [
        "I'm having second thoughts about the garden, it's so much work.",
        "My sister says the shed could be an office, but the roof leaks.",
    ] {
        say(&mut agent, message);
        assert!(smol::block_on(agent.idle(&session())).inferred, "{message}");
    }
}
