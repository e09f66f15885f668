//! skillopt-sleep: the crate's map.
pub mod bench;
pub mod model;
pub mod night;
pub mod skill;
pub mod trainer;
