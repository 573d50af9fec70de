//! The heap of the C library, which this process shares with llama.cpp.
//!
//! glibc lets the size from which a block has pages of its own grow to that of the largest block
//! that was freed, up to 32 MiB, and gives threads arenas of their own. Blocks of a few hundred
//! KiB, which a turn needs for moments, then stay in the heap between small ones that live on, and
//! their pages are never given back.
//!
//! ```
//! // First thing in a program.
//! garret_hal::heap::bound();
//! ```
//!
//! Limits: with another C library, or another allocator, it does nothing. A conversation of 1,000
//! turns (`garret-bench`'s `soak`, x86_64) held 34 MiB without it and 23 MiB with it, and a turn
//! took 8% more of the processor.

/// Makes the process give freed memory back: fixes the sizes that glibc would let grow, and keeps
/// to one arena.
///
/// It is for programs, not for libraries: it changes the whole process, and overrides what the
/// environment (`MALLOC_ARENA_MAX` and others) says of these. Call it before other threads begin.
pub fn bound() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    for (what, value) in [
        // Bytes from which a block has pages of its own: what glibc begins with.
        (libc::M_MMAP_THRESHOLD, 128 << 10),
        // Free bytes at the end of the heap that are kept for what comes next.
        (libc::M_TRIM_THRESHOLD, 1 << 20),
        // Heaps: threads that allocate at the same time are few.
        (libc::M_ARENA_MAX, 1),
    ] {
        // SAFETY: `mallopt` takes any numbers and refuses what it doesn't know. What it sets are
        // single words, which other threads that allocate meanwhile find as they were or as they
        // are: each is only how they decide from now on.
        #[allow(unsafe_code)]
        let _ = unsafe { libc::mallopt(what, value) };
    }
}
