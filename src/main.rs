//! The `skillopt-sleep` binary.
fn main() {}
