//! Tests of the readers from outside: what a session must look like.

mod sessions_truth;
