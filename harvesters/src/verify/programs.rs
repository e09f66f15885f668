//! The programs that verify, and the wrappers that they hide behind.

use super::VerificationKind::{self, Build, Check, Lint, Test, Types};
use super::table::{IDLE_FLAGS, PROGRAMS, RUNNERS, Use};
use crate::shell::steps;

/// A recognised program.
pub(super) struct Program {
    pub(super) kind: VerificationKind,
    pub(super) name: String,
}

/// The verifying program in a simple command, if there is one.
pub(super) fn recognise(words: &[String]) -> Option<Program> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    recognise_words(&words, 0)
}

fn recognise_words(words: &[&str], depth: usize) -> Option<Program> {
    const DEEPEST: usize = 6;
    if depth > DEEPEST {
        return None;
    }
    let (first, rest) = words.split_first()?;
    if is_prefix(first) {
        return recognise_words(rest, depth + 1);
    }
    let program = base_name(first);
    if matches!(program, "bash" | "sh" | "zsh" | "dash" | "fish") {
        return shell_script(rest, depth);
    }
    if let Some(inner) = unwrapped(program, rest) {
        return recognise_words(inner, depth + 1);
    }
    if rest.iter().any(|word| IDLE_FLAGS.contains(word)) {
        return None;
    }
    if let Some(interpreted) = python(program, rest, depth) {
        return interpreted;
    }
    known(program, rest)
        .or_else(|| script_of_runner(program, rest))
        .or_else(|| check_script(first))
}

/// Keywords, assignments and small prefixes before the command proper.
fn is_prefix(word: &str) -> bool {
    matches!(
        word,
        "do" | "then"
            | "else"
            | "if"
            | "while"
            | "until"
            | "elif"
            | "!"
            | "{"
            | "time"
            | "sudo"
            | "env"
            | "nice"
            | "nohup"
            | "command"
            | "exec"
            | "builtin"
            | "xvfb-run"
            | "cross-env"
            | "dotenv"
            | "caffeinate"
            | "unbuffer"
            | "rtk"
            | "stdbuf"
            | "-oL"
            | "-eL"
            | "--"
    ) || word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

/// The last part of a path, without Windows endings and the wrapper's `w`.
fn base_name(word: &str) -> &str {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    let name = name
        .strip_suffix(".exe")
        .or_else(|| name.strip_suffix(".cmd"))
        .or_else(|| name.strip_suffix(".bat"))
        .unwrap_or(name);
    match name {
        "gradlew" => "gradle",
        "mvnw" => "mvn",
        other => other,
    }
}

/// `bash -lc "…"` runs a command line, `bash check.sh` a script.
fn shell_script(rest: &[&str], depth: usize) -> Option<Program> {
    let position = rest
        .iter()
        .position(|word| !word.starts_with('-') || is_command_flag(word))?;
    if is_command_flag(rest[position]) {
        let line = rest.get(position + 1)?;
        return steps(line).iter().rev().find_map(|step| {
            let words: Vec<&str> = step.words.iter().map(String::as_str).collect();
            recognise_words(&words, depth + 1)
        });
    }
    check_script(rest[position])
}

fn is_command_flag(word: &str) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.ends_with('c')
}

/// What a wrapper runs.
fn unwrapped<'a, 'b>(program: &str, rest: &'a [&'b str]) -> Option<&'a [&'b str]> {
    let after_flags = |from: usize| {
        let mut position = from;
        while let Some(word) = rest.get(position) {
            if !word.starts_with('-') {
                break;
            }
            // These flags are followed by a value.
            let takes_value = matches!(
                *word,
                "-n" | "--name"
                    | "-p"
                    | "--package"
                    | "--with"
                    | "--python"
                    | "--extra"
                    | "--group"
                    | "-e"
                    | "--env"
                    | "-w"
                    | "--workdir"
                    | "-u"
                    | "--user"
                    | "-s"
                    | "--signal"
                    | "-k"
                    | "-f"
                    | "--file"
                    | "-C"
                    | "--directory"
                    | "--project"
                    | "-I"
                    | "-P"
            );
            position += if takes_value { 2 } else { 1 };
        }
        rest.get(position..)
    };
    match (program, rest.first().copied()) {
        (
            "uv" | "poetry" | "pipenv" | "pdm" | "hatch" | "rye" | "pixi" | "conda" | "mamba"
            | "devbox" | "doppler",
            Some("run"),
        )
        | ("bundle" | "mise" | "direnv", Some("exec"))
        | ("pnpm" | "yarn" | "npm", Some("exec" | "dlx"))
        | ("bun", Some("x")) => after_flags(1),
        ("npx" | "uvx" | "bunx" | "pipx" | "xargs", _) => after_flags(0),
        ("timeout" | "gtimeout", _) => after_flags(0)?.get(1..),
        ("docker" | "podman" | "nerdctl", Some("exec" | "run")) => after_flags(1)?.get(1..),
        ("docker" | "podman", Some("compose"))
            if matches!(rest.get(1), Some(&("exec" | "run"))) =>
        {
            after_flags(2)?.get(1..)
        }
        ("docker-compose", Some("exec" | "run")) => after_flags(1)?.get(1..),
        ("kubectl" | "nix" | "flatpak", _) => {
            let position = rest
                .iter()
                .position(|word| matches!(*word, "--" | "-c" | "--command"))?;
            rest.get(position + 1..)
        }
        ("coverage", Some("run")) => after_flags(1),
        _ => None,
    }
}

/// Python's modules and scripts.
fn python(program: &str, rest: &[&str], depth: usize) -> Option<Option<Program>> {
    let is_python = program == "py"
        || program == "python"
        || program.starts_with("python3")
        || program.starts_with("python2");
    if !is_python {
        return None;
    }
    if let Some(position) = rest.iter().position(|word| *word == "-m") {
        return Some(recognise_words(rest.get(position + 1..)?, depth + 1));
    }
    let script = rest.iter().position(|word| !word.starts_with('-'))?;
    let name = base_name(rest[script]);
    if matches!(name, "manage.py" | "setup.py") {
        let tests = rest.get(script + 1) == Some(&"test");
        return Some(tests.then(|| named(Test, &format!("{name} test"))));
    }
    Some(check_script(rest[script]))
}

/// A program of the table.
fn known(program: &str, rest: &[&str]) -> Option<Program> {
    // The first argument that is no flag, toolchain or value of a directory flag.
    let mut skip_value = false;
    let command = rest.iter().find(|word| {
        if std::mem::take(&mut skip_value) {
            return false;
        }
        skip_value = matches!(
            **word,
            "-C" | "--prefix" | "--cwd" | "--manifest-path" | "-f" | "-p" | "--project"
        );
        !word.starts_with('-') && !word.starts_with('+')
    });
    PROGRAMS.iter().find_map(|(name, usage, kind)| {
        if *name != program {
            return None;
        }
        match usage {
            Use::Always => Some(named(*kind, name)),
            Use::Command(commands) => command
                .filter(|word| commands.contains(&word.rsplit(':').next().unwrap_or(word)))
                .map(|word| named(*kind, &format!("{name} {word}"))),
            Use::Flag(flags) => rest
                .iter()
                .find(|word| {
                    flags.iter().any(|flag| {
                        *word == flag
                            || word
                                .strip_prefix(flag)
                                .is_some_and(|after| after.starts_with('='))
                    })
                })
                .map(|flag| named(*kind, &format!("{name} {flag}"))),
        }
    })
}

/// `npm run lint`, `make check`, `just test`: a runner with a telling target.
fn script_of_runner(program: &str, rest: &[&str]) -> Option<Program> {
    if !RUNNERS.contains(&program) {
        return None;
    }
    let mut skip_value = false;
    for word in rest {
        if std::mem::take(&mut skip_value) {
            continue;
        }
        if *word == "--" {
            break;
        }
        if word.starts_with('-') {
            skip_value = matches!(
                *word,
                "--prefix"
                    | "-C"
                    | "--cwd"
                    | "-w"
                    | "--workspace"
                    | "--filter"
                    | "-F"
                    | "-f"
                    | "--file"
                    | "--dir"
            );
            continue;
        }
        if matches!(
            *word,
            "run" | "run-script" | "workspace" | "workspaces" | "foreach"
        ) || word.contains('=')
        {
            continue;
        }
        if let Some(kind) = kind_of_target(word) {
            return Some(named(kind, &format!("{program} {word}")));
        }
        // `yarn workspace name test`, `make clean test`: look on; `npm install x`: stop.
        if matches!(program, "npm" | "pnpm" | "bun" | "composer") && !rest.contains(&"run") {
            return None;
        }
    }
    // Plain `make` builds the default target.
    (matches!(program, "make" | "gmake")
        && rest
            .iter()
            .all(|word| word.starts_with('-') || word.contains('=')))
    .then(|| named(Build, program))
}

/// What the name of a script or target promises.
fn kind_of_target(target: &str) -> Option<VerificationKind> {
    let name = target.to_ascii_lowercase();
    let parts: Vec<&str> = name.split([':', '-', '_', '/', '.']).collect();
    let any = |words: &[&str]| parts.iter().any(|part| words.contains(part));
    if any(&["watch", "fix", "install", "update", "clean", "serve", "dev"]) {
        return None;
    }
    if any(&[
        "test",
        "tests",
        "t",
        "tst",
        "spec",
        "specs",
        "e2e",
        "unit",
        "integration",
        "coverage",
        "jest",
        "vitest",
        "pytest",
        "check-tests",
    ]) {
        Some(Test)
    } else if any(&[
        "lint", "eslint", "clippy", "ruff", "fmt", "format", "style", "prettier", "stan", "cs",
    ]) && (!any(&["fmt", "format", "prettier"]) || any(&["check", "lint"]))
    {
        Some(Lint)
    } else if any(&["typecheck", "types", "type", "tsc", "mypy", "typescript"]) {
        Some(Types)
    } else if any(&["build", "compile"]) {
        Some(Build)
    } else if any(&["check", "checks", "verify", "validate", "ci", "qa"]) {
        Some(Check)
    } else {
        None
    }
}

/// `./check.sh`, `scripts/run_tests.py`: a project's own script with a telling name.
fn check_script(word: &str) -> Option<Program> {
    let name = base_name(word);
    let (stem, ending) = name.split_once('.').unwrap_or((name, ""));
    let is_path = word.contains('/');
    let is_script = matches!(
        ending,
        "sh" | "bash" | "py" | "rb" | "js" | "mjs" | "cjs" | "ts" | "pl" | "php" | "ps1"
    ) || matches!(
        ending,
        "test.js" | "test.ts" | "test.mjs" | "spec.js" | "spec.ts"
    );
    let is_program = is_path && ending.is_empty();
    if !is_script && !is_program {
        return None;
    }
    let stem = if ending.contains("test.") || ending.contains("spec.") {
        "test"
    } else {
        stem
    };
    kind_of_target(stem).map(|kind| named(kind, name))
}

fn named(kind: VerificationKind, name: &str) -> Program {
    Program {
        kind,
        name: name.to_owned(),
    }
}
