//! What a person relies on: nothing changes that was not shown, nothing is lost, and
//! everything can be undone.

#![expect(
    clippy::unwrap_used,
    reason = "a failed step of a test is a failed test"
)]

mod adopting;
mod crashing;
mod killing;
mod meddling;
mod odd_input;
mod proposals;
mod pruning;
mod reverting;
mod reviewing;
mod world;
