//! Proposals, decisions, adoption and revert of skill documents.
