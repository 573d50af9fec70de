//! What a program needs when there is no `std`: an entry, a panic handler, an unwinding stub.

use core::panic::PanicInfo;

// The C runtime calls `main`; the compiler calls memcpy and its kin.
#[link(name = "c")]
// SAFETY: `abort` is declared as in C and may be called at any time.
unsafe extern "C" {
    safe fn abort() -> !;
}

/// Entry point that the C runtime calls.
// SAFETY: nothing else in this program is called `main`, and this is the signature C expects.
#[unsafe(no_mangle)]
extern "C" fn main() -> core::ffi::c_int {
    crate::scenario::run().into()
}

/// The precompiled core library names it in its unwind tables; with `panic = "abort"` nobody calls
/// it.
// SAFETY: without std nothing else defines this symbol, and it is never called.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    abort()
}
