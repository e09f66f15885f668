//! The sleep cycle.
