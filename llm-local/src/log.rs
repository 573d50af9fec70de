//! llama.cpp's log, as `tracing` events with target `llama.cpp`.
//!
//! llama.cpp is talkative, so its levels are taken down one step: what it calls an error is a
//! warning here (the error itself is the `Err` the caller gets), its information is debugging.
//! Nothing it logs reaches stdout or stderr by itself. A grammar that doesn't parse is the
//! exception: that parser writes to stderr directly.
//!
//! A failed assertion in ggml ends the process, and before that it would start a debugger to print
//! a backtrace unless `GGML_NO_BACKTRACE` is set. A callback set here takes its place, so that
//! variable needn't be set from here (`set_var` is unsound once threads run). Only a C++ exception
//! that nothing catches still looks at it: whoever wants no debugger then either sets it in the
//! environment a program is started with.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use llama_cpp_sys_2 as sys;

/// Sends everything llama.cpp and ggml log to `tracing`, from now on, in the whole process.
pub(crate) fn install() {
    // SAFETY: the callback is a plain function that lives as long as the process; it takes no data.
    unsafe { sys::llama_log_set(Some(on_log), std::ptr::null_mut()) };
    // SAFETY: as above; ggml keeps its own pointer.
    unsafe { sys::ggml_log_set(Some(on_log), std::ptr::null_mut()) };
    // SAFETY: the callback is a plain function that lives as long as the process.
    unsafe { sys::ggml_set_abort_callback(Some(on_abort)) };
}

/// Lowers what this thread's llama.cpp calls log to tracing's lowest level while `flag` is set:
/// an interrupted decode complains, though it does what it was asked.
pub(crate) fn hush_while(flag: Arc<AtomicBool>) {
    HUSH.with_borrow_mut(|hush| *hush = Some(flag));
}

/// Runs `work` and returns with its result what llama.cpp logged as errors on this thread
/// meanwhile, as one line; a stock phrase if it logged none.
pub(crate) fn with_reason<T>(work: impl FnOnce() -> T) -> (T, String) {
    ERRORS.with_borrow_mut(|errors| *errors = Some(String::new()));
    let result = work();
    let mut reason = ERRORS.with_borrow_mut(Option::take).unwrap_or_default();
    if reason.is_empty() {
        reason.push_str("llama.cpp gives no reason");
    }
    (result, reason)
}

thread_local! {
    /// A line that has no end yet, and its level.
    static PARTIAL: RefCell<(sys::ggml_log_level, String)> =
        const { RefCell::new((0, String::new())) };
    static HUSH: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
    static ERRORS: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Longest text kept of errors, and of a line without end, in bytes.
const LONGEST: usize = 2_048;

unsafe extern "C" fn on_log(level: sys::ggml_log_level, text: *const c_char, _: *mut c_void) {
    if text.is_null() {
        return;
    }
    // SAFETY: llama.cpp passes a NUL-terminated string that outlives the call.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    // A panic (a subscriber's, say) mustn't cross into C++. There is nobody to tell about it.
    let _ = std::panic::catch_unwind(|| gather(level, &text));
}

unsafe extern "C" fn on_abort(message: *const c_char) {
    if message.is_null() {
        return;
    }
    // SAFETY: ggml passes a NUL-terminated string that outlives the call.
    let message = unsafe { CStr::from_ptr(message) }.to_string_lossy();
    // The process ends after this call, so it must be said where a person looks.
    eprintln!("llama.cpp gives up: {message}");
}

/// Joins what belongs to one line and hands whole lines on.
fn gather(level: sys::ggml_log_level, text: &str) {
    let line = PARTIAL.with_borrow_mut(|(level_before, partial)| {
        if level != sys::GGML_LOG_LEVEL_CONT {
            *level_before = level;
        }
        partial.push_str(text);
        let whole = partial.ends_with('\n') || partial.len() > LONGEST;
        whole.then(|| (*level_before, std::mem::take(partial)))
    });
    if let Some((level, line)) = line {
        emit(level, line.trim());
    }
}

fn emit(level: sys::ggml_log_level, line: &str) {
    // Progress dots and blank lines carry nothing.
    if line.bytes().all(|byte| byte == b'.') {
        return;
    }
    if level == sys::GGML_LOG_LEVEL_ERROR {
        remember(line);
    }
    let hushed =
        HUSH.with_borrow(|hush| hush.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)));
    match level {
        _ if hushed => tracing::trace!(target: "llama.cpp", "{line}"),
        sys::GGML_LOG_LEVEL_ERROR => tracing::warn!(target: "llama.cpp", "{line}"),
        sys::GGML_LOG_LEVEL_WARN => tracing::info!(target: "llama.cpp", "{line}"),
        sys::GGML_LOG_LEVEL_INFO => tracing::debug!(target: "llama.cpp", "{line}"),
        _ => tracing::trace!(target: "llama.cpp", "{line}"),
    }
}

fn remember(line: &str) {
    ERRORS.with_borrow_mut(|errors| {
        if let Some(errors) = errors
            && errors.len() + line.len() < LONGEST
        {
            if !errors.is_empty() {
                errors.push_str("; ");
            }
            errors.push_str(line);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_work_alone_are_its_reason() {
        gather(sys::GGML_LOG_LEVEL_ERROR, "before\n");
        let ((), reason) = with_reason(|| {
            gather(sys::GGML_LOG_LEVEL_INFO, "chatter\n");
            gather(sys::GGML_LOG_LEVEL_ERROR, "first ");
            gather(sys::GGML_LOG_LEVEL_CONT, "half\n");
            gather(sys::GGML_LOG_LEVEL_ERROR, "second\n");
        });
        gather(sys::GGML_LOG_LEVEL_ERROR, "after\n");
        assert_eq!(reason, "first half; second");
        assert_eq!(with_reason(|| ()).1, "llama.cpp gives no reason");
    }

    #[test]
    fn a_line_without_end_is_bounded() {
        gather(sys::GGML_LOG_LEVEL_DEBUG, "x");
        for _ in 0..10_000 {
            gather(sys::GGML_LOG_LEVEL_CONT, "yyyyyyyy");
        }
        PARTIAL.with_borrow(|(_, partial)| assert!(partial.len() <= LONGEST + 8));
    }

    #[test]
    fn an_unknown_level_is_no_panic() {
        gather(99, "from a newer llama.cpp\n");
        gather(sys::GGML_LOG_LEVEL_NONE, "plain\n");
    }
}
