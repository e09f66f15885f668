//! The front matter of a `SKILL.md`: the name and description by which an agent finds it.

use super::text::strip;

/// What the front matter says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FrontMatter {
    /// The skill's name.
    pub name: Option<String>,
    /// When to use the skill, in one or two sentences.
    pub description: Option<String>,
}

/// Reads name and description from the block between two `---` lines at the top of a document;
/// `None` when the document does not start with such a block.
///
/// Only these two keys at top level are read, plain or quoted, or as a folded (`>`) or literal
/// (`|`) block; everything else is passed over.
#[must_use]
pub fn parse(document: &str) -> Option<FrontMatter> {
    let mut lines = document
        .trim_start_matches('\u{feff}')
        .lines()
        .map(str::trim_end);
    if lines.next()? != "---" {
        return None;
    }
    let mut block = Vec::new();
    loop {
        match lines.next()? {
            "---" | "..." => break,
            line => block.push(line),
        }
    }
    let mut matter = FrontMatter::default();
    for (index, line) in block.iter().enumerate() {
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        let field = match key {
            "name" => &mut matter.name,
            "description" => &mut matter.description,
            _ => continue,
        };
        let value = value.trim();
        let text = if value.starts_with(['>', '|']) {
            indented(
                &block[index + 1..],
                if value.starts_with('>') { " " } else { "\n" },
            )
        } else {
            // A plain scalar may go on in indented lines.
            let more = indented(&block[index + 1..], " ");
            let value = unquoted(value);
            if more.is_empty() {
                value
            } else {
                format!("{value} {more}")
            }
        };
        if !text.is_empty() {
            *field = Some(text);
        }
    }
    Some(matter)
}

/// A new skill: front matter, a title and one line of introduction.
#[must_use]
pub fn scaffold(name: &str, description: &str, title: &str, introduction: &str) -> String {
    format!(
        "---\nname: {}\ndescription: {}\n---\n\n# {title}\n\n{introduction}\n",
        scalar(name),
        scalar(description)
    )
}

/// The document, preceded by the scaffold of a new skill unless it has front matter of its own.
#[must_use]
pub fn ensure(
    document: &str,
    name: &str,
    description: &str,
    title: &str,
    introduction: &str,
) -> String {
    if strip(document).starts_with("---") {
        return document.to_owned();
    }
    let start = scaffold(name, description, title, introduction);
    if strip(document).is_empty() {
        start
    } else {
        format!("{start}\n{document}")
    }
}

fn indented(lines: &[&str], separator: &str) -> String {
    let block: Vec<&str> = lines
        .iter()
        .take_while(|line| line.starts_with([' ', '\t']) || line.is_empty())
        .map(|line| line.trim())
        .collect();
    block.join(separator).trim().to_owned()
}

fn unquoted(value: &str) -> String {
    for quote in ['"', '\''] {
        if let Some(inner) = value
            .strip_prefix(quote)
            .and_then(|rest| rest.strip_suffix(quote))
        {
            return if quote == '"' {
                inner.replace("\\\"", "\"")
            } else {
                inner.replace("''", "'")
            };
        }
    }
    value.to_owned()
}

/// The text as a YAML scalar on one line, quoted when it would not read back as itself.
fn scalar(text: &str) -> String {
    let text = super::text::collapse_blanks(text);
    let plain = text.chars().next().is_some_and(char::is_alphanumeric)
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.ends_with(':');
    if plain {
        text
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scaffold_reads_back() {
        for description in ["Use it when asked", "Rules: all of them", "it's # 1", ""] {
            let document = scaffold("my-skill", description, "Title", "Intro.");
            let matter = parse(&document).unwrap();
            assert_eq!(matter.name.as_deref(), Some("my-skill"));
            assert_eq!(matter.description.unwrap_or_default(), description);
        }
    }

    #[test]
    fn folded_descriptions_are_joined() {
        let matter = parse("---\r\nname: \"a\"\r\ndescription: >\r\n  one\r\n  two\r\nlicense: x\r\n---\r\n# T\r\n").unwrap();
        assert_eq!(
            matter,
            FrontMatter {
                name: Some("a".into()),
                description: Some("one two".into())
            }
        );
    }

    #[test]
    fn a_document_without_front_matter_has_none() {
        assert_eq!(parse("# Title\n---\nname: x\n---\n"), None);
        assert_eq!(parse("---\nname: never closed\n"), None);
    }

    #[test]
    fn a_document_with_front_matter_is_left_alone() {
        let document = "\n---\nname: x\n---\nbody";
        assert_eq!(ensure(document, "n", "d", "t", "i"), document);
        assert!(ensure("body", "n", "d", "t", "i").ends_with("i\n\nbody"));
    }
}
