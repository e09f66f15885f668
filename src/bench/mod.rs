//! The benchmark environments, one folder each, and what they share: raw data ([`raw`]) is cut
//! into splits ([`split`], [`ratio`]), which lie in folders ([`layout`]), are checked ([`check`])
//! and become a [`dataset`].

pub mod check;
pub mod dataset;
pub mod error;
pub mod estimate;
pub mod eval;
pub mod layout;
pub mod ratio;
pub mod raw;
pub mod report;
pub mod searchqa;
pub mod split;

/// Benchmarks by the name under which `env.name` asks for them.
pub const NAMES: &[&str] = &[searchqa::NAME];
