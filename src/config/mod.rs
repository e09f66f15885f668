//! Configuration: files, layers, overrides, and the typed results.
//!
//! Two kinds of configuration exist. A benchmark run (`train`, `eval`) reads files in SkillOpt's
//! form: [`layer`] loads one with everything that it inherits through `_base_`, [`overrides`]
//! puts `--set` and `--cfg-options` on top and [`flags`] SkillOpt's own flags, [`launch`] settles
//! what these leave open, [`flatten`] knows the name, place and type of every
//! setting, and [`engine`] turns the result into an [`EngineConfig`] or says what is wrong with
//! it. The night reads one file of our own form into a [`NightConfig`] ([`night`]), found through
//! [`paths`].
//!
//! Two rules hold for both: an unknown key is an error that names the nearest right one, and every
//! value knows where it came from ([`Origin`]), so that an error about it can say so.

pub mod duration;
pub mod engine;
mod error;
pub mod flags;
pub mod flatten;
pub mod launch;
pub mod layer;
pub mod modes;
pub mod night;
pub mod overrides;
pub mod paths;
pub mod redact;
pub mod roles;
pub mod yaml;

pub use engine::EngineConfig;
pub use error::{ConfigError, Origin, nearest};
pub use night::NightConfig;
pub use paths::Paths;
