//! Models of their own for companions.
//!
//! A file with the content of the chat model's, by whatever path, is the chat model: its companion
//! goes on from the conversation, which costs a hundredth. One file for both companions is loaded
//! once, too.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use garret_core::scan::Companion;
use garret_llm::LlamaChat;
use garret_llm::check::{ChatModelInfo, check_chat};
use garret_llm::encoder::Encoder;
use garret_llm::estimate::MemoryEstimate;
use garret_llm::template::ChatTemplate;
use garret_llm::vocab::Vocabulary;

use super::error::AgentOpenError;
use super::load::{fingerprint_of, load};
use super::window::usable_window;
use crate::agent::OwnModel;
use crate::config::Config;

/// A companion's own model, checked from the file's header alone.
#[derive(Debug)]
pub struct RolePlan {
    /// The companion.
    pub companion: Companion,
    /// The model file.
    pub path: PathBuf,
    /// The header of the file, as far as it was read.
    pub info: ChatModelInfo,
    /// The window, in tokens.
    pub n_ctx: u32,
    /// The memory it is going to take; `None` where the companion before has the same model.
    pub need: Option<MemoryEstimate>,
}

/// Plans the models of companions that have one beside the chat model at `main`.
pub(super) fn plan(config: &Config, main: &Path) -> Result<Vec<RolePlan>, AgentOpenError> {
    let files = [
        (Companion::Compact, "compactor_model", &config.compactor_model.value),
        (Companion::Infer, "inferrer_model", &config.inferrer_model.value),
    ];
    let mut plans: Vec<RolePlan> = Vec::new();
    for (companion, key, file) in files {
        let Some(path) = file else { continue };
        let of_role = |source: AgentOpenError| AgentOpenError::Role {
            key: key.replace('_', "-"),
            source: Box::new(source),
        };
        if let Some(plan) = plan_one(config, main, companion, path, &plans).map_err(of_role)? {
            plans.push(plan);
        }
    }
    Ok(plans)
}

fn plan_one(
    config: &Config,
    main: &Path,
    companion: Companion,
    path: &Path,
    before: &[RolePlan],
) -> Result<Option<RolePlan>, AgentOpenError> {
    let info = check_chat(path)?;
    if same_content(path, main, config)? {
        return Ok(None);
    }
    let n_ctx = usable_window(info.context_length)?.min(WINDOW);
    let shared = match before.first() {
        Some(other) => same_content(path, &other.path, config)?,
        None => false,
    };
    let kv = config.kv_type.value;
    let need = (!shared).then(|| MemoryEstimate::of(&info.gguf, n_ctx, kv, config.batch.value));
    Ok(Some(RolePlan { companion, path: path.to_owned(), info, n_ctx, need }))
}

/// Returns true when two files hold the same model. Only files of one length are hashed.
fn same_content(a: &Path, b: &Path, config: &Config) -> Result<bool, AgentOpenError> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |reason| AgentOpenError::Unreadable { path, reason }
    };
    let length = |path: &Path| fs::metadata(path).map(|file| file.len()).map_err(unreadable(path));
    let real = |path: &Path| fs::canonicalize(path).map_err(unreadable(path));
    if real(a)? == real(b)? {
        return Ok(true);
    }
    Ok(length(a)? == length(b)? && fingerprint_of(a, config)? == fingerprint_of(b, config)?)
}

/// A companion and its model.
pub(super) type RoleModel = (Companion, OwnModel<LlamaChat, Encoder<garret_llm::Model>>);

/// Loads the planned models.
pub(super) fn load_all(
    plans: &[RolePlan],
    config: &Config,
) -> Result<Vec<RoleModel>, AgentOpenError> {
    let mut loaded: Vec<RoleModel> = Vec::new();
    for plan in plans {
        let own = match loaded.last().filter(|_| plan.need.is_none()) {
            Some((_, OwnModel { model, .. })) => share(model, &plan.info)?,
            None => {
                let (model, encoder) = load(&plan.path, &plan.info, plan.n_ctx, config)?;
                OwnModel { model, encoder }
            }
        };
        loaded.push((plan.companion, own));
    }
    Ok(loaded)
}

/// Makes another handle to a model, with an encoder of its own.
fn share(
    model: &LlamaChat,
    info: &ChatModelInfo,
) -> Result<OwnModel<LlamaChat, Encoder<garret_llm::Model>>, AgentOpenError> {
    let template = ChatTemplate::compile(&info.chat_template, &model.model().specials())?;
    let encoder = Encoder::new(Arc::clone(model.model()), template);
    Ok(OwnModel { model: model.clone(), encoder })
}

/// Tokens of the window of a companion's own model, if it was trained for as many: transcripts are
/// short.
const WINDOW: u32 = 8_192;
