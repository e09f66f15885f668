//! Crash-safe file writes and process locks.
