//! Session logs of coding agents, read into sessions.
//!
//! ```no_run
//! use std::path::Path;
//! use skillopt_harvesters::{HarvestOptions, ProjectScope, Roots, harvest};
//!
//! let roots = Roots::from_env(Path::new("/home/dev"));
//! let options = HarvestOptions {
//!     projects: ProjectScope::Under(vec!["/home/dev/src/ledgerly".into()]),
//!     ..HarvestOptions::default()
//! };
//! let found = harvest(&roots, &options);
//! for session in &found.sessions {
//!     for prompt in session.prompts() {
//!         println!("{}: {}", session.id, prompt.text);
//!     }
//! }
//! println!("{} files, {} skipped", found.report.files_read, found.report.skipped.len());
//! ```
//!
//! # What there is
//!
//! | item | what it is for |
//! |---|---|
//! | [`harvest`], [`harvest_each`] | read all logs; the second hands sessions to a callback as they come |
//! | [`HarvestOptions`] | sources, time, projects, caps, redaction rules, files already known |
//! | [`Harvest`], [`Account`] | sessions; the [`Report`] of everything read and skipped; stamps of the files |
//! | [`Session`] and [`session`] | a conversation with its evidence; accessors `prompts`, `finals`, `feedback`, `tools`, `calls`, `commands`, `verifications`, `files_edited`, `skills`, `is_minable`, `locate` |
//! | [`Roots`], [`registry`], [`Source`], [`SourceInfo`] | where each agent keeps its logs, and what is read of them |
//! | [`Redactor`] | secrets out of text; rules of the user's own by [`redact::UserRule`] |
//! | [`Redacted`] | text without secrets; only of such text a session is made |
//! | [`FileMemory`], [`FileStamp`] | what is remembered of files, so that unchanged ones are not opened |
//! | [`Watcher`] | tells which roots changed |
//! | [`OWN_CALL_MARKER`] | the text that marks our own model calls, which are never mined |
//!
//! # The way of a record
//!
//! ```text
//! walk ─▶ lines ─▶ claude, codex, … ─▶ assemble ─▶ Session
//! (files)  (bytes    (one folder an       (turns, verdicts:
//!           to JSON)  agent: which record   the same for all)
//!                     is what, which live;
//!                     secrets taken out)
//! ```
//!
//! A reader reduces each record to what matters, decides which records are alive, and
//! tells [`assemble`](crate) in order what happened. All text passes one door that
//! redacts it and then cuts it to length; its type, [`Redacted`], is the proof. No network, no model, and nothing is ever
//! written to the logs.

mod ahead;
mod assemble;
mod claude;
mod clock;
mod codex;
mod copilot_chat;
mod copilot_cli;
mod cursor;
mod database;
mod devin;
mod events;
mod feedback;
mod gemini;
mod harvest;
mod json;
mod lines;
mod node;
mod noise;
mod opencode;
mod outcome;
mod path;
mod pi;
mod records;
pub mod redact;
pub mod report;
mod scope;
pub mod session;
mod shell;
mod source;
mod stamp;
mod tape;
mod verify;
mod walk;
mod watch;

pub use feedback::Polarity;
pub use harvest::{
    Account, Harvest, HarvestOptions, Limits, OWN_CALL_MARKER, Run, harvest, harvest_each,
};
pub use redact::{Redacted, Redactor, TextLimits};
pub use report::Report;
pub use scope::{ProjectScope, Whereabouts};
pub use session::{Agent, Session};
pub use source::{Roots, Source, SourceInfo, registry};
pub use stamp::{FileMemory, FileStamp};
pub use verify::{Verification, VerificationKind};
pub use watch::{Timing, WatchError, Watcher};
