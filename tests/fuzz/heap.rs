//! An allocator that remembers the largest piece that a thread asked for.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Watched;

#[global_allocator]
static HEAP: Watched = Watched;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

/// Begins anew, on this thread.
pub(crate) fn forget_largest() {
    LARGEST.set(0);
}

/// The largest piece since then, in bytes.
pub(crate) fn largest() -> usize {
    LARGEST.get()
}

fn note(bytes: usize) {
    // A thread that ends has no cell any more.
    let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(bytes)));
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller keeps the promises of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller keeps the promises of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size);
        // SAFETY: the caller keeps the promises of `realloc`, and `place` is the system's.
        unsafe { System.realloc(place, layout, size) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the promises of `dealloc`, and `place` is the system's.
        unsafe { System.dealloc(place, layout) }
    }
}
