//! skillopt-sleep: the crate's map.
pub mod config;
pub mod model;
pub mod skill;
pub mod trainer;
