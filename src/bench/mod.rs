//! The benchmark environments and what they share.
