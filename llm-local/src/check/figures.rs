//! Figures of a header that llama.cpp asserts while it loads, so that a wrong one is refused here.

use crate::gguf::{Gguf, Value};

/// Returns what `gguf` says that llama.cpp would end the process for, if anything. Figures that are
/// missing or of another type are llama.cpp's to refuse; it does so with an error.
pub(super) fn unsupported(gguf: &Gguf) -> Option<String> {
    layers(gguf).or_else(|| experts(gguf)).or_else(|| rope(gguf))
}

fn layers(gguf: &Gguf) -> Option<String> {
    let layers = gguf.block_count()?;
    let predicting = gguf.arch_u32("nextn_predict_layers").unwrap_or(0);
    if !(1..=MAX_LAYERS).contains(&layers) {
        return Some(format!("it has {layers} layers"));
    }
    (predicting > layers)
        .then(|| format!("{predicting} of its {layers} layers predict further tokens"))
}

fn experts(gguf: &Gguf) -> Option<String> {
    let figure = |key| gguf.arch_u32(key).unwrap_or(0);
    let layers = gguf.block_count().unwrap_or(0).min(MAX_LAYERS);
    let used = (0..layers).filter_map(|layer| gguf.per_layer("expert_used_count", layer)).max();
    let mut experts = figure("expert_count");
    let mut used = used.unwrap_or(0);
    let groups = figure("expert_group_count");
    let groups_used = figure("expert_group_used_count");
    if experts <= 1 && gguf.architecture().is_some_and(|name| ONE_IS_NONE.contains(&name)) {
        (experts, used) = (0, 0);
    }
    let fits = match experts {
        0 => used == 0 && groups == 0,
        _ => {
            let divided =
                experts.is_multiple_of(groups.max(1)) && (1..groups).contains(&groups_used);
            experts <= MAX_EXPERTS
                && (1..=u64::from(experts)).contains(&used)
                && groups < experts
                && (groups <= 1 || divided)
        }
    };
    (!fits).then(|| {
        format!("it uses {used} of {experts} experts, in {groups_used} of {groups} groups")
    })
}

fn rope(gguf: &Gguf) -> Option<String> {
    let key = format!("{}.rope.scaling.type", gguf.architecture()?);
    let kind = match gguf.value(&key)? {
        Value::Text(kind) if ROPE_SCALINGS.contains(&kind.as_str()) => return None,
        Value::Text(kind) => kind.chars().take(MAX_SHOWN).collect(),
        Value::LongText(bytes) => format!("a name of {bytes} bytes"),
        _ => return None,
    };
    Some(format!("it scales positions by {kind:?}"))
}

/// llama.cpp's `LLAMA_MAX_LAYERS`.
const MAX_LAYERS: u32 = 512;
/// llama.cpp's `LLAMA_MAX_EXPERTS`.
const MAX_EXPERTS: u32 = 1_024;
/// Architectures for which a single expert counts as none.
const ONE_IS_NONE: [&str; 2] = ["hunyuan-dense", "hunyuan_vl"];
const ROPE_SCALINGS: [&str; 4] = ["none", "linear", "yarn", "longrope"];
/// Characters of a wrong name that are shown.
const MAX_SHOWN: usize = 40;
