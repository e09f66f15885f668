//! skillopt-sleep: the crate's map.
pub mod model;
pub mod skill;
pub mod trainer;
