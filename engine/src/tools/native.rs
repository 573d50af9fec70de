//! Tools in the form of the model's own template: what it is told of them, and its calls as JSON.

use garret_core::prompt::{ParameterKind, ToolParameter, ToolSpec};
use serde_json::{Map, Value};

use super::call::{Call, CallError};

/// The tools, in as few words as small models need.
pub(crate) const SPECS: [ToolSpec<'static>; 6] = [
    ToolSpec {
        name: "lookup",
        description: "what was said or is known about something",
        parameters: &[text("words")],
    },
    ToolSpec {
        name: "grep",
        description: "where exactly these words were said",
        parameters: &[text("words")],
    },
    ToolSpec {
        name: "expand",
        description: "all words of a turn: turn 12; or the turns under a summary: s3",
        parameters: &[text("what")],
    },
    ToolSpec {
        name: "timeline",
        description: "the newest turns",
        parameters: &[ToolParameter { name: "count", kind: ParameterKind::Integer }],
    },
    ToolSpec {
        name: "entity",
        description: "facts about a person or thing",
        parameters: &[text("name")],
    },
    ToolSpec { name: "pinned", description: "pinned facts", parameters: &[] },
];

const fn text(name: &'static str) -> ToolParameter<'static> {
    ToolParameter { name, kind: ParameterKind::Text }
}

/// Reads the JSON of a call. Braces too many or too few at its end are mended, and templates that
/// show calls in double braces are forgiven.
///
/// # Errors
/// [`CallError`] says how a call is written.
pub(crate) fn read(json: &str) -> Result<Call, CallError> {
    let mut object = parse(json).ok_or(CallError::Json)?;
    let name = object.remove("name");
    let name = name.as_ref().and_then(Value::as_str).ok_or(CallError::Json)?;
    let arguments = object.remove("arguments").or_else(|| object.remove("parameters"));
    Call::parse(name.trim(), &payload(&arguments.unwrap_or(Value::Object(object))))
}

fn parse(json: &str) -> Option<Map<String, Value>> {
    let json = json.trim();
    let single = json.strip_prefix('{').filter(|inner| inner.trim_start().starts_with('{'));
    let single = single.map(|inner| inner.strip_suffix('}').unwrap_or(inner));
    let tries = single.into_iter().chain([json]);
    tries
        .flat_map(|json| (0..=MOST_BRACES).map(move |more| json.to_owned() + &"}".repeat(more)))
        .find_map(|json| serde_json::from_str(&json).ok())
}

/// A call as it is usually written, if it is one: the name first, and nothing too many.
pub(crate) fn usual(json: &str) -> Option<String> {
    let call = parse(json)?;
    let name = call.get("name")?;
    let arguments = call.get("arguments")?;
    Some(format!("\"name\":{name},\"arguments\":{arguments}"))
}

/// Arguments as the payload of a tag.
fn payload(arguments: &Value) -> String {
    match arguments {
        Value::Object(object) => {
            let (options, words): (Vec<_>, Vec<_>) =
                object.iter().partition(|(key, _)| OPTIONS.contains(&key.as_str()));
            let words = words.into_iter().filter(|(key, _)| *key != "from");
            let words = words.map(|(_, value)| payload(value));
            let from = object.get("from").map(|value| format!("from {}", payload(value)));
            let options =
                options.into_iter().map(|(key, value)| format!("{key}={}", payload(value)));
            let all: Vec<_> = words.chain(from).chain(options).collect();
            all.join(" ").trim().to_owned()
        }
        Value::String(text) => match serde_json::from_str::<Map<String, Value>>(text) {
            // Some models write the arguments as a text of JSON.
            Ok(object) => payload(&Value::Object(object)),
            Err(_) => text.clone(),
        },
        Value::Array(items) => items.iter().map(payload).collect::<Vec<_>>().join(" "),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Arguments that are options of a call.
const OPTIONS: [&str; 4] = ["in", "k", "skip", "before"];
/// Braces that may be missing at the end.
const MOST_BRACES: usize = 3;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read_as(json: &str) -> String {
        read(json).map_or_else(|error| format!("! {error}"), |call| call.to_string())
    }

    #[test]
    fn calls_are_read_in_any_of_their_spellings() {
        for (json, call) in [
            (r#"{"name": "lookup", "arguments": {"words": "the bees"}}"#, "lookup the bees"),
            (r#"{"name": "GREP", "parameters": {"words": "bees"}}"#, "grep bees"),
            (r#"{"name": "grep", "words": "bees"}"#, "grep bees"),
            (r#"{"name": "grep", "arguments": "bees"}"#, "grep bees"),
            (r#"{"name": "grep", "arguments": "{\"words\": \"bees\"}"}"#, "grep bees"),
            (r#"{"name": "grep", "arguments": {"words": ["red", "bees"]}}"#, "grep red bees"),
            (r#"{{"name": "grep", "arguments": {"words": "bees"}}}"#, "grep bees"),
            (r#"{{"name": "grep", "arguments": {"words": "bees"}}"#, "grep bees"),
            (r#"{"name": "grep", "arguments": {"words": "bees""#, "grep bees"),
            (r#"{"name": "timeline", "arguments": {"count": 5}}"#, "timeline 5"),
            (r#"{"name": "expand", "arguments": {"what": "s3", "from": 12}}"#, "expand s3 from 12"),
            (r#"{"name": "grep", "arguments": {"words": "b", "in": "all"}}"#, "grep b in=all"),
            (r#"{"name": "pinned", "arguments": {}}"#, "pinned"),
            (r#"{"name": "pinned", "arguments": null}"#, "pinned"),
            (r#"{"name": "pinned"}"#, "pinned"),
        ] {
            assert_eq!(read_as(json), call, "{json}");
        }
    }

    #[test]
    fn what_is_no_call_says_how_one_is_written() {
        for json in
            ["{}", "{", "", "lookup bees", r#"{"name": 3}"#, "[1]", r#"{"name": "grep" bees}"#]
        {
            assert!(read_as(json).contains(r#"{"name": "lookup", "arguments""#), "{json}");
        }
        let unknown = read_as(r#"{"name": "weather", "arguments": {"city": "Oslo"}}"#);
        assert!(unknown.contains("there is no tool `weather`"), "{unknown}");
    }

    #[test]
    fn every_tool_that_is_told_of_can_be_called() {
        for spec in SPECS {
            let value = |kind| match kind {
                ParameterKind::Integer => Value::from(3),
                _ => Value::from("turn 3"),
            };
            let arguments: Map<_, _> =
                spec.parameters.iter().map(|p| (p.name.to_owned(), value(p.kind))).collect();
            let json = serde_json::json!({ "name": spec.name, "arguments": arguments });
            assert!(read(&json.to_string()).is_ok(), "{json}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(json in any::<String>()) {
            let _ = read(&json);
        }

        #[test]
        fn words_arrive_as_they_are(words in "[a-zA-Z\u{e9}\u{8702}\"'{}\\\\]{1,30}") {
            let json = serde_json::json!({ "name": "lookup", "arguments": { "words": words } });
            if serde_json::from_str::<Map<String, Value>>(&words).is_err() {
                prop_assert_eq!(read_as(&json.to_string()), format!("lookup {words}"));
            }
        }
    }
}
