//! What Garret needs from the machine, behind the ports of `garret-core`.
//!
//! [`media`] keeps bytes: a file, memory, or a medium that loses power on purpose.
//!
//! Linux only.

pub mod media;

mod mix;
