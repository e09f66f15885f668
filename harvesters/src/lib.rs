//! Session logs of coding agents, read into sessions.
mod assemble;
mod claude;
mod clock;
mod codex;
mod feedback;
mod harvest;
mod lines;
mod node;
mod origin;
mod outcome;
pub mod redact;
pub mod report;
pub mod session;
mod shell;
mod source;
mod stamp;
mod verify;
mod walk;

pub use feedback::Polarity;
pub use harvest::{Account, Harvest, HarvestOptions, Limits, OWN_CALL_MARKER, ProjectScope, Run, harvest, harvest_each};
pub use redact::{Redactor, TextLimits};
pub use report::Report;
pub use session::{Agent, Session};
pub use source::{Roots, Source, SourceInfo, registry};
pub use stamp::{FileMemory, FileStamp};
pub use verify::{Verification, VerificationKind};
