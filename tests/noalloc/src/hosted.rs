//! Runs the scenario under `std` and counts allocations.

use std::alloc::{GlobalAlloc, Layout, System};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Exit code when every check passed but something was allocated.
const ALLOCATED: u8 = 255;

/// Runs the scenario.
pub(crate) fn run() -> ExitCode {
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let code = crate::scenario::run();
    let allocated = ALLOCATIONS.load(Ordering::Relaxed) != before;
    ExitCode::from(if code == 0 && allocated { ALLOCATED } else { code })
}

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The system's allocator, with a count. Reallocation goes through `alloc`.
struct Counting;

// SAFETY: every block comes from and goes back to `System`, which fulfils the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promises about `layout` are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: `block` came from `alloc` above, hence from `System`, with the same `layout`.
        unsafe { System.dealloc(block, layout) }
    }
}
