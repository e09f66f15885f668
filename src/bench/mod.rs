//! The benchmark environments and what they share.

pub mod searchqa;
pub mod split;
