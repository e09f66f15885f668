//! Where skills lie, and which file a skill's name means.
//!
//! An agent that uses the skill `deploy` reads `<root>/deploy/SKILL.md` under one of several
//! roots: of the project, of the agent's home, of its plugins, of configuration. A log only has the
//! name. The name means a file only when exactly one root has it; where two have it nothing is
//! guessed.
//!
//! Looking reads no document and writes nothing. Whether a found one may be changed is for
//! [`preflight`](crate::preflight) to say.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use crate::names::resolvable_name;

/// Folders of a project in which agents look for skills.
pub const PROJECT_SKILLS: [&str; 4] = [
    ".agents/skills",
    ".claude/skills",
    ".cursor/skills",
    ".devin/skills",
];

/// The folder of an agent's home, and of a plugin, that holds skills.
const SKILLS: &str = "skills";

/// Most folders of plugins that are looked at.
const MAX_PLUGINS: usize = 1_000;

/// The roots in which skills are looked for: existing directories, each once, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillRoots {
    roots: Vec<Root>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Root {
    path: PathBuf,
    real: PathBuf,
    plugin: Option<String>,
}

/// What a skill's name means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// It cannot be a skill's name.
    Rejected,
    /// No root has it.
    Missing,
    /// This file, as the root spells it; links are not resolved.
    Found(PathBuf),
    /// Several different files.
    Ambiguous(Vec<PathBuf>),
    /// Only this one, which is a link that leads out of its root.
    Outside(PathBuf),
}

impl SkillRoots {
    /// No roots.
    #[must_use]
    pub fn new() -> SkillRoots {
        SkillRoots::default()
    }

    /// Adds a project's folders of skills.
    #[must_use]
    pub fn project(self, project: &Path) -> SkillRoots {
        PROJECT_SKILLS
            .iter()
            .fold(self, |roots, folder| roots.directory(project.join(folder)))
    }

    /// Adds the skills of an agent's home.
    #[must_use]
    pub fn home(self, home: &Path) -> SkillRoots {
        self.directory(home.join(SKILLS))
    }

    /// Adds the skills of the plugins that are installed in Claude Code's home, each in its
    /// newest version.
    #[must_use]
    pub fn plugins(mut self, claude_home: &Path) -> SkillRoots {
        for (plugin, path) in plugin_skills(claude_home) {
            self.add(path, Some(plugin));
        }
        self
    }

    /// Adds a directory of skills.
    #[must_use]
    pub fn directory(mut self, path: PathBuf) -> SkillRoots {
        self.add(path, None);
        self
    }

    fn add(&mut self, path: PathBuf, plugin: Option<String>) {
        let Ok(real) = path.canonicalize() else {
            return;
        };
        if real.is_dir() && !self.roots.iter().any(|root| root.real == real) {
            self.roots.push(Root { path, real, plugin });
        }
    }

    /// The directories, as they were given.
    pub fn directories(&self) -> impl Iterator<Item = &Path> {
        self.roots.iter().map(|root| root.path.as_path())
    }

    /// Finds the file that a skill's name means. `plugin:name` is looked for in that plugin
    /// alone. A link that leads out of its root counts for nothing when another root has the name.
    #[must_use]
    pub fn find(&self, name: &str) -> Lookup {
        let Some(name) = resolvable_name(name) else {
            return Lookup::Rejected;
        };
        let (plugin, name) = match name.split_once(':') {
            Some((plugin, name)) if self.has_plugin(plugin) => (Some(plugin), name),
            _ => (None, name),
        };
        let Some(name) = resolvable_name(name) else {
            return Lookup::Rejected;
        };
        let mut found: Vec<(PathBuf, PathBuf)> = Vec::new();
        let mut outside = None;
        for root in &self.roots {
            if plugin.is_some() && root.plugin.as_deref() != plugin {
                continue;
            }
            let path = root.path.join(name).join("SKILL.md");
            let Ok(real) = path.canonicalize() else {
                continue;
            };
            if !real.is_file() {
                continue;
            }
            if !real.starts_with(&root.real) {
                outside = Some(path);
            } else if !found.iter().any(|(_, known)| *known == real) {
                found.push((path, real));
            }
        }
        let mut paths = found.into_iter().map(|(path, _)| path);
        match (paths.next(), paths.next()) {
            (None, _) => outside.map_or(Lookup::Missing, Lookup::Outside),
            (Some(only), None) => Lookup::Found(only),
            (Some(first), Some(second)) => {
                Lookup::Ambiguous([first, second].into_iter().chain(paths).collect())
            }
        }
    }

    fn has_plugin(&self, plugin: &str) -> bool {
        self.roots
            .iter()
            .any(|root| root.plugin.as_deref() == Some(plugin))
    }
}

/// The plugins below a home of Claude Code with their directories of skills:
/// `plugins/cache/<market>/<plugin>/<newest version>/skills`, or without a version.
fn plugin_skills(claude_home: &Path) -> Vec<(String, PathBuf)> {
    let cache = claude_home.join("plugins").join("cache");
    let mut found = Vec::new();
    for market in subdirectories(&cache) {
        let market = cache.join(market);
        for plugin in subdirectories(&market) {
            if found.len() == MAX_PLUGINS {
                return found;
            }
            let folder = market.join(&plugin);
            let versions = subdirectories(&folder)
                .into_iter()
                .filter(|version| folder.join(version).join(SKILLS).is_dir())
                .filter(|version| version != SKILLS);
            let skills = match versions.max_by(|one, other| version_order(one, other)) {
                Some(newest) => folder.join(newest).join(SKILLS),
                None => folder.join(SKILLS),
            };
            found.push((plugin, skills));
        }
    }
    found
}

/// The directories in a directory, links to directories too, by name.
fn subdirectories(path: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(path) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// Which of two versions is the newer one. Numbers in front are compared as numbers; a release
/// is above its own prereleases (`2.0.0` above `2.0.0-rc.1`); the rest goes by its text.
#[must_use]
pub fn version_order(one: &str, other: &str) -> Ordering {
    let (numbers, suffix) = version(one);
    let (other_numbers, other_suffix) = version(other);
    compare_numbers(&numbers, &other_numbers)
        .then_with(|| suffix.is_empty().cmp(&other_suffix.is_empty()))
        .then_with(|| suffix.cmp(&other_suffix))
        .then_with(|| one.cmp(other))
}

/// The leading numbers, without zeros in front, and the parts from the first that is none.
fn version(text: &str) -> (Vec<&str>, Vec<&str>) {
    let parts: Vec<&str> = text.split(['.', '_', '-', '+']).collect();
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let count = parts.iter().take_while(|part| is_number(part)).count();
    let numbers = parts[..count]
        .iter()
        .map(|part| part.trim_start_matches('0'))
        .collect();
    (numbers, parts[count..].to_vec())
}

/// Numbers of any length: a longer one is larger, and missing ones come first.
fn compare_numbers(one: &[&str], other: &[&str]) -> Ordering {
    let mut orders = one
        .iter()
        .zip(other)
        .map(|(one, other)| one.len().cmp(&other.len()).then_with(|| one.cmp(other)));
    orders
        .find(|order| order.is_ne())
        .unwrap_or_else(|| one.len().cmp(&other.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(home: &Path, path: &str) -> PathBuf {
        let path = home.join(path).join("SKILL.md");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "# S\n").unwrap();
        path
    }

    #[test]
    fn a_name_means_the_only_file_that_has_it() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        let project = home.join("project");
        let deploy = skill(home, "project/.claude/skills/deploy");
        let triage = skill(home, "claude/skills/triage");
        skill(home, "project/.cursor/skills/both");
        skill(home, "claude/skills/both");
        let roots = SkillRoots::new()
            .project(&project)
            .home(&home.join("claude"))
            .directory(home.join("not-there"));
        assert_eq!(roots.directories().count(), 3);
        assert_eq!(roots.find(" deploy "), Lookup::Found(deploy));
        assert_eq!(roots.find("triage"), Lookup::Found(triage));
        assert_eq!(roots.find("Triage"), Lookup::Missing);
        assert!(matches!(roots.find("both"), Lookup::Ambiguous(paths) if paths.len() == 2));
        for name in ["", "..", "a/b", "~x", "a\nb"] {
            assert_eq!(roots.find(name), Lookup::Rejected, "{name:?}");
        }
    }

    #[test]
    fn a_plugin_has_the_skills_of_its_newest_version() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        for version in ["1.9.0", "1.10.0-rc.1"] {
            skill(home, &format!("plugins/cache/m/p/{version}/skills/review"));
        }
        let newest = skill(home, "plugins/cache/m/p/1.10.0/skills/review");
        let unversioned = skill(home, "plugins/cache/m/q/skills/lint");
        let other = skill(home, "plugins/cache/m/r/1/skills/lint");
        let roots = SkillRoots::new().plugins(home);
        assert_eq!(roots.find("review"), Lookup::Found(newest.clone()));
        assert_eq!(roots.find("p:review"), Lookup::Found(newest));
        assert_eq!(roots.find("q:lint"), Lookup::Found(unversioned));
        assert_eq!(roots.find("r:lint"), Lookup::Found(other));
        assert!(matches!(roots.find("lint"), Lookup::Ambiguous(_)));
        assert_eq!(roots.find("q:review"), Lookup::Missing);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_counts_inside_of_its_root_only() {
        use std::os::unix::fs::symlink;
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        skill(home, "skills/real");
        skill(home, "elsewhere");
        symlink("real", home.join("skills/alias")).unwrap();
        symlink(home.join("elsewhere"), home.join("skills/linked")).unwrap();
        symlink(home.join("nothing"), home.join("skills/dangling")).unwrap();
        let roots = SkillRoots::new().home(home);
        let path = |name: &str| home.join("skills").join(name).join("SKILL.md");
        assert_eq!(roots.find("alias"), Lookup::Found(path("alias")));
        assert_eq!(roots.find("linked"), Lookup::Outside(path("linked")));
        assert_eq!(roots.find("dangling"), Lookup::Missing);
    }

    #[test]
    fn versions_go_by_their_numbers() {
        let mut versions = [
            "latest",
            "2.0.0",
            "1.10",
            "2.0.0-rc.1",
            "1.9",
            "10",
            "",
            "1.9.0",
            "0002.1",
        ];
        versions.sort_by(|one, other| version_order(one, other));
        assert_eq!(
            versions,
            [
                "",
                "latest",
                "1.9",
                "1.9.0",
                "1.10",
                "2.0.0-rc.1",
                "2.0.0",
                "0002.1",
                "10"
            ]
        );
    }
}
