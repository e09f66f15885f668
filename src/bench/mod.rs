//! The benchmark environments, one folder each, and what they share.

pub mod dataset;
pub mod searchqa;
pub mod split;

/// Benchmarks by the name under which `env.name` asks for them.
pub const NAMES: &[&str] = &[searchqa::NAME];
