//! The groups about where skills lie and which file a skill's name means.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use skillopt_staging::{Lookup, SkillRoots, resolvable_name, version_order};

use super::engine::{text, texts};
use super::{Group, Vector, group};

pub(super) const GROUPS: &[Group] = &[
    group("staging/resolver", resolver),
    group("sleep/skill_resolution", skill_resolution),
    group("sleep/skill_version_order", |vector| {
        json!(ordered(&vector.input["versions"]))
    }),
];

/// Versions from the oldest to the newest.
fn ordered(versions: &Value) -> Vec<String> {
    let mut versions = texts(versions);
    versions.sort_by(|one, other| version_order(one, other));
    versions
}

/// A folder in which a recorded path lies as it is written.
struct Root {
    _dir: tempfile::TempDir,
    path: PathBuf,
    recorded: &'static str,
}

impl Root {
    fn new(recorded: &'static str) -> Root {
        let dir = tempfile::tempdir().expect("a folder");
        Root {
            path: dir.path().canonicalize().expect("its path"),
            recorded,
            _dir: dir,
        }
    }

    fn here(&self, path: &str) -> PathBuf {
        match path.strip_prefix(self.recorded) {
            Some(rest) => self.path.join(rest.trim_start_matches('/')),
            None => self.path.join(path),
        }
    }

    /// A path as the vectors write it.
    fn as_recorded(&self, path: &Path) -> String {
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        match real.strip_prefix(&self.path) {
            Ok(inside) => format!("{}/{}", self.recorded, inside.display()),
            Err(_) => real.display().to_string(),
        }
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.here(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("its folder");
        fs::write(path, text).expect("a file");
    }

    fn link(&self, path: &str, target: &str) {
        let path = self.here(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("its folder");
        symlink(self.here(target), path).expect("a link");
    }

    fn folder(&self, path: &str) {
        fs::create_dir_all(self.here(path)).expect("a folder");
    }

    /// The roots in the original's order: project, home, configured ones, plugins.
    fn roots(&self, project: &str, home: &str, extra: &[String]) -> SkillRoots {
        let mut roots = SkillRoots::new();
        if !project.is_empty() {
            roots = roots.project(&self.here(project));
        }
        if !home.is_empty() {
            roots = roots.home(&self.here(home));
        }
        for root in extra
            .iter()
            .map(|root| root.trim())
            .filter(|root| !root.is_empty())
        {
            let absolute = root.starts_with(self.recorded);
            let place = match absolute {
                true => self.here(root),
                false => self.here(project).join(root),
            };
            roots = roots.directory(place);
        }
        if !home.is_empty() {
            roots = roots.plugins(&self.here(home));
        }
        roots
    }

    fn listed(&self, roots: &SkillRoots) -> Vec<String> {
        roots
            .directories()
            .map(|root| self.as_recorded(root))
            .collect()
    }

    /// What a name means, in the original's words.
    fn look_up(&self, roots: &SkillRoots, name: &str) -> Value {
        let (status, found) = match roots.find(name) {
            Lookup::Rejected => ("rejected", Vec::new()),
            Lookup::Missing | Lookup::Outside(_) => ("missing", Vec::new()),
            Lookup::Found(path) => ("found", vec![path]),
            Lookup::Ambiguous(paths) => ("ambiguous", paths),
        };
        let candidates: Vec<String> = found.iter().map(|path| self.as_recorded(path)).collect();
        let path = match candidates.as_slice() {
            [only] => only.clone(),
            _ => String::new(),
        };
        json!({
            "status": status, "path": path, "candidates": candidates,
            "name": resolvable_name(name).unwrap_or(name),
        })
    }
}

fn resolver(vector: &Vector) -> Value {
    let input = &vector.input;
    if input["check"] == "version_order" {
        return json!({"oldest_to_newest": ordered(&input["versions"])});
    }
    let root = Root::new("/home/dev");
    for entry in input["tree"].as_array().into_iter().flatten() {
        let path = text(entry, "path");
        match (entry["symlink"].as_str(), entry["text"].as_str()) {
            (Some(target), _) => root.link(&path, target),
            (_, Some(content)) => root.file(&path, content),
            _ => root.folder(&path),
        }
    }
    if input["check"] == "search_roots" {
        let config = &input["config"];
        let roots = root.roots(
            &text(config, "invoked_project"),
            &text(config, "claude_home"),
            &texts(&config["skill_roots"]),
        );
        return json!({"roots": root.listed(&roots)});
    }
    let roots = texts(&input["roots"])
        .iter()
        .fold(SkillRoots::new(), |roots, path| {
            roots.directory(root.here(path))
        });
    root.look_up(&roots, &text(input, "skill"))
}

fn skill_resolution(vector: &Vector) -> Value {
    let input = &vector.input;
    let root = Root::new("$ROOT");
    let entries = |key: &str| input[key].as_object().cloned().unwrap_or_default();
    for folder in texts(&input["dirs"]) {
        root.folder(&folder);
    }
    for (path, content) in entries("files") {
        root.file(&path, content.as_str().unwrap_or_default());
    }
    for (path, target) in entries("symlinks") {
        root.link(&path, target.as_str().unwrap_or_default());
    }
    let roots = root.roots(
        &text(input, "project"),
        &text(input, "claude_home"),
        &texts(&input["extra_roots"]),
    );
    let results = texts(&input["names"]).into_iter().map(|name| {
        let mut result = root.look_up(&roots, &name);
        result["query"] = json!(name);
        result
    });
    json!({"roots": root.listed(&roots), "results": results.collect::<Vec<_>>()})
}
