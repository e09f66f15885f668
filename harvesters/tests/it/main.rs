//! Tests of the readers from outside: what a session must look like.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot prepare its input fails"
)]

mod bad_input;
mod every_source;
mod fixtures;
mod generated_corpus;
mod moving;
mod order;
mod releases;
mod sessions_truth;
