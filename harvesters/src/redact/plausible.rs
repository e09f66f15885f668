//! Whether a value beside a telling name can be a secret at all. Code, prose and
//! configuration are full of `token: str` and `password = getpass()`.

/// A test of the text that a rule found.
pub(crate) type Check = fn(&str) -> bool;

/// No further test.
pub(crate) fn any(_: &str) -> bool {
    true
}

/// Words that stand where a value would and are none.
const NO_VALUES: &[&str] = &[
    "null", "none", "nil", "true", "false", "undefined", "string", "str", "int", "bool", "number",
    "bytes", "any", "object", "optional", "required", "yes", "no", "empty", "unset", "void",
    "self", "this", "env", "test", "example", "changeme", "redacted", "hidden", "secret", "token",
    "password", "xxx", "todo", "default", "missing", "invalid", "wrong", "incorrect", "expired",
    "function", "return", "await", "async", "process", "options", "config", "settings", "not",
];

/// The value of a name such as `password`: nearly anything that is no code.
pub(crate) fn password(found: &str) -> bool {
    let Some(value) = Value::of(found, 3) else {
        return false;
    };
    if value.quoted {
        return !value.text.contains(' ') || value.varied();
    }
    value.varied() || !value.letters_only()
}

/// The value of a name such as `token` or `api_key`: something that was not written
/// for people to read.
pub(crate) fn secret(found: &str) -> bool {
    let Some(value) = Value::of(found, 6) else {
        return false;
    };
    if value.text.contains(' ') || value.text.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    if value.quoted {
        return value.varied() || value.text.len() >= 16 && !value.text.contains('.');
    }
    value.varied() && value.text.len() >= 8 || value.text.len() >= 20 && !value.is_path_or_name()
}

/// The value of a header: no scheme's name and no word.
pub(crate) fn credential(found: &str) -> bool {
    const SCHEMES: &[&str] = &["bearer", "basic", "token", "digest", "apikey", "negotiate", "bot"];
    Value::of(found, 6).is_some_and(|value| {
        let lower = value.text.to_ascii_lowercase();
        !SCHEMES.contains(&lower.as_str()) && (value.varied() || value.text.ends_with('='))
    })
}

/// A value in a sentence: it must look unlike a word.
pub(crate) fn spoken(found: &str) -> bool {
    Value::of(found, 4).is_some_and(|value| {
        let text = value.text.trim_end_matches(['.', ',', '!', '?', ':']);
        let digits = text.bytes().filter(u8::is_ascii_digit).count();
        let letters = text.bytes().filter(u8::is_ascii_alphabetic).count();
        digits >= 1 && letters >= 2 && !text.contains("://")
            || text.len() >= 16 && mixed_case(text) && !value.is_path_or_name()
    })
}

/// A value without its quotes.
struct Value<'a> {
    text: &'a str,
    quoted: bool,
}

impl<'a> Value<'a> {
    /// The value, unless it is short, a placeholder, a word of the language or code.
    fn of(found: &'a str, shortest: usize) -> Option<Self> {
        let bare = found.trim_start_matches('\\');
        let quoted = bare.starts_with(['"', '\'']);
        let text = bare
            .trim_start_matches(['"', '\''])
            .trim_end_matches('\\');
        let lower = text.to_ascii_lowercase();
        let is_code = text.starts_with(['$', '<', '{', '%', '*', '(', '&', '['])
            || text.contains("${")
            || text.contains("{{")
            || text.contains("$(")
            || !quoted && (text.contains('(') || text.contains("::") || text.contains("=>"))
            || text.starts_with('/') || text.starts_with("./") || text.starts_with("~/")
            || lower.starts_with("process.env")
            || lower.starts_with("os.environ")
            || lower.starts_with("env.")
            || lower.starts_with("self.")
            || lower.starts_with("this.")
            || lower.starts_with("config.")
            || lower.starts_with("settings.");
        let masked = text.bytes().all(|byte| b"*x.X-_#?".contains(&byte));
        let usable = text.chars().count() >= shortest
            && !is_code
            && !masked
            && !NO_VALUES.contains(&lower.as_str());
        usable.then_some(Value { text, quoted })
    }

    /// Whether it has a digit, which names and words rarely have.
    fn varied(&self) -> bool {
        self.text.bytes().any(|byte| byte.is_ascii_digit())
            && self.text.bytes().any(|byte| !byte.is_ascii_digit())
            || !self.letters_only() && mixed_case(self.text) && self.text.len() >= 12
    }

    /// Whether it consists of letters, as words and identifiers do.
    fn letters_only(&self) -> bool {
        self.text
            .bytes()
            .all(|byte| byte.is_ascii_alphabetic() || byte == b'_' || byte == b'.' || byte == b'-')
    }

    /// Whether it reads like `module.name`, `snake_case` or `a/path`.
    fn is_path_or_name(&self) -> bool {
        self.text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || b"_./-:".contains(&byte))
            || self.letters_only() && !mixed_case(self.text)
            || self.text.starts_with('/')
            || self.text.contains("://")
    }
}

/// Whether there are letters of both cases.
fn mixed_case(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_lowercase())
        && text.bytes().any(|byte| byte.is_ascii_uppercase())
}
