//! The integration tests, in one binary.

mod machine;
mod model_server;
mod night;
mod parity;
mod train;
