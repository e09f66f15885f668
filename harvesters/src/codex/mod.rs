//! Codex (session-logs.md, section 3). Placeholder until its reader is in.
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use crate::harvest::Run;
use crate::session::Agent;
use crate::source::{Source, SourceInfo};
pub(crate) struct Codex;
impl Source for Codex {
    fn info(&self) -> SourceInfo {
        SourceInfo { agent: Agent::Codex, title: "Codex", reads: "", location: "", keeps: "" }
    }
    fn default_roots(&self, home: &Path, variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
        vec![variable("CODEX_HOME").map_or_else(|| home.join(".codex"), PathBuf::from)]
    }
    fn read(&self, _: &Path, _: &mut Run<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
