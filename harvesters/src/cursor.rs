//! Cursor (session-logs.md, section 9): the transcripts beside its projects.
//!
//! They have no times, results, exit codes, models or tokens. What a call did is not
//! known; its arguments are.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::io::Read as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::assemble::{Assembler, Spot, started_call};
use crate::harvest::Run;
use crate::node::Node;
use crate::noise;
use crate::redact::Redacted;
use crate::report::SkipReason;
use crate::session::{Agent, CommandRun, IncidentKind, Place, PromptKind, Session, ToolCall};
use crate::source::{Source, SourceInfo};
use crate::tape::{Json, Scalar, keep_all};
use crate::walk::{self, Found};

/// The file in a project's folder that tells its path.
const TRUST: &str = ".workspace-trusted";

/// Tools that change the file that they name.
const EDITORS: &[&str] = &["StrReplace", "Write", "Edit", "MultiEdit"];

/// Cursor's transcripts.
pub(crate) struct Cursor;

impl Source for Cursor {
    fn info(&self) -> SourceInfo {
        SourceInfo {
            agent: Agent::Cursor,
            title: "Cursor",
            reads: "projects/*/agent-transcripts/**/*.jsonl and *.txt, projects/*/.workspace-trusted",
            location: "~/.cursor",
            keeps: "prompts, answers, tool calls without results, files (no times, models or tokens in the log)",
        }
    }

    fn default_roots(
        &self,
        _: &str,
        home: &Path,
        _: &dyn Fn(&str) -> Option<OsString>,
    ) -> Vec<PathBuf> {
        vec![home.join(".cursor")]
    }

    fn read(&self, root: &Path, run: &mut Run<'_>) -> ControlFlow<()> {
        let files = walk::files(&root.join("projects"), &mut run.report, &|name| {
            name.ends_with(".jsonl") || name.ends_with(".txt")
        });
        let (mut transcripts, sub_agents) = sorted(files, run);
        // The same transcript may be there in two forms: lines of JSON tell more.
        transcripts.sort_by_key(|(project, id, file)| {
            let is_text = file.path.extension().is_some_and(|ending| ending == "txt");
            (project.clone(), id.clone(), is_text, file.path.clone())
        });
        let mut known = HashSet::new();
        for (project, id, file) in transcripts {
            run.report.files_found += 1;
            if !known.insert((project.clone(), id.clone())) {
                run.report.skip(&file.path, SkipReason::Twin, "");
                continue;
            }
            let helpers = sub_agents.get(&(project.clone(), id.clone()));
            let helpers = helpers.map(Vec::as_slice).unwrap_or_default();
            let trust = walk::aside(project.join(TRUST));
            let all = std::iter::once(&file).chain(helpers).chain(&trust);
            if run.all_unchanged(all.clone()) {
                continue;
            }
            for aside in all.skip(1) {
                run.remember(aside);
            }
            if let Some(session) = session(&file, &project, &id, helpers, run) {
                run.emit(session)?;
            }
        }
        ControlFlow::Continue(())
    }
}

/// Transcripts with their project folder and id.
type Transcripts = Vec<(PathBuf, String, Found)>;
/// Sub-agents' files by project folder and id of their session.
type SubAgents = BTreeMap<(PathBuf, String), Vec<Found>>;

/// Parts `<project>/agent-transcripts/<id>.jsonl` and `…/<id>/<id>.jsonl` from
/// `…/<id>/subagents/…`; anything else is no transcript.
fn sorted(files: Vec<Found>, run: &mut Run<'_>) -> (Transcripts, SubAgents) {
    let mut transcripts = Vec::new();
    let mut sub_agents = SubAgents::new();
    for file in files {
        let parts: Vec<String> = file
            .path
            .components()
            .map(|part| part.as_os_str().to_string_lossy().into_owned())
            .collect();
        let Some(at) = parts.iter().rposition(|part| part == "agent-transcripts") else {
            continue;
        };
        let project: PathBuf = file.path.components().take(at).collect();
        let stem = file.path.file_stem().unwrap_or_default().to_string_lossy();
        let stem = stem.into_owned();
        match &parts[at + 1..] {
            [_] => transcripts.push((project, stem, file)),
            [_, _] => transcripts.push((project, stem, file)),
            [id, folder, ..] if folder == "subagents" => {
                run.report.skip(&file.path, SkipReason::SubAgent, "");
                sub_agents
                    .entry((project, id.clone()))
                    .or_default()
                    .push(file);
            }
            _ => {}
        }
    }
    (transcripts, sub_agents)
}

/// Reads one transcript.
fn session(
    file: &Found,
    project: &Path,
    id: &str,
    sub_agents: &[Found],
    run: &mut Run<'_>,
) -> Option<Session> {
    let door = run.door();
    let mut log = run.open(file)?;
    let mut teller = Teller {
        assembler: Assembler::new(door),
        ends_with_text: false,
        project: trusted(project).map(|path| door.note(&path)),
    };
    let is_text = file.path.extension().is_some_and(|ending| ending == "txt");
    let mut records = 0_u64;
    if is_text {
        for block in blocks(&text(&file.path, run)) {
            records += 1;
            teller.block(&block);
        }
    } else {
        log.each_record(keep_all, &mut run.report, |offset, record, _| {
            records += 1;
            teller.record(record, offset);
        });
    }
    run.close(log);
    if records == 0 {
        run.report.skip(&file.path, SkipReason::Empty, "");
        return None;
    }
    let facts = &mut teller.assembler.session;
    facts.agent = Agent::Cursor;
    facts.id = door.note(id);
    facts.project = teller.project;
    facts.files = vec![file.path.to_string_lossy().into_owned()];
    facts.written = file.stamp.time();
    facts.sub_agents = u32::try_from(sub_agents.len()).unwrap_or(u32::MAX);
    facts.sub_agent_files = sub_agents
        .iter()
        .map(|file| file.path.to_string_lossy().into_owned())
        .collect();
    Some(noise::of_prompts(teller.assembler.finish()))
}

/// The path of a project, if a file in its folder tells: the folder's name cannot be
/// turned back.
fn trusted(project: &Path) -> Option<String> {
    let text = small(&project.join(TRUST), 64 * 1024)?;
    let value = Json::parse(&text).ok()?;
    value
        .node()
        .get("workspacePath")
        .text()
        .filter(|path| path.starts_with('/') || path.get(1..2) == Some(":"))
        .map(|path| match path.trim_end_matches('/') {
            "" => path.to_owned(),
            folder => folder.to_owned(),
        })
}

/// The name of the folder in which Cursor keeps what belongs to a project: its path with a
/// hyphen for everything that is no letter or digit.
pub(crate) fn folder_name(project: &Path) -> String {
    let mut name = String::new();
    for letter in crate::path::normal(&project.to_string_lossy()).chars() {
        if letter.is_ascii_alphanumeric() {
            name.push(letter);
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
    }
    name.trim_end_matches('-').to_owned()
}

/// The name of the folder that a transcript lies in: all that is known of its project
/// where no file tells.
pub(crate) fn folder_of(transcript: &str) -> Option<&str> {
    let (folder, _) = transcript.split_once("/agent-transcripts/")?;
    folder.rsplit('/').next()
}

/// The beginning of a regular file.
fn small(path: &Path, longest: u64) -> Option<String> {
    if !std::fs::symlink_metadata(path).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    let file = fs_err::File::open(path).ok()?;
    file.take(longest).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// A plain text transcript, up to the cap of one line elsewhere.
fn text(path: &Path, run: &mut Run<'_>) -> String {
    let cap = u64::try_from(run.options.limits.line).unwrap_or(u64::MAX);
    let text = small(path, cap).unwrap_or_default();
    run.report.bytes_read += text.len() as u64;
    text
}

/// What a plain text transcript consists of.
enum Block {
    User(String),
    Text(String),
    Thinking,
    Call { name: String, lines: Vec<String> },
    Result,
}

/// Parts a plain text transcript at its marks.
fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for line in text.lines() {
        let marked = match line.trim_end() {
            "user:" => Some(Block::User(String::new())),
            "assistant:" => Some(Block::Text(String::new())),
            line => marked(line),
        };
        if let Some(block) = marked {
            blocks.push(block);
            continue;
        }
        match blocks.last_mut() {
            Some(Block::User(text) | Block::Text(text)) => {
                text.push_str(line);
                text.push('\n');
            }
            // Arguments are indented; what stands at the margin is text again.
            Some(Block::Call { lines, .. }) if line.starts_with(' ') => lines.push(line.to_owned()),
            Some(Block::Call { .. }) if !line.trim().is_empty() => {
                blocks.push(Block::Text(format!("{line}\n")));
            }
            // A thought ends at an empty line.
            Some(Block::Thinking) if line.trim().is_empty() => {
                blocks.push(Block::Text(String::new()));
            }
            _ => {}
        }
    }
    blocks
}

/// A line that begins a block.
fn marked(line: &str) -> Option<Block> {
    if let Some(name) = line.strip_prefix("[Tool call] ") {
        return Some(Block::Call {
            name: name.trim().to_owned(),
            lines: Vec::new(),
        });
    }
    if line.starts_with("[Tool result]") {
        return Some(Block::Result);
    }
    line.starts_with("[Thinking]").then_some(Block::Thinking)
}

/// Tells the assembler what happened.
struct Teller<'a> {
    assembler: Assembler<'a>,
    /// The last thing in the turn is a text.
    ends_with_text: bool,
    project: Option<Redacted>,
}

impl Teller<'_> {
    fn record(&mut self, record: Node<'_>, offset: u64) {
        let spot = Spot {
            place: Place { file: 0, offset },
            at: None,
        };
        let content = record.at(&["message", "content"]);
        let role = record.get("role").str();
        match role.or_else(|| record.at(&["message", "role"]).str()) {
            Some("user") => {
                let texts: Vec<&str> = content
                    .list()
                    .filter_map(|block| block.get("text").text())
                    .chain(content.text())
                    .collect();
                self.prompt(&texts.join("\n"), spot);
            }
            Some("assistant") => {
                if let Some(text) = content.text() {
                    self.text(text, spot);
                }
                for block in content.list() {
                    match block.get("type").str() {
                        Some("text") => {
                            self.text(block.get("text").str().unwrap_or_default(), spot)
                        }
                        Some("tool_use") => {
                            let name = block.get("name").str().unwrap_or_default();
                            self.call(name, block.get("input"), spot);
                        }
                        _ => {}
                    }
                }
            }
            _ if record.get("type").str() == Some("turn_ended") => {
                self.ended(record.get("status").str().unwrap_or_default(), spot);
            }
            _ => {}
        }
    }

    fn block(&mut self, block: &Block) {
        let spot = Spot::default();
        match block {
            Block::User(text) => self.prompt(text, spot),
            Block::Text(text) => self.text(text, spot),
            Block::Call { name, lines } => {
                let members = lines
                    .iter()
                    .filter_map(|line| line.trim_start().split_once(": "))
                    .map(|(key, value)| (key, Scalar::Text(Cow::Borrowed(value))));
                self.call(name, Json::object(members).node(), spot);
            }
            Block::Thinking | Block::Result => {}
        }
    }

    /// The prompt stands between tags; text before it (open files, rules) is the
    /// program's.
    fn prompt(&mut self, text: &str, spot: Spot) {
        self.ends_with_text = false;
        let mut asked = Vec::new();
        let mut around = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("<user_query>") {
            around.push_str(before);
            let (query, after) = after.split_once("</user_query>").unwrap_or((after, ""));
            asked.push(query.trim());
            rest = after;
        }
        if asked.is_empty() {
            asked.push(rest.trim());
        } else {
            around.push_str(rest);
        }
        self.assembler.machine_text(
            Redacted::own("context"),
            &self.assembler.door.note(&around),
            spot.place,
        );
        let text = asked.join("\n");
        if !text.is_empty() {
            self.assembler.prompt(
                self.assembler.door.prompt(&text),
                PromptKind::Typed,
                0,
                spot,
                None,
            );
        }
    }

    fn text(&mut self, text: &str, spot: Spot) {
        self.ends_with_text |= !text.trim().is_empty();
        self.assembler
            .text(self.assembler.door.answer(text), false, spot);
    }

    fn call(&mut self, name: &str, arguments: Node<'_>, spot: Spot) {
        self.ends_with_text = false;
        let door = self.assembler.door;
        let command = arguments.get("command").text().filter(|_| name == "Shell");
        let path = ["path", "file_path"]
            .into_iter()
            .find_map(|key| arguments.get(key).text())
            .filter(|_| EDITORS.contains(&name))
            .map(|path| door.path(path, self.project.as_deref()));
        let call = ToolCall {
            arguments: door.arguments(arguments),
            command: command.map(|line| CommandRun {
                text: door.command(line),
                ..CommandRun::default()
            }),
            edits: path.into_iter().collect(),
            ..started_call(Redacted::EMPTY, door.note(name), spot)
        };
        self.assembler.call(call, None);
    }

    /// Texts are written when they are whole: one before an interruption is an answer.
    fn ended(&mut self, status: &str, spot: Spot) {
        match status {
            "aborted" if self.ends_with_text => {
                self.assembler
                    .incident(IncidentKind::Interruption, &Redacted::EMPTY, spot)
            }
            "aborted" => self.assembler.interrupted(&Redacted::EMPTY, spot),
            "error" => self
                .assembler
                .failed(&Redacted::own("the turn ended with an error"), spot),
            _ => {}
        }
    }
}
