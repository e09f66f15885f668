//! One configuration file and everything that it inherits (engine 3.2).
//!
//! A file may name another with `_base_`, which may name another in turn. Files may be structured
//! or flat, and a chain may mix both, so that a setting can be given in either of two places; the
//! layer that is nearer to the entry always wins, whichever form it uses.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value};

use super::flatten::{SECTIONS, SETTINGS, flatten, is_structured};
use super::yaml::join;
use super::{ConfigError, Origin, overrides, yaml};

/// The name that `_base_` can use instead of a path for what is compiled in.
pub const BUILT_IN: &str = "default";

/// The shipped base configuration (engine 3.6).
pub const DEFAULT_YAML: &str = include_str!("../../configs/_base_/default.yaml");

/// Canonical names and the other spellings that stand for them, in their order of precedence.
const ALIASES: [(&str, &[&str]); 2] = [
    (
        "codex_exec_path",
        &["codex_path", "codex_cli_bin", "codex_bin"],
    ),
    ("codex_exec_sandbox", &["sandbox", "codex_sandbox"]),
];

/// Where each key came from, by its dotted path in the merged form.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Origins(BTreeMap<String, Origin>);

impl Origins {
    /// Where a key came from; [`Origin::Default`] when nobody set it.
    #[must_use]
    pub fn of(&self, path: &str) -> Origin {
        self.0.get(path).cloned().unwrap_or(Origin::Default)
    }

    pub(super) fn set(&mut self, path: &str, origin: Origin) {
        self.0.insert(path.to_owned(), origin);
    }
}

/// A configuration with all its layers and overrides merged.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// Whether the merged form has sections.
    pub structured: bool,
    /// The merged form, an object.
    pub merged: Value,
    /// The flat form, an object.
    pub flat: Value,
    /// Where each key of the merged form came from.
    pub origins: Origins,
}

/// Loads `entry`, what it inherits, and `overrides` (`key=value`) in their order.
///
/// # Errors
/// [`ConfigError`]; unknown keys and wrong values are not looked for here.
pub fn load<S: AsRef<str>>(entry: &Path, overrides: &[S]) -> Result<Loaded, ConfigError> {
    load_with_flags(entry, overrides, &[])
}

/// Loads `entry`, what it inherits, `overrides`, and on top of all `flags`: settings by their flat
/// names with values that have their types already (engine 4).
///
/// # Errors
/// As [`load`].
pub fn load_with_flags<S: AsRef<str>>(
    entry: &Path,
    overrides: &[S],
    flags: &[(&str, Value)],
) -> Result<Loaded, ConfigError> {
    let layer = layer(entry, &mut Vec::new(), &Origin::Default)?;
    finish(layer, overrides, flags)
}

/// Loads the built-in configuration alone, with `overrides` on top.
///
/// # Errors
/// [`ConfigError::Override`] when an override has no meaning.
pub fn load_built_in<S: AsRef<str>>(overrides: &[S]) -> Result<Loaded, ConfigError> {
    finish(built_in()?, overrides, &[])
}

fn finish<S: AsRef<str>>(
    mut layer: Layer,
    overrides: &[S],
    flags: &[(&str, Value)],
) -> Result<Loaded, ConfigError> {
    let structured = is_structured(&layer.map);
    if structured {
        name_env(&mut layer);
    }
    overrides::apply(&mut layer.map, &mut layer.origins, overrides)?;
    for (flag, value) in flags {
        overrides::set_flag(
            &mut layer.map,
            &mut layer.origins,
            structured,
            flag,
            value.clone(),
        )?;
    }
    Ok(Loaded {
        structured: is_structured(&layer.map),
        flat: Value::Object(flatten(&layer.map)),
        merged: Value::Object(layer.map),
        origins: layer.origins,
    })
}

/// One file, or several merged.
#[derive(Debug)]
pub(super) struct Layer {
    map: Map<String, Value>,
    origins: Origins,
}

/// The canonical spelling of a key.
pub(super) fn canonical(key: &str) -> &str {
    ALIASES
        .iter()
        .find(|(_, others)| others.contains(&key))
        .map_or(key, |(canonical, _)| canonical)
}

/// Makes a path absolute without asking the file system, so that a circle is seen as one.
fn absolute(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir => {}
            other => clean.push(other),
        }
    }
    clean
}

fn layer(path: &Path, visited: &mut Vec<PathBuf>, named_at: &Origin) -> Result<Layer, ConfigError> {
    let full = absolute(path);
    if visited.contains(&full) {
        visited.push(full);
        let names: Vec<_> = visited
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        return Err(ConfigError::BaseCircular {
            origin: named_at.clone(),
            chain: names.join(" -> "),
        });
    }
    visited.push(full.clone());
    let text = std::fs::read_to_string(&full).map_err(|error| {
        if error.kind() == std::io::ErrorKind::NotFound && *named_at != Origin::Default {
            ConfigError::BaseMissing {
                origin: named_at.clone(),
                base: full.clone(),
            }
        } else {
            ConfigError::Unreadable {
                path: path.to_owned(),
                reason: error.to_string(),
            }
        }
    })?;
    let mut own = parse(path, &text)?;
    let base_origin = own.origins.of("_base_");
    let base = match own.map.remove("_base_") {
        None | Some(Value::Null) => None,
        Some(Value::String(base)) if base.trim().is_empty() => None,
        Some(Value::String(base)) => Some(base),
        Some(other) => {
            return Err(ConfigError::BaseForm {
                origin: base_origin,
                found: kind(&other),
            });
        }
    };
    own.origins.0.remove("_base_");
    normalise(&mut own);
    let Some(base) = base else {
        return Ok(own);
    };
    let beside = full.parent().unwrap_or(Path::new("")).join(&base);
    let base = if base == BUILT_IN && !beside.exists() {
        built_in()?
    } else {
        layer(&beside, visited, &base_origin)?
    };
    Ok(inherit(base, own))
}

fn built_in() -> Result<Layer, ConfigError> {
    let mut layer = parse(Path::new("(built-in default.yaml)"), DEFAULT_YAML)?;
    normalise(&mut layer);
    Ok(layer)
}

fn parse(path: &Path, text: &str) -> Result<Layer, ConfigError> {
    let document = yaml::parse(path, text)?;
    let map = match document.value {
        Value::Null => Map::new(),
        Value::Object(map) => map,
        other => {
            return Err(ConfigError::NotAMapping {
                path: path.to_owned(),
                found: kind(&other),
            });
        }
    };
    let origins = document
        .lines
        .into_iter()
        .map(|(key, line)| {
            let path = path.to_owned();
            (key, Origin::File { path, line })
        })
        .collect();
    Ok(Layer {
        map,
        origins: Origins(origins),
    })
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a switch",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}

/// Settles, within one layer, aliases and settings that are given twice.
fn normalise(layer: &mut Layer) {
    let Layer { map, origins } = layer;
    settle_aliases(map, "", origins);
    if let Some(Value::Object(model)) = map.get_mut("model") {
        settle_aliases(model, "model", origins);
    }
    for setting in SETTINGS {
        let structured = map
            .get(setting.section)
            .and_then(|section| section.get(setting.leaf))
            .is_some();
        if structured && !setting.is_env_name() {
            map.remove(setting.flat);
        }
    }
}

/// The first spelling that is present stands for the canonical one, unless that is present
/// itself, even as null.
fn settle_aliases(map: &mut Map<String, Value>, path: &str, origins: &mut Origins) {
    for (canonical, others) in ALIASES {
        for other in others {
            let Some(value) = map.remove(*other) else {
                continue;
            };
            if !map.contains_key(canonical) {
                map.insert(canonical.to_owned(), value);
                let origin = origins.of(&join(path, other));
                origins.set(&join(path, canonical), origin);
            }
        }
    }
}

/// Puts a layer on top of its base.
fn inherit(mut base: Layer, mut own: Layer) -> Layer {
    // A benchmark that one of them names in the flat form, and the settings of the other, are
    // both kept.
    if own.map.get("env").is_some_and(Value::is_object) {
        name_env(&mut base);
    } else if base.map.get("env").is_some_and(Value::is_object) {
        name_env(&mut own);
    }
    for setting in SETTINGS {
        let structured = own
            .map
            .get(setting.section)
            .and_then(|section| section.get(setting.leaf))
            .is_some();
        let flat = own.map.contains_key(setting.flat) && !setting.is_env_name();
        if !structured && !flat {
            continue;
        }
        if let Some(Value::Object(section)) = base.map.get_mut(setting.section) {
            section.remove(setting.leaf);
        }
        if !setting.is_env_name() {
            base.map.remove(setting.flat);
        }
    }
    merge(&mut base.map, own.map);
    base.origins.0.extend(own.origins.0);
    base
}

/// Turns a flat `env: NAME` into the section's `name`.
fn name_env(layer: &mut Layer) {
    if let Some(Value::String(name)) = layer.map.get("env") {
        let section = Map::from_iter([("name".to_owned(), Value::from(name.as_str()))]);
        layer.map.insert("env".to_owned(), Value::Object(section));
        let origin = layer.origins.of("env");
        layer.origins.set("env.name", origin);
    }
}

/// Maps merge, everything else is replaced.
fn merge(base: &mut Map<String, Value>, own: Map<String, Value>) {
    for (key, value) in own {
        match (base.get_mut(&key), value) {
            (Some(Value::Object(below)), Value::Object(above)) => merge(below, above),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

/// Whether a top-level key is a section.
pub(super) fn is_section(key: &str) -> bool {
    SECTIONS.contains(&key)
}

#[cfg(test)]
mod tests;
