//! Which agents read a document, as far as its place tells: that decides which limits it has to
//! keep.

use std::path::{Component, Path, PathBuf};

use skillopt_harvesters::Agent;

/// The folders in which single agents look for skills, in a home or a project.
const FOLDERS: [(&str, &str); 4] = [
    (".claude", "claude-code"),
    (".codex", "codex"),
    (".cursor", "cursor"),
    (".devin", "devin"),
];

/// The agents that read the document at `path`; none when the place does not tell, as with
/// `AGENTS.md`, which many agents read.
#[must_use]
pub fn of(path: &Path, homes: &[(Agent, PathBuf)]) -> Vec<String> {
    let file = path.file_name().and_then(|name| name.to_str());
    match file {
        Some("CLAUDE.md" | "CLAUDE.local.md") => return vec!["claude-code".to_owned()],
        Some("GEMINI.md") => return vec!["gemini".to_owned()],
        _ => {}
    }
    let mut hosts: Vec<String> = homes
        .iter()
        .filter(|(_, home)| path.starts_with(home))
        .map(|(agent, _)| name(*agent).to_owned())
        .collect();
    if hosts.is_empty() {
        let parts = path.components();
        let folder = |part: Component<'_>| {
            FOLDERS
                .iter()
                .find(|(folder, _)| part.as_os_str() == *folder)
                .map(|(_, host)| (*host).to_owned())
        };
        hosts.extend(parts.filter_map(folder).next_back());
    }
    hosts.sort();
    hosts.dedup();
    hosts
}

fn name(agent: Agent) -> &'static str {
    match agent {
        Agent::Claude => "claude-code",
        other => other.name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_tells_who_reads() {
        let homes = [
            (Agent::Claude, PathBuf::from("/etc/claude")),
            (Agent::Codex, PathBuf::from("/home/sam/.codex")),
        ];
        let of = |path: &str| of(Path::new(path), &homes).join(" ");
        assert_eq!(of("/etc/claude/skills/a/SKILL.md"), "claude-code");
        assert_eq!(of("/home/sam/.codex/skills/a/SKILL.md"), "codex");
        assert_eq!(of("/src/orchard/.claude/skills/a/SKILL.md"), "claude-code");
        assert_eq!(of("/src/orchard/.cursor/skills/a/SKILL.md"), "cursor");
        assert_eq!(of("/src/orchard/CLAUDE.md"), "claude-code");
        assert_eq!(of("/src/orchard/AGENTS.md"), "");
        assert_eq!(of("/src/orchard/.agents/skills/a/SKILL.md"), "");
        assert_eq!(
            of("/src/.claude/worktrees/x/.codex/skills/a/SKILL.md"),
            "codex"
        );
    }
}
