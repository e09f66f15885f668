//! The document being trained: parse, protected regions, edits. Pure: no I/O, no async.
