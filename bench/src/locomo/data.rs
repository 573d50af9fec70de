//! Data in LoCoMo's format; see the module above.

use std::error::Error;
use std::path::Path;

use serde::Deserialize;

use crate::lines;

/// Something that was said.
#[derive(Deserialize)]
pub(crate) struct Turn {
    pub(crate) conv: String,
    pub(crate) dia_id: String,
    pub(crate) session: u64,
    pub(crate) timestamp: String,
    pub(crate) speaker: String,
    pub(crate) text: String,
    pub(crate) caption: Option<String>,
}

/// Something that is asked about a conversation.
#[derive(Deserialize)]
pub(crate) struct Question {
    pub(crate) conv: String,
    pub(crate) id: String,
    pub(crate) question: String,
    /// 5 asks for what was never said; absent in other data of the format.
    #[serde(default)]
    pub(crate) category: u8,
    pub(crate) evidence: Vec<String>,
    /// The question as it is embedded.
    #[serde(skip)]
    pub(crate) text: String,
    /// Cosines by the number of the document in the question's history.
    #[serde(skip)]
    pub(crate) cosines: Option<Vec<f32>>,
}

impl Turn {
    /// Text with what a picture shows.
    pub(crate) fn whole(&self) -> String {
        let caption = self.caption.as_deref().map(|caption| format!(" [image: {caption}]"));
        format!("{}{}", self.text, caption.unwrap_or_default())
    }

    /// Returns the moment in milliseconds since 1970, as if in UTC.
    pub(crate) fn at_ms(&self) -> Result<i64, Box<dyn Error>> {
        let time: jiff::civil::DateTime = self.timestamp.parse()?;
        Ok(jiff::tz::TimeZone::UTC.to_timestamp(time)?.as_millisecond())
    }
}

/// Reads all turns of a folder.
pub(crate) fn turns(folder: &Path) -> Result<Vec<Turn>, Box<dyn Error>> {
    lines::read(&folder.join("locomo_turns.jsonl"))
}

/// The questions of a folder that have evidence.
pub(crate) fn questions(folder: &Path) -> Result<Vec<Question>, Box<dyn Error>> {
    let all: Vec<Question> = lines::read(&folder.join("locomo_questions.jsonl"))?;
    Ok(all.into_iter().filter(|one| !one.evidence.is_empty()).collect())
}
