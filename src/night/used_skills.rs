//! The skills that sessions used, as files: where each agent looks for them, and which of a skill's
//! files may be trained.

use std::path::{Path, PathBuf};

use skillopt_harvesters::Agent;
use skillopt_staging::{Lookup, SkillRoots};

/// The folder of a skill with what its SKILL.md refers to.
const REFERENCES: &str = "references";

/// Most files of a skill's references that are looked at, and how deep they may lie.
const MAX_REFERENCES: usize = 64;
const MAX_DEPTH: usize = 3;

/// Where the skills that sessions used are looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsedSkills {
    /// The agents' homes.
    pub homes: Vec<(Agent, PathBuf)>,
    /// More directories of skills; relative ones belong to the project.
    pub directories: Vec<PathBuf>,
    /// Whether files of `references/` may be trained too.
    pub references: bool,
}

impl UsedSkills {
    /// The file that a skill's name meant to an agent that worked in `project`. What lies in the
    /// project and in the agent's own home comes before what only other agents have.
    #[must_use]
    pub fn find(&self, name: &str, project: &str, agent: Agent) -> Lookup {
        let (own, others): (Vec<_>, Vec<_>) =
            self.homes.iter().partition(|(owner, _)| *owner == agent);
        let project = Path::new(project);
        let folders = project_folders(project);
        let mut roots = folders
            .iter()
            .fold(SkillRoots::new(), |roots, folder| roots.project(folder));
        for (owner, home) in own {
            roots = with_home(roots, *owner, home);
        }
        for directory in &self.directories {
            roots = roots.directory(project.join(directory));
        }
        match roots.find(name) {
            Lookup::Missing => {
                let roots = others
                    .iter()
                    .fold(SkillRoots::new(), |roots, (owner, home)| {
                        with_home(roots, *owner, home)
                    });
                roots.find(name)
            }
            found => found,
        }
    }
}

fn with_home(roots: SkillRoots, owner: Agent, home: &Path) -> SkillRoots {
    let roots = roots.home(home);
    match owner {
        Agent::Claude => roots.plugins(home),
        _ => roots,
    }
}

/// The folders of a project that hold its skills: where the session began and those above it, up to
/// the repository's.
fn project_folders(project: &Path) -> Vec<PathBuf> {
    if !project.is_absolute() {
        return Vec::new();
    }
    let repository = project
        .ancestors()
        .find(|folder| folder.join(".git").exists());
    let top = repository.unwrap_or(project);
    project
        .ancestors()
        .take_while(|folder| folder.starts_with(top))
        .map(Path::to_owned)
        .collect()
}

/// The Markdown files of a skill's `references/`, relative to the skill's folder, by name. Links are
/// not followed.
#[must_use]
pub fn references(skill: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if let Some(folder) = skill.parent() {
        collect(folder, Path::new(REFERENCES), MAX_DEPTH, &mut found);
    }
    found
}

fn collect(folder: &Path, below: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs_err::read_dir(folder.join(below)) else {
        return;
    };
    let mut entries: Vec<_> = entries
        .filter_map(Result::ok)
        .take(MAX_REFERENCES * 4)
        .filter_map(|entry| {
            Some((
                entry.file_name().into_string().ok()?,
                entry.file_type().ok()?,
            ))
        })
        .collect();
    entries.sort_by(|one, other| one.0.cmp(&other.0));
    for (name, kind) in entries {
        let path = below.join(&name);
        if kind.is_dir() && depth > 1 {
            collect(folder, &path, depth - 1, found);
        } else if kind.is_file() && name.ends_with(".md") && found.len() < MAX_REFERENCES {
            found.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(home: &Path, name: &str) -> PathBuf {
        let path = home.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "# S\n").unwrap();
        path
    }

    #[test]
    fn what_the_agent_itself_would_read_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        let claude = write(home, "claude/skills/lint/SKILL.md");
        let codex = write(home, "codex/skills/lint/SKILL.md");
        let only = write(home, "codex/skills/only/SKILL.md");
        let used = UsedSkills {
            homes: vec![
                (Agent::Claude, home.join("claude")),
                (Agent::Codex, home.join("codex")),
            ],
            ..UsedSkills::default()
        };
        assert_eq!(used.find("lint", "", Agent::Claude), Lookup::Found(claude));
        assert_eq!(used.find("lint", "", Agent::Codex), Lookup::Found(codex));
        assert_eq!(used.find("only", "", Agent::Claude), Lookup::Found(only));
        assert!(matches!(
            used.find("lint", "", Agent::Pi),
            Lookup::Ambiguous(_)
        ));
    }

    #[test]
    fn a_session_in_a_part_of_a_repository_reads_the_skills_above_it() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        std::fs::create_dir_all(home.join("repo/.git")).unwrap();
        std::fs::create_dir_all(home.join("repo/part")).unwrap();
        let whole = write(home, "repo/.claude/skills/ship/SKILL.md");
        write(home, ".claude/skills/outside/SKILL.md");
        write(home, "repo/skills/extra/SKILL.md");
        let used = UsedSkills {
            directories: vec!["../skills".into()],
            ..UsedSkills::default()
        };
        let find = |name: &str| {
            used.find(
                name,
                &home.join("repo/part").display().to_string(),
                Agent::Pi,
            )
        };
        assert_eq!(find("ship"), Lookup::Found(whole));
        assert_eq!(find("outside"), Lookup::Missing);
        assert!(
            matches!(find("extra"), Lookup::Found(_)),
            "relative to the project"
        );
    }

    #[test]
    fn references_are_markdown_files_and_no_links() {
        let folder = tempfile::tempdir().unwrap();
        let skill = write(folder.path(), "s/SKILL.md");
        write(folder.path(), "s/references/b.md");
        write(folder.path(), "s/references/a/deep.md");
        write(folder.path(), "s/references/table.csv");
        write(folder.path(), "s/references/1/2/3/4.md");
        std::os::unix::fs::symlink(&skill, folder.path().join("s/references/link.md")).unwrap();
        let found = references(&skill);
        assert_eq!(
            found,
            ["references/a/deep.md", "references/b.md"].map(PathBuf::from)
        );
        assert!(references(&folder.path().join("none/SKILL.md")).is_empty());
    }
}
