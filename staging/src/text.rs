//! Document text: what it looks like inside the program, on disk, and to a reader.

pub(crate) mod diff;
pub(crate) mod digest;
pub(crate) mod display;
pub(crate) mod form;
pub(crate) mod merge;
