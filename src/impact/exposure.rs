//! In which sessions a document was in force.
//!
//! A skill was used when the log says so: invoked, called by the person, or its file opened. Logs
//! say of few instruction files that they were read, but agents read them by rule: those of its own
//! kind in the folders in and above the one where the session began. Sessions that this program or
//! another one started never count.

use std::path::{Path, PathBuf};

use skillopt_harvesters::session::Origin;
use skillopt_harvesters::{Agent, Session};
use skillopt_staging::{AdoptedDocument, DocumentKind, PROJECT_SKILLS};

/// Whom a document reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exposure {
    reach: Reach,
    read: Read,
}

/// Where the document lies, and so which sessions could use it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Reach {
    /// All of this agent: the document is in its home.
    Agent(Agent),
    /// All that began in a folder or below it; it has two names where a link leads to it.
    Project(Vec<PathBuf>),
    /// All: the document is in a folder of skills that configuration names.
    All,
}

/// What tells that a session used it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Read {
    /// The skill of this name was used.
    Skill(String),
    /// The instruction file at this path.
    File(PathBuf),
}

impl Exposure {
    /// The exposure of a document; `homes` are the folders of the agents.
    #[must_use]
    pub fn of(document: &AdoptedDocument, homes: &[(Agent, PathBuf)]) -> Self {
        let path = &document.path;
        let of_home = homes.iter().find(|(_, home)| path.starts_with(home));
        let reach = match (document.kind, of_home) {
            (_, Some((agent, _))) => Reach::Agent(*agent),
            (DocumentKind::Memory, None) => project(path.parent().unwrap_or(path)),
            (DocumentKind::Skill, None) => match project_of(path) {
                Some(folder) => project(folder),
                None => Reach::All,
            },
        };
        let read = match document.kind {
            DocumentKind::Memory => Read::File(path.clone()),
            DocumentKind::Skill => Read::Skill(skill_of(path)),
        };
        Self { reach, read }
    }

    /// Whether the document could have been used in the session, if it was there.
    #[must_use]
    pub fn could_use(&self, session: &Session) -> bool {
        if session.origin == Origin::Machine {
            return false;
        }
        let reached = match &self.reach {
            Reach::Agent(agent) => session.agent == *agent,
            Reach::Project(folders) => session.project.as_deref().is_some_and(|project| {
                let mut folders = folders.iter();
                folders.any(|folder| Path::new(project).starts_with(folder))
            }),
            Reach::All => true,
        };
        match &self.read {
            Read::Skill(_) => reached,
            Read::File(path) => named_in(session, path) || reached && reads(session.agent, path),
        }
    }

    /// Whether the document was used in the session.
    #[must_use]
    pub fn used(&self, session: &Session) -> bool {
        self.could_use(session)
            && match &self.read {
                Read::Skill(name) => session.skills().into_iter().any(|used| {
                    used == name || used.rsplit_once(':').is_some_and(|(_, used)| used == name)
                }),
                // Nobody has to ask for an instruction file.
                Read::File(_) => true,
            }
    }
}

fn project(folder: &Path) -> Reach {
    let real = fs_err::canonicalize(folder).ok();
    Reach::Project([folder.to_owned()].into_iter().chain(real).collect())
}

fn named_in(session: &Session, path: &Path) -> bool {
    let mut files = session.instruction_files.iter();
    files.any(|file| Path::new(file.as_str()) == path)
}

/// Whether an agent reads instruction files of that name.
fn reads(agent: Agent, path: &Path) -> bool {
    match path.file_name().and_then(|name| name.to_str()) {
        Some("CLAUDE.md" | "CLAUDE.local.md") => agent == Agent::Claude,
        Some("GEMINI.md") => agent == Agent::Gemini,
        Some("AGENTS.md" | "AGENTS.override.md") => !matches!(agent, Agent::Claude | Agent::Gemini),
        _ => true,
    }
}

/// The project whose folder of skills holds the skill.
fn project_of(path: &Path) -> Option<&Path> {
    path.ancestors().find_map(|folder| {
        let skills = PROJECT_SKILLS
            .iter()
            .find(|skills| folder.ends_with(skills))?;
        folder
            .ancestors()
            .nth(Path::new(skills).components().count())
    })
}

/// A skill is called like the folder of its SKILL.md; its references belong to it.
fn skill_of(path: &Path) -> String {
    let references = path
        .ancestors()
        .find(|folder| folder.ends_with("references"));
    let folder = references
        .unwrap_or(path)
        .parent()
        .and_then(Path::file_name);
    folder
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use skillopt_harvesters::session::SkillUse;
    use skillopt_harvesters::{Redacted, Redactor};

    use super::*;

    fn exposure(kind: DocumentKind, path: &str) -> Exposure {
        let document = AdoptedDocument {
            proposal: String::new(),
            name: String::new(),
            kind,
            path: path.into(),
            real_path: path.into(),
            before: None,
            after: None,
            made_directories: Vec::new(),
            edits: BTreeSet::new(),
            edited_by_person: false,
        };
        Exposure::of(&document, &[(Agent::Claude, "/h/.claude".into())])
    }

    fn redacted(text: &str) -> Redacted {
        Redactor::new().redacted(text)
    }

    fn session(agent: Agent, project: &str, skills: &[&str]) -> Session {
        Session {
            agent,
            project: Some(redacted(project)),
            origin: Origin::Interactive,
            skills: skills
                .iter()
                .map(|name| SkillUse {
                    name: redacted(name),
                    ..SkillUse::default()
                })
                .collect(),
            ..Session::default()
        }
    }

    #[test]
    fn a_skill_is_used_by_those_who_can_and_do() {
        let own = exposure(DocumentKind::Skill, "/h/.claude/skills/deploy/SKILL.md");
        assert!(own.used(&session(Agent::Claude, "/p", &["deploy"])));
        assert!(own.used(&session(Agent::Claude, "/p", &["team:deploy"])));
        assert!(!own.used(&session(Agent::Claude, "/p", &["redeploy"])));
        assert!(!own.used(&session(Agent::Codex, "/p", &["deploy"])));
        assert!(own.could_use(&session(Agent::Claude, "/p", &[])));

        let project = exposure(
            DocumentKind::Skill,
            "/p/.claude/skills/deploy/references/a/b.md",
        );
        assert!(project.used(&session(Agent::Codex, "/p/sub", &["deploy"])));
        assert!(!project.used(&session(Agent::Codex, "/pp", &["deploy"])));

        let anywhere = exposure(DocumentKind::Skill, "/srv/skills/deploy/SKILL.md");
        assert!(anywhere.used(&session(Agent::Codex, "/pp", &["deploy"])));
    }

    #[test]
    fn an_instruction_file_is_in_force_where_its_agent_works() {
        let claude = exposure(DocumentKind::Memory, "/p/CLAUDE.md");
        assert!(claude.used(&session(Agent::Claude, "/p/sub", &[])));
        assert!(!claude.used(&session(Agent::Codex, "/p", &[])));
        assert!(!claude.used(&session(Agent::Claude, "/q", &[])));
        let everywhere = exposure(DocumentKind::Memory, "/h/.claude/CLAUDE.md");
        assert!(everywhere.used(&session(Agent::Claude, "/q", &[])));
        let agents = exposure(DocumentKind::Memory, "/p/AGENTS.md");
        assert!(agents.used(&session(Agent::Codex, "/p", &[])));
        let named = Session {
            instruction_files: vec![redacted("/p/AGENTS.md")],
            ..session(Agent::Codex, "/elsewhere", &[])
        };
        assert!(agents.used(&named));
    }

    #[test]
    fn sessions_of_programs_never_count() {
        let own = Session {
            origin: Origin::Machine,
            ..session(Agent::Claude, "/p", &["deploy"])
        };
        let skill = exposure(DocumentKind::Skill, "/h/.claude/skills/deploy/SKILL.md");
        assert!(!skill.used(&own) && !skill.could_use(&own));
    }
}
