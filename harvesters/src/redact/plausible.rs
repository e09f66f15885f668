//! Whether what a rule found can be a secret at all. Code, prose and configuration are
//! full of `token: str`, `password = getpass()` and `secret of good tests`.

/// A test of what a rule found.
pub(crate) type Check = fn(Found<'_>) -> bool;

/// A found value and the text around it.
#[derive(Clone, Copy)]
pub(crate) struct Found<'a> {
    pub(crate) text: &'a str,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// No further test.
pub(crate) fn any(_: Found<'_>) -> bool {
    true
}

/// Words that stand where a value would and are none.
const NO_VALUES: &[&str] = &[
    "null",
    "none",
    "nil",
    "true",
    "false",
    "undefined",
    "string",
    "str",
    "int",
    "bool",
    "number",
    "bytes",
    "any",
    "object",
    "optional",
    "required",
    "yes",
    "no",
    "empty",
    "unset",
    "void",
    "self",
    "this",
    "env",
    "changeme",
    "redacted",
    "hidden",
    "todo",
    "default",
    "missing",
    "invalid",
    "wrong",
    "incorrect",
    "expired",
    "function",
    "return",
    "await",
    "async",
    "new",
    "not",
    "is",
    "text",
    "boolean",
    "integer",
    "array",
    "list",
    "dict",
];

/// Authorization schemes, which stand where a value would.
const SCHEMES: &[&str] = &[
    "bearer",
    "basic",
    "token",
    "digest",
    "apikey",
    "negotiate",
    "bot",
];

/// The value of a name such as `password`.
pub(crate) fn password(found: Found<'_>) -> bool {
    let Some(value) = Value::of(found) else {
        return false;
    };
    if found.before().ends_with("PWD=")
        && !found
            .before()
            .trim_end_matches("PWD=")
            .trim_end()
            .ends_with(';')
    {
        return false;
    }
    value.quoted || !value.is_prose_or_type() && !value.is_path()
}

/// The value of a name such as `token` or `api_key`.
pub(crate) fn secret(found: Found<'_>) -> bool {
    let Some(value) = Value::of(found) else {
        return false;
    };
    // Counts of tokens are no tokens.
    if value.is_number() && value.text.len() < 6 {
        return false;
    }
    if value.quoted {
        return true;
    }
    // Only the end of the name is looked at.
    const LONGEST_END: usize = 16;
    let name = found.before().trim_end_matches([' ', '=']);
    let name = name[name.ceil_char_boundary(name.len().saturating_sub(LONGEST_END))..]
        .to_ascii_lowercase();
    let one_word = (name.ends_with("token") || name.ends_with("secret"))
        && !name.ends_with("_token")
        && !name.ends_with("-token")
        && !name.ends_with("_secret")
        && !name.ends_with("-secret");
    let assigned_in_code =
        one_word && found.before().ends_with(' ') && found.before().trim_end().ends_with('=');
    let plain_word = value.letters_only() && value.text.len() < 16;
    let a_variable = assigned_in_code && plain_word;
    let a_word = plain_word && value.is_prose_or_type();
    !a_variable && !a_word && !value.is_path()
}

/// The value of a name that only sometimes promises a secret, such as `auth` or `key`:
/// something that was not written for people to read.
pub(crate) fn random(found: Found<'_>) -> bool {
    const SHORTEST: usize = 12;
    Value::of(found).is_some_and(|value| {
        value.text.len() >= SHORTEST
            && !value.text.contains(' ')
            && value.varied()
            && !value.is_number()
            && !value.is_path()
    })
}

/// The value of a header: no scheme's name and no word.
pub(crate) fn credential(found: Found<'_>) -> bool {
    Value::of(found).is_some_and(|value| {
        let lower = value.text.to_ascii_lowercase();
        !SCHEMES.contains(&lower.as_str()) && (value.varied() || value.text.ends_with('='))
    })
}

/// The value after a scheme's name: anything but that name and what stands for a value.
pub(crate) fn schemed(found: Found<'_>) -> bool {
    Value::of(found)
        .is_some_and(|value| !SCHEMES.contains(&value.text.to_ascii_lowercase().as_str()))
}

/// A value in a sentence: it must look unlike a word.
pub(crate) fn spoken(found: Found<'_>) -> bool {
    const LONG_WORD: usize = 16;
    Value::of(found).is_some_and(|value| {
        let text = value.text.trim_end_matches(['.', ',', '!', '?', ':']);
        if text.contains("://") || value.is_path() {
            return false;
        }
        let letters = text.bytes().filter(u8::is_ascii_alphabetic).count();
        let digits = text.bytes().any(|byte| byte.is_ascii_digit());
        digits && (letters >= 2 || text.len() >= 6)
            || text.contains(['_', '+', '=', '@', '#', '!', '%'])
            || text.len() >= LONG_WORD && letters == text.len()
    })
}

impl<'a> Found<'a> {
    fn value(self) -> &'a str {
        &self.text[self.start..self.end]
    }

    fn before(self) -> &'a str {
        &self.text[..self.start]
    }

    fn after(self) -> &'a str {
        &self.text[self.end..]
    }
}

/// A value without its quotes.
struct Value<'a> {
    text: &'a str,
    quoted: bool,
    found: Found<'a>,
}

impl<'a> Value<'a> {
    /// The value, unless it stands for a value, is the name itself, or is code.
    fn of(found: Found<'a>) -> Option<Self> {
        let bare = found.value().trim_start_matches('\\');
        let quoted = bare.starts_with(['"', '\'']);
        let text = bare.trim_matches(['"', '\'']).trim_end_matches('\\');
        let value = Value {
            text,
            quoted,
            found,
        };
        let lower = text.to_ascii_lowercase();
        let masked = !text.chars().any(char::is_alphanumeric)
            || text.len() < 8 && lower.bytes().all(|byte| byte == b'x');
        let a_sentence = quoted && text.split_whitespace().count() > 5;
        let usable = !text.is_empty()
            && !masked
            && !NO_VALUES.contains(&lower.as_str())
            && !value.is_template()
            && !a_sentence
            && (quoted || !value.is_code());
        usable.then_some(value)
    }

    /// `$VAR`, `${{ … }}`, `<token>`, `%s`: a value to be filled in.
    fn is_template(&self) -> bool {
        let text = self.text;
        text.starts_with('$') && !text.starts_with("$2") && !text.starts_with("$argon")
            || text.starts_with("<") && text.ends_with('>')
            || text.starts_with("{{")
            || text.contains("${")
            || text.contains("{{")
            || text.contains("$(")
            || matches!(text, "%s" | "%d" | "{}" | "{0}" | "...")
            || text.len() > 2 && text.starts_with('%') && text.ends_with('%')
    }

    /// A call, a path of names, a type with parameters, the name itself.
    fn is_code(&self) -> bool {
        let text = self.text;
        let is_names = text.contains('.')
            && text.split('.').count() <= 5
            && text
                .split('.')
                .all(|part| is_identifier(part) && !part.bytes().any(|byte| byte.is_ascii_digit()));
        let name = self
            .found
            .before()
            .trim_end_matches([' ', '=', ':', '"', '\'']);
        text.contains('(')
            || self.found.after().starts_with('(')
            || text.contains("::")
            || text.contains("=>")
            || text.contains(['<', '>'])
            || text.starts_with(['&', '*', '['])
            || text.starts_with('{') && is_identifier(text.trim_matches(['{', '}']))
            || is_names
            || is_identifier(text) && text.len() > 3 && name.ends_with(text)
    }

    /// Whether it has a digit, which names and words rarely have.
    fn varied(&self) -> bool {
        self.text.bytes().any(|byte| byte.is_ascii_digit()) && !self.is_number()
            || !self.letters_only() && mixed_case(self.text) && self.text.len() >= 12
    }

    fn is_number(&self) -> bool {
        self.text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b'_')
    }

    /// Whether it consists of letters, as words and identifiers do.
    fn letters_only(&self) -> bool {
        self.text
            .bytes()
            .all(|byte| byte.is_ascii_alphabetic() || byte == b'_' || byte == b'-')
    }

    /// After a colon, a word in a sentence (`token: the smallest unit`) or a type.
    fn is_prose_or_type(&self) -> bool {
        let before = self.found.before();
        if !self.letters_only() || !before.ends_with(' ') || !before.trim_end().ends_with(':') {
            return false;
        }
        let after = self.found.after();
        let more_words =
            after.starts_with(' ') && after[1..].starts_with(|next: char| next.is_alphabetic());
        let is_type = self
            .text
            .starts_with(|first: char| first.is_ascii_uppercase())
            && after.starts_with([',', ';', ')', '?', ' ', '|', '\n']);
        more_words || is_type
    }

    /// Whether it is a path in the file system.
    fn is_path(&self) -> bool {
        let text = self.text;
        [
            "./", "../", "~/", "/home/", "/Users/", "/usr/", "/etc/", "/tmp/", "/var/", "/opt/",
            "/run/", "/app/", "C:\\",
        ]
        .iter()
        .any(|start| text.starts_with(start))
            || text == "/"
    }
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|first: char| first.is_ascii_digit())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether there are letters of both cases.
fn mixed_case(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_lowercase())
        && text.bytes().any(|byte| byte.is_ascii_uppercase())
}
