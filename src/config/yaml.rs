//! YAML text to a value, by the rules of YAML 1.1 (engine 3.1), with the line of every key.
//!
//! SkillOpt's files are read by PyYAML, whose scalars differ from those of today's YAML: `no` is
//! false, `010` is 8, `2:1:7` is 7267, `1e-1` is text. The parser of `serde_saphyr` supplies the
//! structure; this file supplies that typing, merge keys and anchors.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Number, Value};
use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle, ScanError, Span};

use super::ConfigError;

/// The most values that a file may have once its aliases are expanded. Without a bound, a few
/// lines of aliases of aliases would fill the memory.
const MOST_VALUES: usize = 100_000;

/// How the tags of YAML's own types begin.
const CORE: &str = "tag:yaml.org,2002:";

/// A parsed file.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// What it says.
    pub value: Value,
    /// The line, from 1, of each key, by its dotted path.
    pub lines: BTreeMap<String, usize>,
}

/// Reads one document. An empty one is null.
///
/// # Errors
/// [`ConfigError::Syntax`] when the text is not one YAML document of plain values.
pub fn parse(path: &Path, text: &str) -> Result<Document, ConfigError> {
    let failure = |(line, reason)| ConfigError::Syntax {
        path: path.to_owned(),
        line,
        reason,
    };
    let mut composer = Composer {
        events: Parser::new_from_str(text.trim_start_matches('\u{feff}')),
        anchors: HashMap::new(),
        values: 0,
    };
    let root = composer.document().map_err(failure)?;
    let mut lines = BTreeMap::new();
    let value = match root {
        Some(node) => node.into_value("", &mut lines),
        None => Value::Null,
    };
    Ok(Document { value, lines })
}

/// A value whose keys know their lines.
#[derive(Debug, Clone)]
enum Node {
    Scalar(Value),
    List(Vec<Node>),
    Mapping(Vec<(String, usize, Node)>),
}

impl Node {
    fn size(&self) -> usize {
        match self {
            Node::Scalar(_) => 1,
            Node::List(items) => 1 + items.iter().map(Node::size).sum::<usize>(),
            Node::Mapping(entries) => {
                1 + entries
                    .iter()
                    .map(|(_, _, node)| node.size())
                    .sum::<usize>()
            }
        }
    }

    fn into_value(self, path: &str, lines: &mut BTreeMap<String, usize>) -> Value {
        match self {
            Node::Scalar(value) => value,
            Node::List(items) => items
                .into_iter()
                .enumerate()
                .map(|(index, item)| item.into_value(&join(path, &index.to_string()), lines))
                .collect(),
            Node::Mapping(entries) => {
                let mut map = Map::new();
                for (key, line, node) in entries {
                    let path = join(path, &key);
                    lines.insert(path.clone(), line);
                    map.insert(key, node.into_value(&path, lines));
                }
                Value::Object(map)
            }
        }
    }
}

/// A dotted path.
pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

/// Line and reason.
type Failure = (usize, String);

struct Composer<'a> {
    events: Parser<'a, serde_saphyr::granit_parser::StrInput<'a>>,
    anchors: HashMap<usize, Node>,
    values: usize,
}

impl<'a> Composer<'a> {
    fn next(&mut self) -> Result<(Event<'a>, usize), Failure> {
        loop {
            let next: Option<Result<(Event<'a>, Span), ScanError>> = self.events.next();
            return match next {
                None => Ok((Event::StreamEnd, 0)),
                Some(Err(error)) => Err((error.marker().line(), error.info())),
                Some(Ok((Event::Comment(..), _))) => continue,
                Some(Ok((event, span))) => Ok((event, span.start.line())),
            };
        }
    }

    fn document(&mut self) -> Result<Option<Node>, Failure> {
        let mut root = None;
        loop {
            let (event, line) = self.next()?;
            match event {
                Event::StreamEnd => return Ok(root),
                Event::StreamStart | Event::DocumentEnd => {}
                Event::DocumentStart(..) if root.is_some() => {
                    return Err((line, "there is more than one document".to_owned()));
                }
                Event::DocumentStart(..) => {}
                event => root = Some(self.node(event, line)?),
            }
        }
    }

    fn node(&mut self, event: Event<'a>, line: usize) -> Result<Node, Failure> {
        self.count(1, line)?;
        let (node, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let tag = tag.map(|tag| tag.to_string());
                (
                    Node::Scalar(scalar(&text, style, tag.as_deref()).map_err(|why| (line, why))?),
                    anchor,
                )
            }
            Event::SequenceStart(_, _, Some(tag)) | Event::MappingStart(_, _, Some(tag))
                if !tag.to_string().starts_with(CORE) =>
            {
                return Err((line, format!("the tag {tag} is not supported")));
            }
            Event::SequenceStart(_, anchor, _) => {
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, _) => break,
                        (event, line) => items.push(self.node(event, line)?),
                    }
                }
                (Node::List(items), anchor)
            }
            Event::MappingStart(_, anchor, _) => (self.mapping()?, anchor),
            Event::Alias(anchor) => {
                let node = self
                    .anchors
                    .get(&anchor)
                    .cloned()
                    .ok_or_else(|| (line, "an alias refers to itself".to_owned()))?;
                self.count(node.size(), line)?;
                return Ok(node);
            }
            other => return Err((line, format!("unexpected {other:?}"))),
        };
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn count(&mut self, more: usize, line: usize) -> Result<(), Failure> {
        self.values = self.values.saturating_add(more);
        if self.values > MOST_VALUES {
            return Err((line, format!("more than {MOST_VALUES} values")));
        }
        Ok(())
    }

    /// Own keys beat merged ones, wherever `<<` stands; of two equal keys the last one counts.
    fn mapping(&mut self) -> Result<Node, Failure> {
        let mut own: Vec<(String, usize, Node)> = Vec::new();
        let mut merged: Vec<(String, usize, Node)> = Vec::new();
        loop {
            let (event, line) = self.next()?;
            let (key, plain) = match event {
                Event::MappingEnd => break,
                Event::Scalar(text, style, ..) => (text.into_owned(), style == ScalarStyle::Plain),
                _ => return Err((line, "a key must be a single word or text".to_owned())),
            };
            let (event, value_line) = self.next()?;
            let value = self.node(event, value_line)?;
            if plain && key == "<<" {
                let sources = match value {
                    Node::List(items) => items,
                    single => vec![single],
                };
                for source in sources {
                    let Node::Mapping(entries) = source else {
                        return Err((line, "`<<` can only merge mappings".to_owned()));
                    };
                    for entry in entries {
                        if !merged.iter().any(|(key, ..)| *key == entry.0) {
                            merged.push(entry);
                        }
                    }
                }
            } else {
                own.retain(|(name, ..)| *name != key);
                own.push((key, line, value));
            }
        }
        merged.retain(|(key, ..)| !own.iter().any(|(name, ..)| name == key));
        merged.extend(own);
        Ok(Node::Mapping(merged))
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&str>) -> Result<Value, String> {
    let Some(tag) = tag else {
        return Ok(match style {
            ScalarStyle::Plain => plain(text),
            _ => Value::from(text),
        });
    };
    match tag.strip_prefix(CORE).unwrap_or(tag) {
        "str" | "!" => Ok(Value::from(text)),
        "int" | "float" | "bool" | "null" => Ok(plain(text)),
        _ => Err(format!("the tag {tag} is not supported")),
    }
}

/// The implicit types of YAML 1.1, as PyYAML tells them apart.
#[expect(
    clippy::unwrap_used,
    reason = "the expressions are constants, tested below"
)]
static INTEGER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"^[-+]?(0b[01_]+|0[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*|[1-9][0-9_]*(:[0-5]?[0-9])+)$",
    )
    .unwrap()
});

#[expect(
    clippy::unwrap_used,
    reason = "the expressions are constants, tested below"
)]
static FLOAT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^([-+]?[0-9][0-9_]*\.[0-9_]*([eE][-+][0-9]+)?|[-+]?\.[0-9][0-9_]*([eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+\.[0-9_]*)$")
        .unwrap()
});

/// What a plain scalar means. Infinite and undefined numbers stay text, because a configuration
/// has no use for them and JSON cannot hold them.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Value::Bool(true);
        }
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Value::Bool(false);
        }
        _ => {}
    }
    let number = if INTEGER.is_match(text) {
        integer(text).map(Number::from)
    } else if FLOAT.is_match(text) {
        float(text).and_then(Number::from_f64)
    } else {
        None
    };
    number.map_or_else(|| Value::from(text), Value::Number)
}

fn integer(text: &str) -> Option<i64> {
    let digits = text.replace('_', "");
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, digits.trim_start_matches('+')),
    };
    let size = if let Some(binary) = digits.strip_prefix("0b") {
        i64::from_str_radix(binary, 2).ok()?
    } else if let Some(hexadecimal) = digits.strip_prefix("0x") {
        i64::from_str_radix(hexadecimal, 16).ok()?
    } else if digits.contains(':') {
        let mut sum = 0_i64;
        for part in digits.split(':') {
            sum = sum.checked_mul(60)?.checked_add(part.parse().ok()?)?;
        }
        sum
    } else if digits.len() > 1 && digits.starts_with('0') {
        i64::from_str_radix(digits, 8).ok()?
    } else {
        digits.parse().ok()?
    };
    Some(sign * size)
}

fn float(text: &str) -> Option<f64> {
    let digits = text.replace('_', "");
    if !digits.contains(':') {
        return digits.parse().ok();
    }
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, digits.trim_start_matches('+')),
    };
    let mut sum = 0.0;
    for part in digits.split(':') {
        sum = sum * 60.0 + part.trim_end_matches('.').parse::<f64>().ok()?;
    }
    Some(sign * sum)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<Document, ConfigError> {
        parse(Path::new("t.yaml"), text)
    }

    #[test]
    fn plain_scalars_have_the_types_of_yaml_1_1() {
        for (text, value) in [
            ("0b11", json!(3)),
            ("-0x1F", json!(-31)),
            ("0", json!(0)),
            ("+12", json!(12)),
            ("08", json!("08")),
            ("190:20:30", json!(685_230)),
            ("1:30.5", json!(90.5)),
            ("1.", json!(1.0)),
            (".5", json!(0.5)),
            ("1.5e3", json!("1.5e3")),
            ("1.5e+3", json!(1500.0)),
            (".inf", json!(".inf")),
            ("Off", json!(false)),
            ("oFF", json!("oFF")),
            ("'no'", json!("no")),
            ("!!str 5", json!("5")),
            ("2026-01-02", json!("2026-01-02")),
            ("99999999999999999999", json!("99999999999999999999")),
        ] {
            assert_eq!(read(text).unwrap().value, value, "{text}");
        }
    }

    #[test]
    fn keys_know_their_lines_and_the_last_of_two_counts() {
        let document = read("a: 1\nb:\n  c: [1, {d: 2}]\n  c: x\n# end\na: 3\n").unwrap();
        assert_eq!(document.value, json!({"a": 3, "b": {"c": "x"}}));
        assert_eq!(document.lines["b.c"], 4);
        assert_eq!(document.lines["a"], 6);
    }

    #[test]
    fn own_keys_beat_merged_ones_and_earlier_sources_later_ones() {
        let text = "x: &x {a: 1, b: 1}\ny: &y {b: 2, c: 2}\nz:\n  a: 3\n  <<: [*x, *y]\n";
        let document = read(text).unwrap();
        assert_eq!(document.value["z"], json!({"a": 3, "b": 1, "c": 2}));
    }

    #[test]
    fn what_is_no_single_plain_document_is_an_error_with_its_line() {
        for (text, line) in [
            ("a: 1\n--- \nb: 2\n", 2),
            ("a: 1\nb: [1,\n", 2),
            ("a: 1\nb: !python/object x\n", 2),
            ("? [a, b]\n: 1\n", 1),
        ] {
            match read(text) {
                Err(ConfigError::Syntax { line: found, .. }) => assert_eq!(found, line, "{text}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn aliases_of_aliases_do_not_fill_the_memory() {
        let mut text = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n".to_owned();
        for level in 1..12 {
            let below = format!("*a{}, ", level - 1).repeat(10);
            text.push_str(&format!("a{level}: &a{level} [{below}]\n"));
        }
        assert!(read(&text).unwrap_err().to_string().contains("more than"));
    }
}
