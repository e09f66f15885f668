//! The programs that verify, wherever in a command they stand.

use super::VerificationKind::{self, Build, Check, Lint, Test, Types};
use super::table::{IDLE_FLAGS, PLUGINS, PROGRAMS, RUNNERS, UNTESTED_FLAGS, Use};
use super::wrappers::{self, Given, Hidden};

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
    let deeper = |words: &[&str]| recognise_words(words, depth + 1);
    let (first, rest) = words.split_first()?;
    if wrappers::is_keyword(first) {
        return deeper(rest);
    }
    if let Some(value) = wrappers::assigned(first) {
        let inner = wrappers::substituted(value);
        return inner
            .and_then(|line| wrappers::last_in_line(line, deeper))
            .or_else(|| deeper(rest));
    }
    let program = base_name(first);
    match wrappers::given_to_shell(program, rest) {
        Some(Given::Line(line)) => return wrappers::last_in_line(line, deeper),
        Some(Given::Script { path, is_run: true }) => return check_script(path),
        Some(Given::Script { is_run: false, .. }) => return Some(named(Build, program)),
        None => {}
    }
    let inner = match wrappers::hidden(program, rest) {
        Some(Hidden::Words(words)) => Some(deeper(words)),
        Some(Hidden::Line(line)) => Some(wrappers::last_in_line(line, deeper)),
        None => None,
    };
    match inner {
        // `hatch run test`: no program, but the name of a script.
        Some(None) if RUNNERS.contains(&program) => {}
        Some(found) => return found,
        None => {}
    }
    if is_idle(program, rest) {
        return None;
    }
    if let Some(interpreted) = python(program, rest, depth) {
        return interpreted;
    }
    known(program, rest)
        .or_else(|| interpreted(program, rest))
        .or_else(|| script_of_runner(program, rest))
        .or_else(|| check_script(first))
}

/// Whether flags make it verify nothing.
fn is_idle(program: &str, rest: &[&str]) -> bool {
    match program {
        // This one only looks when it is run dry.
        "php-cs-fixer" => false,
        "make" | "gmake" if rest.contains(&"-n") => true,
        _ => rest.iter().any(|word| IDLE_FLAGS.contains(word)),
    }
}

/// The last part of a path, without a version, Windows endings and the wrapper's `w`.
fn base_name(word: &str) -> &str {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    let name = match name.find('@') {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    };
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
        let module = rest.get(position + 1..)?;
        if module.first() == Some(&"build") {
            return Some(Some(named(Build, "build")));
        }
        return Some(recognise_words(module, depth + 1));
    }
    let script = rest.iter().position(|word| !word.starts_with('-'))?;
    let name = base_name(rest[script]);
    if matches!(name, "manage.py" | "setup.py") {
        let kind = match rest.get(script + 1) {
            Some(&"test") => Some(Test),
            Some(&"check") => Some(Check),
            _ => None,
        };
        return Some(kind.map(|kind| named(kind, &format!("{name} {}", rest[script + 1]))));
    }
    Some(check_script(rest[script]).or_else(|| runner_in_tests(rest[script])))
}

/// `php vendor/bin/phpunit`, `node test/run.js`, `ruby -Itest test/money_test.rb`.
fn interpreted(program: &str, rest: &[&str]) -> Option<Program> {
    if !wrappers::is_interpreter(program) {
        return None;
    }
    let position = wrappers::script_position(rest)?;
    let script = rest[position];
    let name = base_name(script);
    let stem = name.split('.').next().unwrap_or(name);
    known(stem, &rest[position + 1..])
        .or_else(|| check_script(script))
        .or_else(|| runner_in_tests(script))
}

/// A script that a folder of tests is run by: its name says nothing, its place does.
fn runner_in_tests(script: &str) -> Option<Program> {
    let (folder, name) = script.rsplit_once('/')?;
    let folder = folder.rsplit('/').next().unwrap_or(folder);
    let stem = name.split('.').next().unwrap_or(name);
    let runs = matches!(
        stem,
        "run" | "runner" | "all" | "main" | "index" | "__main__"
    );
    (runs && matches!(folder, "test" | "tests" | "spec" | "__tests__")).then(|| named(Test, name))
}

/// A program of the table.
fn known(program: &str, rest: &[&str]) -> Option<Program> {
    let operands = operands(rest);
    // The first argument that is no flag, toolchain or value of a directory flag.
    let command = operands
        .iter()
        .find(|word| !word.starts_with('+') && !PLUGINS.contains(&(program, **word)));
    let is_untested = rest
        .iter()
        .any(|word| UNTESTED_FLAGS.iter().any(|flag| word.starts_with(flag)));
    let is_one_of = |word: &str, commands: &[&str]| {
        let mut parts = word.split(':').chain([word]);
        parts.any(|part| commands.contains(&part))
    };
    PROGRAMS.iter().find_map(|(name, usage, kind)| {
        if *name != program || *kind == Test && is_untested {
            return None;
        }
        match usage {
            Use::Always => Some(named(*kind, name)),
            Use::Command(commands) => command
                .filter(|word| is_one_of(word, commands))
                .map(|word| named(*kind, &format!("{name} {word}"))),
            Use::Goal(goals) => operands
                .iter()
                .find(|word| is_one_of(word.split(' ').next().unwrap_or(word), goals))
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

/// Arguments that are neither flags nor the values of some.
fn operands<'w>(rest: &[&'w str]) -> Vec<&'w str> {
    let mut skip_value = false;
    let mut found = Vec::new();
    for word in rest {
        if std::mem::take(&mut skip_value) {
            continue;
        }
        skip_value = matches!(
            *word,
            "-C" | "--prefix"
                | "--cwd"
                | "--manifest-path"
                | "-f"
                | "-p"
                | "--project"
                | "-pl"
                | "-x"
                | "--exclude-task"
                | "--tests"
        );
        if !word.starts_with('-') {
            found.push(*word);
        }
    }
    found
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
                    | "-x"
                    | "--exclude-task"
                    | "--tests"
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
        if matches!(program, "make" | "gmake") && matches!(*word, "all" | "default") {
            return Some(named(Build, &format!("{program} {word}")));
        }
        if let Some(kind) = kind_of_target(word) {
            return Some(named(kind, &format!("{program} {word}")));
        }
        // `yarn workspace name test`, `make clean test`: look on; `npm install x`: stop.
        if matches!(program, "npm" | "pnpm" | "bun" | "composer") && !rest.contains(&"run") {
            return None;
        }
    }
    if program == "rake" && rest.is_empty() {
        return Some(named(Check, program));
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
    let name = parted(target);
    let parts: Vec<&str> = name.split([':', '-', '_', '/', '.', '+']).collect();
    let any = |words: &[&str]| parts.iter().any(|part| words.contains(part));
    if any(&["watch", "fix", "install", "update", "clean", "serve", "dev"]) {
        return None;
    }
    if parts.first() == Some(&"compile") || any(&["classes"]) {
        return Some(Build);
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
        "lint",
        "eslint",
        "clippy",
        "ruff",
        "fmt",
        "format",
        "style",
        "prettier",
        "stan",
        "cs",
        "phpstan",
        "psalm",
        "ktlint",
        "spotless",
        "checkstyle",
        "detekt",
        "pmd",
        "spotbugs",
    ]) && (!any(&["fmt", "format", "prettier"]) || any(&["check", "lint"]))
    {
        Some(Lint)
    } else if any(&["typecheck", "types", "type", "tsc", "mypy", "typescript"]) {
        Some(Types)
    } else if any(&["build", "compile", "assemble"]) {
        Some(Build)
    } else if any(&["check", "checks", "verify", "validate", "ci", "qa"]) {
        Some(Check)
    } else {
        None
    }
}

/// A name in lower case with `-` before each word of it: `testDebugUnit` is
/// `test-debug-unit`.
fn parted(name: &str) -> String {
    let mut parted = String::with_capacity(name.len() + 4);
    let mut after_small = false;
    for letter in name.chars() {
        if after_small && letter.is_ascii_uppercase() {
            parted.push('-');
        }
        after_small = letter.is_ascii_lowercase();
        parted.push(letter.to_ascii_lowercase());
    }
    parted
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
