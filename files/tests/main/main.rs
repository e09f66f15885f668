//! What callers rely on: whole files or none, private modes, honest refusals, locks.

#![expect(
    clippy::unwrap_used,
    reason = "a failed step of a test is a failed test"
)]

mod atomic;
mod directory;
mod lines;
mod locks;
mod reading;
