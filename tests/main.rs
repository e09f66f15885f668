//! The integration tests, in one binary.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod claude_log;
mod data_command;
mod harvest;
mod impact;
mod incremental;
mod machine;
mod model_server;
mod night;
mod parity;
mod review;
mod secrets;
mod skills;
mod train;
mod train_faults;
