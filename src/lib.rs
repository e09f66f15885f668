//! skillopt-sleep: the crate's map.
pub mod model;
pub mod trainer;
pub mod skill;
