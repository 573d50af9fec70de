//! What is run without an allocator: one check for each part of core.

mod output;
mod slot;

/// A part of core at work; false when it does the wrong thing.
type Check = fn() -> bool;

/// Every check. Its exit code is its place in the list, counted from 1.
const CHECKS: &[Check] = &[
    output::characters_arrive_whole,
    output::tags_are_found_byte_by_byte,
    output::quoted_tags_are_recognised,
    slot::windows_are_divided,
    slot::a_prompt_is_assembled,
];

/// Runs every check; 0, or the exit code of the first that fails.
pub(crate) fn run() -> u8 {
    #[cfg(feature = "_leak")]
    leak();
    let failed = CHECKS.iter().position(|check| !check());
    failed.map_or(0, |place| u8::try_from(place + 1).unwrap_or(u8::MAX))
}

#[cfg(feature = "_leak")]
fn leak() {
    extern crate alloc;
    core::hint::black_box(alloc::boxed::Box::new(1_u8));
}
