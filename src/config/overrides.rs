//! `--set` and `--cfg-options`: `key=value` on top of the files (engine 3.3).

use serde_json::{Map, Number, Value};

use super::flatten::{COMMON_ENV, Kind, RETIRED, by_flat, by_place, is_structured};
use super::layer::{Origins, canonical, is_section};
use super::yaml::join;
use super::{ConfigError, Origin};

/// The type of an override's text: a switch (`true`, `yes`, `false`, `no`, in any case), a whole
/// number, a number, a list or mapping in JSON, or else text. Numbers may have blanks around them
/// and `_` between digits. Infinite and undefined numbers stay text.
#[must_use]
pub fn cast(text: &str) -> Value {
    match text.to_lowercase().as_str() {
        "true" | "yes" => return Value::Bool(true),
        "false" | "no" => return Value::Bool(false),
        _ => {}
    }
    let number = python_number(text);
    if let Some(whole) = number
        .as_deref()
        .and_then(|digits| digits.parse::<i64>().ok())
    {
        return Value::from(whole);
    }
    if let Some(number) = number
        .and_then(|digits| digits.parse().ok())
        .and_then(Number::from_f64)
    {
        return Value::Number(number);
    }
    if text.starts_with(['[', '{'])
        && let Ok(value) = serde_json::from_str(text)
    {
        return value;
    }
    Value::from(text)
}

/// The text as a number that Rust can read, when it is one that Python can: digits of any
/// script, single `_` between digits, no names such as `inf`.
fn python_number(text: &str) -> Option<String> {
    let text = text.trim();
    let mut digits = String::with_capacity(text.len());
    let mut before = None;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '_' => {
                let between = before.is_some_and(is_digit)
                    && characters.peek().copied().is_some_and(is_digit);
                if !between {
                    return None;
                }
            }
            '0'..='9' | '+' | '-' | '.' | 'e' | 'E' => digits.push(character),
            other => digits.push(char::from_digit(full_width(other)?, 10)?),
        }
        before = Some(character);
    }
    digits.chars().any(|c| c.is_ascii_digit()).then_some(digits)
}

fn is_digit(character: char) -> bool {
    character.is_ascii_digit() || full_width(character).is_some()
}

/// Digits as Chinese and Japanese keyboards write them.
fn full_width(character: char) -> Option<u32> {
    (u32::from(character))
        .checked_sub(u32::from('０'))
        .filter(|digit| *digit < 10)
}

/// Applies overrides in their order; the last one wins. The form of the files decides once, before
/// the first override, where undotted and dotted keys go.
///
/// # Errors
/// [`ConfigError::Override`] for an item without `=`, or one that goes into something that is no
/// section.
pub fn apply<S: AsRef<str>>(
    map: &mut Map<String, Value>,
    origins: &mut Origins,
    overrides: &[S],
) -> Result<(), ConfigError> {
    let structured = is_structured(map);
    for text in overrides {
        let text = text.as_ref();
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        // The value stays out of messages: it may be a credential.
        let failure = |reason: String| ConfigError::Override {
            option: "--set",
            text: key.to_owned(),
            reason,
        };
        if key.len() == text.len() {
            return Err(failure("it has no `=`; write key=value".to_owned()));
        }
        let target = target(map, structured, key);
        let value = typed(&target, value);
        match &target {
            Target::Top(name) => {
                origins.set(name, Origin::Override(key.to_owned()));
                map.insert(name.clone(), value);
            }
            Target::Within(section, leaf) => {
                let entry = map
                    .entry(section.clone())
                    .or_insert_with(|| Value::Object(Map::new()));
                let Value::Object(leaves) = entry else {
                    return Err(failure(format!("`{section}` is not a section")));
                };
                leaves.insert(leaf.clone(), value);
                origins.set(&join(section, leaf), Origin::Override(key.to_owned()));
            }
        }
    }
    Ok(())
}

/// Sets one setting by its flat name, as the command line's legacy flags do. In a structured
/// configuration a flag that is no setting is one of the benchmark's.
///
/// # Errors
/// [`ConfigError::Override`] when the setting's section is no section.
pub(super) fn set_flag(
    map: &mut Map<String, Value>,
    origins: &mut Origins,
    structured: bool,
    flag: &str,
    value: Value,
) -> Result<(), ConfigError> {
    let origin = Origin::Flag(flag.to_owned());
    if !structured {
        origins.set(flag, origin);
        map.insert(flag.to_owned(), value);
        return Ok(());
    }
    let (section, leaf) =
        by_flat(flag).map_or(("env", flag), |setting| (setting.section, setting.leaf));
    let entry = map
        .entry(section.to_owned())
        .or_insert_with(|| Value::Object(Map::new()));
    if entry.is_null() {
        *entry = Value::Object(Map::new());
    }
    let Value::Object(leaves) = entry else {
        return Err(ConfigError::Override {
            option: "flag",
            text: format!("--{flag}"),
            reason: format!("`{section}` is not a section"),
        });
    };
    leaves.insert(leaf.to_owned(), value);
    origins.set(&join(section, leaf), origin);
    Ok(())
}

enum Target {
    Top(String),
    Within(String, String),
}

fn target(map: &Map<String, Value>, structured: bool, key: &str) -> Target {
    if let Some((section, leaf)) = key.split_once('.') {
        let leaf = if section == "model" {
            canonical(leaf)
        } else {
            leaf
        };
        if !structured {
            if let Some(setting) = by_place(section, leaf) {
                return Target::Top(setting.flat.to_owned());
            }
            // A retired key must not turn a flat file into a structured one.
            if section == "env" || (section, leaf) == RETIRED {
                return Target::Top(leaf.to_owned());
            }
        }
        return Target::Within(section.to_owned(), leaf.to_owned());
    }
    let key = canonical(key);
    if !structured {
        return Target::Top(key.to_owned());
    }
    if let Some(setting) = by_flat(key) {
        return Target::Within(setting.section.to_owned(), setting.leaf.to_owned());
    }
    // A setting of the benchmark belongs to its section; at the top it would lose against one
    // that is there (W-C3).
    let in_env = map
        .get("env")
        .and_then(Value::as_object)
        .is_some_and(|env| {
            env.contains_key(key) || COMMON_ENV.iter().any(|(name, _)| *name == key)
        });
    if in_env && !is_section(key) {
        Target::Within("env".to_owned(), key.to_owned())
    } else {
        Target::Top(key.to_owned())
    }
}

/// The value by the setting's declared type where it has one (W-C4), else by its looks.
fn typed(target: &Target, text: &str) -> Value {
    let kind = match target {
        Target::Top(name) => by_flat(name)
            .map(|setting| setting.kind)
            .or_else(|| common(name)),
        Target::Within(section, leaf) => by_place(section, leaf)
            .map(|setting| setting.kind)
            .or_else(|| common(leaf).filter(|_| section == "env")),
    };
    match kind {
        Some(Kind::Text) => Value::from(text),
        Some(_) if text == "null" => Value::Null,
        _ => cast(text),
    }
}

fn common(name: &str) -> Option<Kind> {
    COMMON_ENV
        .iter()
        .find(|(common, _)| *common == name)
        .map(|(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_are_typed_by_their_looks() {
        for (text, value) in [
            ("0x10", json!("0x10")),
            ("_1", json!("_1")),
            ("1__0", json!("1__0")),
            ("1_0.5", json!(10.5)),
            ("-.5", json!(-0.5)),
            ("5.", json!(5.0)),
            ("nan", json!("nan")),
            ("inf", json!("inf")),
            ("e", json!("e")),
            ("[1, \"a\"]", json!([1, "a"])),
            ("{\"a\": null}", json!({"a": null})),
            ("[broken", json!("[broken")),
            ("99999999999999999999", json!(1e20)),
        ] {
            assert_eq!(cast(text), value, "{text}");
        }
    }

    #[test]
    fn declared_types_beat_looks_and_null_is_possible_where_text_is_not() {
        let mut map = json!({"model": {"optimizer": "a"}, "train": {"seed": 1}})
            .as_object()
            .cloned()
            .unwrap();
        let items = [
            "model.optimizer=12345",
            "target_model=no",
            "train.seed=null",
        ];
        apply(&mut map, &mut Origins::default(), &items).unwrap();
        assert_eq!(
            Value::Object(map),
            json!({"model": {"optimizer": "12345", "target": "no"}, "train": {"seed": null}})
        );
    }

    #[test]
    fn what_is_no_override_is_an_error_that_quotes_it() {
        let mut map = json!({"train": null, "model": {}})
            .as_object()
            .cloned()
            .unwrap();
        for (text, key) in [("train", "train"), ("train.seed=1", "train.seed")] {
            let error = apply(&mut map, &mut Origins::default(), &[text]).unwrap_err();
            assert!(
                error.to_string().starts_with(&format!("--set {key}: ")),
                "{error}"
            );
        }
    }
}
