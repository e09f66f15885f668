//! Tests of the readers from outside: what a session must look like.

mod bad_input;
mod parity;
mod sessions_truth;
