//! The targets: each reads some bytes and may refuse them, but must come to an end without a panic.

mod files;
mod models;
mod sealed;
mod text;

/// A parser of foreign bytes.
pub(crate) struct Target {
    /// Its name, which is that of its test and of its folder in `corpus`.
    pub(crate) name: &'static str,
    /// The parser.
    pub(crate) run: fn(&[u8]),
    /// Inputs that it takes.
    pub(crate) seeds: fn() -> Vec<Vec<u8>>,
    /// The number of inputs that a test reads; a few seconds' worth.
    pub(crate) inputs: usize,
}

/// All of them.
pub(crate) const ALL: [Target; 13] = [
    Target { name: "bundle", run: files::bundle, seeds: files::bundles, inputs: 1_000 },
    Target {
        name: "bundle_record",
        run: sealed::bundle_record,
        seeds: sealed::bundle_records,
        inputs: 2_000,
    },
    Target {
        name: "chat_template",
        run: models::chat_template,
        seeds: models::chat_templates,
        inputs: 3_000,
    },
    Target {
        name: "coarse_vectors",
        run: files::coarse_vectors,
        seeds: files::coarse_vectors_seeds,
        inputs: 200,
    },
    Target { name: "config", run: text::config, seeds: text::configs, inputs: 10_000 },
    Target {
        name: "full_vectors",
        run: files::full_vectors,
        seeds: files::full_vectors_seeds,
        inputs: 200,
    },
    Target {
        name: "gguf_header",
        run: models::gguf_header,
        seeds: models::headers,
        inputs: 20_000,
    },
    Target { name: "import_line", run: text::import_line, seeds: text::import_lines, inputs: 40 },
    Target { name: "journal", run: files::journal, seeds: files::journals, inputs: 600 },
    Target {
        name: "journal_write",
        run: sealed::journal_write,
        seeds: sealed::journal_writes,
        inputs: 300,
    },
    Target { name: "records", run: files::records, seeds: files::records_seeds, inputs: 600 },
    Target { name: "tag_scanner", run: text::tag_scanner, seeds: text::outputs, inputs: 10_000 },
    Target { name: "text_index", run: files::text_index, seeds: files::text_indexes, inputs: 200 },
];
