//! Code in the shown text: fences and code spans, as CommonMark reads them.
//!
//! [`Markdown`] reads every shown byte once. Fences are decided by what was read; a code span
//! depends on what follows (an opening run of backticks without a closing one is just text), so
//! that the scanner asks [`Markdown::closes`] about the bytes it holds.

/// Place of the next byte of the shown text.
#[derive(Clone, Debug)]
pub(super) struct Markdown {
    /// Beginning of the line, while it is white space and container markers only.
    start: Option<Start>,
    /// The run of backticks or tildes that ends here.
    run: Option<Run>,
    /// Runs of backticks that may have opened a code span in this paragraph.
    span: Span,
    fence: Option<Fence>,
    /// The last byte was a backslash that takes its meaning from the next one.
    escaped: bool,
}

impl Markdown {
    pub(super) const fn new() -> Self {
        Self { start: Some(Start::NEW), run: None, span: Span::NONE, fence: None, escaped: false }
    }

    /// Reads shown bytes up to the first `<` that stands outside of a fence, or all of them, and
    /// returns how many were read.
    pub(super) fn read_to_opener(&mut self, bytes: &[u8]) -> usize {
        let mut read: usize = 0;
        for &byte in bytes {
            if byte == b'<' && !self.fenced() {
                break;
            }
            self.read(byte);
            read = read.saturating_add(1);
        }
        read
    }

    /// Reads one shown byte.
    pub(super) fn read(&mut self, byte: u8) {
        if let Some(run) = self.run.as_mut().filter(|run| run.byte == byte) {
            run.len = run.len.saturating_add(1);
            return;
        }
        self.end_run();
        if byte == b'\n' {
            return self.end_line();
        }
        match self.fence.as_ref().map(|fence| fence.part) {
            Some(Part::Info) => self.read_info(byte),
            Some(_) => self.read_fenced(byte),
            None => self.read_prose(byte),
        }
    }

    /// Passes over a tag, which is part of the line but not of its text.
    pub(super) fn skip_tag(&mut self) {
        self.end_run();
        self.start = None;
        self.escaped = false;
    }

    /// Returns whether a run of backticks before the next byte may have opened a code span.
    pub(super) fn in_span(&self) -> bool {
        self.span != Span::NONE
    }

    /// The runs of backticks before the next byte were just text.
    pub(super) fn drop_span(&mut self) {
        self.span = Span::NONE;
    }

    /// Returns whether `ahead`, the bytes that follow, close an open code span before a blank line.
    /// `None` when only more bytes can tell, which `last` rules out.
    pub(super) fn closes(&self, ahead: &[u8], last: bool) -> Option<bool> {
        let mut run: usize = 0;
        let mut blank = false;
        for &byte in ahead {
            if byte == b'`' {
                run = run.saturating_add(1);
                blank = false;
                continue;
            }
            if run > 0 && self.span.holds(run) {
                return Some(true);
            }
            run = 0;
            match byte {
                b'\n' if blank => return Some(false),
                b'\n' => blank = true,
                b' ' | b'\t' | b'\r' => {}
                _ => blank = false,
            }
        }
        last.then(|| run > 0 && self.span.holds(run))
    }

    /// Returns whether the next byte, one that continues no run, stands in a fence or on its first
    /// line.
    fn fenced(&mut self) -> bool {
        self.end_run();
        self.leave_quote();
        self.fence.is_some()
    }

    /// Ends a fence whose block quote has ended, which a line without its `>` does.
    fn leave_quote(&mut self) {
        let (Some(fence), Some(start)) = (&self.fence, &self.start) else { return };
        if start.quotes < fence.start.quotes {
            self.fence = None;
        }
    }

    fn end_run(&mut self) {
        let Some(run) = self.run.take() else { return };
        if let Some(fence) = &mut self.fence {
            fence.part = if run.len >= fence.len { Part::Closing } else { Part::Body };
        } else if let Some(start) = run.start.filter(|_| run.len >= 3) {
            self.fence = Some(Fence { byte: run.byte, len: run.len, start, part: Part::Info });
        } else if run.byte == b'`' {
            self.span.meet(run.len);
        }
    }

    fn end_line(&mut self) {
        if self.start.is_some() {
            self.leave_quote();
            self.span = Span::NONE;
        }
        match &mut self.fence {
            Some(fence) if fence.part == Part::Closing => self.fence = None,
            Some(fence) => {
                fence.part = Part::Body;
                self.span = Span::NONE;
            }
            None => {}
        }
        self.escaped = false;
        self.start = Some(Start::NEW);
    }

    /// Reads a byte on the line that opens a fence.
    fn read_info(&mut self, byte: u8) {
        let Some(fence) = self.fence.take_if(|fence| fence.byte == b'`' && byte == b'`') else {
            return;
        };
        // No fence has a backtick after its opening run: that run was a code span's.
        self.span.meet(fence.len);
        self.run = Some(Run { byte, len: 1, start: None });
    }

    fn read_fenced(&mut self, byte: u8) {
        let (Some(fence), Some(mut start)) = (&mut self.fence, self.start.take()) else {
            if let (Some(fence), false) = (&mut self.fence, is_blank(byte)) {
                fence.part = Part::Body;
            }
            return;
        };
        let open = fence.start;
        if is_blank(byte) {
            start.widen(byte);
            self.start = Some(start);
        } else if start.quotes < open.quotes && byte == b'>' {
            self.start = Some(start.quoted());
        } else if start.quotes < open.quotes {
            self.fence = None;
            self.start = Some(start);
            self.read_prose(byte);
        } else if byte == fence.byte && start.indent <= open.indent.saturating_add(3) {
            self.run = Some(Run { byte, len: 1, start: None });
        }
    }

    fn read_prose(&mut self, byte: u8) {
        let start = self.start.take();
        if self.escaped {
            self.escaped = false;
            return;
        }
        match byte {
            b'`' => self.run = Some(Run { byte, len: 1, start: start.filter(Start::is_plain) }),
            b'~' if start.as_ref().is_some_and(Start::is_plain) => {
                self.run = Some(Run { byte, len: 1, start });
            }
            b'\\' => self.escaped = !self.in_span(),
            _ => self.start = start.and_then(|start| start.after(byte)),
        }
    }
}

/// The beginning of a line: white space, `>` of block quotes and markers of list items.
#[derive(Clone, Copy, Debug)]
struct Start {
    /// Columns since the last `>`.
    indent: usize,
    /// Number of `>`.
    quotes: usize,
    marker: Marker,
}

impl Start {
    const NEW: Self = Self { indent: 0, quotes: 0, marker: Marker::None };

    /// The beginning with one more byte, if it is still one.
    fn after(mut self, byte: u8) -> Option<Self> {
        self.marker = match (self.marker, byte) {
            (Marker::None | Marker::Whole, b' ' | b'\t' | b'\r') => Marker::None,
            (Marker::None, b'>') => return Some(self.quoted()),
            (Marker::None, b'-' | b'*' | b'+') => Marker::Whole,
            (Marker::None | Marker::Number, b'0'..=b'9') => Marker::Number,
            (Marker::Number, b'.' | b')') => Marker::Whole,
            _ => return None,
        };
        self.widen(byte);
        Some(self)
    }

    fn quoted(self) -> Self {
        Self { indent: 0, quotes: self.quotes.saturating_add(1), marker: Marker::None }
    }

    fn widen(&mut self, byte: u8) {
        let columns = match byte {
            b'\r' => 0,
            b'\t' => 4,
            _ => 1,
        };
        self.indent = self.indent.saturating_add(columns);
    }

    /// Returns whether no marker is unfinished, so that a block can begin here.
    fn is_plain(&self) -> bool {
        matches!(self.marker, Marker::None)
    }
}

/// Progress in reading a list item's marker.
#[derive(Clone, Copy, Debug)]
enum Marker {
    None,
    /// Digits.
    Number,
    /// All but the white space after it.
    Whole,
}

/// Equal bytes in a row.
#[derive(Clone, Debug)]
struct Run {
    byte: u8,
    len: usize,
    /// Beginning of its line, if a block can begin there.
    start: Option<Start>,
}

/// An open fence.
#[derive(Clone, Debug)]
struct Fence {
    byte: u8,
    len: usize,
    start: Start,
    part: Part,
}

/// The part of a fence that is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// The rest of its first line.
    Info,
    Body,
    /// A closing run was read, and since then white space.
    Closing,
}

/// Lengths of runs of backticks that found no partner yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    /// Length of the first of them, 0 for none.
    first: usize,
    /// Bits for the lengths after it; runs longer than 31 share the last.
    others: u32,
}

impl Span {
    const NONE: Self = Self { first: 0, others: 0 };

    fn meet(&mut self, len: usize) {
        if self.first == 0 {
            self.first = len;
        } else if self.first == len {
            *self = Self::NONE;
        } else {
            self.others ^= bit(len);
        }
    }

    fn holds(&self, len: usize) -> bool {
        self.first == len || self.others & bit(len) != 0
    }
}

fn bit(len: usize) -> u32 {
    1_u32.rotate_left(u32::try_from(len).unwrap_or(31).min(31))
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}
