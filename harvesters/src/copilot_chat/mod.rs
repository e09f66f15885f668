//! VS Code's chat with Copilot (session-logs.md, section 8).
//!
//! A chat is one JSON document, or a log of changes to one ([`replay`]). Newer releases
//! of the extension also write transcripts in the form of [`crate::events`]; those have no
//! outputs and are read only for chats that are not there otherwise.

mod chat;
mod replay;

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::Read as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::events::Teller;
use crate::harvest::Run;
use crate::noise;
use crate::redact::Door;
use crate::report::{Report, SkipReason};
use crate::session::{Agent, Session};
use crate::source::{Source, SourceInfo};
use crate::tape::{Json, keep_all};
use crate::walk::{self, Found};

use replay::State;

/// VS Code's chats.
pub(crate) struct CopilotChat;

/// Programs that are VS Code under another name.
const PROGRAMS: &[&str] = &["Code", "Code - Insiders", "VSCodium", "Cursor"];

impl Source for CopilotChat {
    fn info(&self) -> SourceInfo {
        SourceInfo {
            agent: Agent::CopilotChat,
            title: "VS Code Copilot Chat",
            reads: "workspaceStorage/*/{workspace.json,chatSessions/*.jsonl,chatSessions/*.json,GitHub.copilot-chat/transcripts/*.jsonl}, globalStorage/emptyWindowChatSessions/*",
            location: "the folder `User` of Code, Code - Insiders, VSCodium and Cursor in $XDG_CONFIG_HOME or ~/.config (~/Library/Application Support on macOS, %APPDATA% on Windows), $VSCODE_PORTABLE/user-data/User, ~/.vscode-server/data/User",
            keeps: "prompts, answers, tool calls, exit codes, files, models",
        }
    }

    fn default_roots(
        &self,
        os: &str,
        home: &Path,
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Vec<PathBuf> {
        let config = match os {
            "macos" => home.join("Library/Application Support"),
            "windows" => {
                variable("APPDATA").map_or_else(|| home.join("AppData/Roaming"), PathBuf::from)
            }
            _ => variable("XDG_CONFIG_HOME").map_or_else(|| home.join(".config"), PathBuf::from),
        };
        let portable =
            variable("VSCODE_PORTABLE").map(|data| Path::new(&data).join("user-data/User"));
        let usual = PROGRAMS
            .iter()
            .map(|program| config.join(program).join("User"));
        portable
            .into_iter()
            .chain(usual)
            .chain([home.join(".vscode-server/data/User")])
            .collect()
    }

    fn read(&self, root: &Path, run: &mut Run<'_>) -> ControlFlow<()> {
        let Ok(root) = fs_err::canonicalize(root) else {
            return ControlFlow::Continue(());
        };
        for workspace in folders(&root.join("workspaceStorage"), &mut run.report) {
            let workspace = Workspace {
                project: project(&workspace),
                file: walk::aside(workspace.join(WORKSPACE)),
                folder: workspace,
            };
            let mut known = HashSet::new();
            let folder = workspace.folder.join("chatSessions");
            chats(&folder, &workspace, &mut known, run)?;
            let folder = workspace.folder.join("GitHub.copilot-chat/transcripts");
            self::transcripts(&folder, &workspace, &mut known, run)?;
        }
        let windows = root.join("globalStorage/emptyWindowChatSessions");
        chats(&windows, &Workspace::default(), &mut HashSet::new(), run)
    }
}

/// The file in a workspace's folder that tells its path.
const WORKSPACE: &str = "workspace.json";

/// A workspace of the editor's.
#[derive(Default)]
struct Workspace {
    folder: PathBuf,
    /// Its directory, if known.
    project: Option<String>,
    /// The file that tells it.
    file: Option<Found>,
}

impl Workspace {
    /// Whether neither a log nor what is known of its workspace changed.
    fn is_unchanged(&self, log: &Found, run: &mut Run<'_>) -> bool {
        let unchanged = run.all_unchanged(std::iter::once(log).chain(&self.file));
        if let Some(file) = &self.file {
            run.remember(file);
        }
        unchanged
    }
}

/// The folders in a folder, links not followed.
fn folders(folder: &Path, report: &mut Report) -> Vec<PathBuf> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            report.unreadable(folder, &error);
            return Vec::new();
        }
    };
    let mut folders = Vec::new();
    for entry in entries.flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => folders.push(entry.path()),
            Ok(kind) if kind.is_symlink() => {
                report.skip(&entry.path(), SkipReason::SymbolicLink, "");
            }
            _ => {}
        }
    }
    folders.sort();
    folders
}

/// Log files of a folder that is no link.
fn logs(folder: &Path, run: &mut Run<'_>, wanted: &dyn Fn(&str) -> bool) -> Vec<Found> {
    let is_folder = std::fs::symlink_metadata(folder).is_ok_and(|metadata| metadata.is_dir());
    if !is_folder {
        return Vec::new();
    }
    let files = walk::files(folder, &mut run.report, wanted);
    run.report.files_found += files.len() as u64;
    files
}

fn stem(file: &Found) -> String {
    let stem = file.path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

/// Reads the chats of a folder.
fn chats(
    folder: &Path,
    workspace: &Workspace,
    known: &mut HashSet<String>,
    run: &mut Run<'_>,
) -> ControlFlow<()> {
    let mut files = logs(folder, run, &|name| {
        name.ends_with(".jsonl") || name.ends_with(".json")
    });
    // The log of changes took the document's place.
    files.sort_by_key(|file| (stem(file), !is_log(file)));
    for file in files {
        if !known.insert(stem(&file)) {
            run.report.skip(&file.path, SkipReason::Twin, "");
            continue;
        }
        if workspace.is_unchanged(&file, run) {
            continue;
        }
        if let Some(session) = chat(&file, workspace.project.as_deref(), run) {
            run.emit(session)?;
        }
    }
    ControlFlow::Continue(())
}

fn is_log(file: &Found) -> bool {
    file.path
        .extension()
        .is_some_and(|extension| extension == "jsonl")
}

/// Reads one chat.
fn chat(file: &Found, project: Option<&str>, run: &mut Run<'_>) -> Option<Session> {
    let door = run.door();
    let mut log = run.open(file)?;
    let mut state = State::default();
    if is_log(file) {
        log.each_record(keep_all, &mut run.report, |offset, record, report| {
            if !state.apply(offset, &record.to_value()) {
                report.unknown_kind(Agent::CopilotChat, "operation");
            }
        });
    } else if let Some(document) = log.whole_document(run.options.limits.line, &mut run.report) {
        state.start(0, &document.node().to_value());
    }
    run.close(log);
    if state.is_full() {
        run.report.skip(&file.path, SkipReason::TooLarge, "");
        return None;
    }
    if state.is_empty() {
        run.report.skip(&file.path, SkipReason::Empty, "");
        return None;
    }
    let mut session = chat::session(&mut state, door, project, &mut run.report);
    session.files = vec![file.path.to_string_lossy().into_owned()];
    if session.id.is_empty() {
        session.id = door.note(&stem(file));
    }
    Some(session)
}

/// Reads the transcripts of a folder, for chats that are not there otherwise.
fn transcripts(
    folder: &Path,
    workspace: &Workspace,
    known: &mut HashSet<String>,
    run: &mut Run<'_>,
) -> ControlFlow<()> {
    for file in logs(folder, run, &|name| name.ends_with(".jsonl")) {
        if !known.insert(stem(&file)) {
            run.report.skip(&file.path, SkipReason::Twin, "");
            continue;
        }
        if workspace.is_unchanged(&file, run) {
            continue;
        }
        if let Some(session) = transcript(&file, workspace.project.as_deref(), run) {
            run.emit(session)?;
        }
    }
    ControlFlow::Continue(())
}

fn transcript(file: &Found, project: Option<&str>, run: &mut Run<'_>) -> Option<Session> {
    let door: Door<'_> = run.door();
    let mut log = run.open(file)?;
    let mut teller = Teller::new(Agent::CopilotChat, door);
    log.each_record(keep_all, &mut run.report, |offset, record, report| {
        teller.tell(offset, record, report)
    });
    run.close(log);
    if teller.is_empty() {
        run.report.skip(&file.path, SkipReason::Empty, "");
        return None;
    }
    let facts = teller.facts();
    facts.files = vec![file.path.to_string_lossy().into_owned()];
    if facts.id.is_empty() {
        facts.id = door.note(&stem(file));
    }
    facts.project = facts
        .project
        .take()
        .or_else(|| project.map(|path| door.note(path)));
    // What is called a version there is the extension's.
    facts.agent_version = None;
    Some(noise::of_prompts(teller.finish()))
}

/// The directory of a workspace: its folder, or the folder of its workspace file.
fn project(workspace: &Path) -> Option<String> {
    const LONGEST: u64 = 64 * 1024;
    let path = workspace.join(WORKSPACE);
    if !std::fs::symlink_metadata(&path).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    let file = fs_err::File::open(&path).ok()?;
    file.take(LONGEST).read_to_end(&mut bytes).ok()?;
    let value = Json::parse(std::str::from_utf8(&bytes).ok()?).ok()?;
    let node = value.node();
    if let Some(folder) = node.get("folder").text() {
        return Some(path_of(folder));
    }
    let file = path_of(node.get("workspace").text()?);
    file.rsplit_once('/').map(|(folder, _)| folder.to_owned())
}

/// The path in an address such as `file:///home/dev/Gr%C3%BC%C3%9Fe` or
/// `vscode-remote://wsl%2Bubuntu/home/dev`.
fn path_of(address: &str) -> String {
    let Some((_, rest)) = address.split_once("://") else {
        return address.to_owned();
    };
    let path = rest.find('/').map_or(rest, |start| &rest[start..]);
    let path = decoded(path);
    // `/c:/src` is a path of Windows.
    match path.as_bytes() {
        [b'/', drive, b':', ..] if drive.is_ascii_alphabetic() => path[1..].to_owned(),
        _ => path,
    }
}

/// Percent-encoding undone.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let byte = text
            .get(at + 1..at + 3)
            .filter(|_| bytes[at] == b'%')
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(byte.unwrap_or(bytes[at]));
        at += if byte.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_become_paths() {
        for (address, path) in [
            (
                "file:///home/dev/Gr%C3%BC%C3%9Fe%20App",
                "/home/dev/Grüße App",
            ),
            ("file:///c%3A/src/x", "c:/src/x"),
            ("vscode-remote://wsl%2Bubuntu/home/dev/x", "/home/dev/x"),
            ("/plain", "/plain"),
            ("file:///50%/%zz%e", "/50%/%zz%e"),
        ] {
            assert_eq!(path_of(address), path);
        }
    }
}
