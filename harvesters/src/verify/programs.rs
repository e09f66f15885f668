//! The programs that verify, and the wrappers that they hide behind.

use super::VerificationKind::{self, Build, Check, Lint, Test, Types};
use crate::shell::steps;

/// A recognised program.
pub(super) struct Program {
    pub(super) kind: VerificationKind,
    pub(super) name: String,
}

/// How a program is told from its other uses.
enum Use {
    /// Every run verifies.
    Always,
    /// The first argument that is no flag is one of these.
    Command(&'static [&'static str]),
    /// One of these flags is there.
    Flag(&'static [&'static str]),
}

/// Program, what tells its use, kind.
const PROGRAMS: &[(&str, Use, VerificationKind)] = &[
    ("pytest", Use::Always, Test),
    ("py.test", Use::Always, Test),
    ("unittest", Use::Always, Test),
    ("doctest", Use::Always, Test),
    ("nose2", Use::Always, Test),
    ("nosetests", Use::Always, Test),
    ("tox", Use::Always, Test),
    ("nox", Use::Always, Test),
    ("behave", Use::Always, Test),
    ("ruff", Use::Command(&["check"]), Lint),
    ("ruff", Use::Flag(&["--check", "--diff"]), Lint),
    ("flake8", Use::Always, Lint),
    ("pylint", Use::Always, Lint),
    ("bandit", Use::Always, Lint),
    ("black", Use::Flag(&["--check", "--diff"]), Lint),
    ("isort", Use::Flag(&["--check", "--check-only", "-c"]), Lint),
    ("mypy", Use::Always, Types),
    ("pyright", Use::Always, Types),
    ("basedpyright", Use::Always, Types),
    ("pytype", Use::Always, Types),
    ("ty", Use::Command(&["check"]), Types),
    ("py_compile", Use::Always, Build),
    ("compileall", Use::Always, Build),
    ("jest", Use::Always, Test),
    ("vitest", Use::Always, Test),
    ("mocha", Use::Always, Test),
    ("ava", Use::Always, Test),
    ("tap", Use::Always, Test),
    ("karma", Use::Command(&["start", "run"]), Test),
    ("jasmine", Use::Always, Test),
    ("playwright", Use::Command(&["test"]), Test),
    ("cypress", Use::Command(&["run"]), Test),
    ("node", Use::Flag(&["--test"]), Test),
    ("node", Use::Flag(&["--check", "-c"]), Build),
    ("bun", Use::Command(&["test"]), Test),
    ("bun", Use::Command(&["build"]), Build),
    ("deno", Use::Command(&["test"]), Test),
    ("deno", Use::Command(&["lint"]), Lint),
    ("deno", Use::Command(&["check"]), Types),
    ("eslint", Use::Always, Lint),
    ("oxlint", Use::Always, Lint),
    ("stylelint", Use::Always, Lint),
    ("biome", Use::Command(&["check", "lint", "ci"]), Lint),
    ("prettier", Use::Flag(&["--check", "-c", "-l", "--list-different"]), Lint),
    ("standard", Use::Always, Lint),
    ("tsc", Use::Always, Types),
    ("vue-tsc", Use::Always, Types),
    ("svelte-check", Use::Always, Types),
    ("next", Use::Command(&["build", "lint"]), Build),
    ("vite", Use::Command(&["build"]), Build),
    ("webpack", Use::Always, Build),
    ("rollup", Use::Always, Build),
    ("esbuild", Use::Always, Build),
    ("turbo", Use::Command(&["run", "test", "build", "lint"]), Check),
    ("nx", Use::Command(&["test", "build", "lint", "run-many", "affected"]), Check),
    ("ng", Use::Command(&["test", "build", "lint", "e2e"]), Check),
    ("cargo", Use::Command(&["test", "t", "nextest"]), Test),
    ("cargo", Use::Command(&["clippy"]), Lint),
    ("cargo", Use::Command(&["check", "c"]), Types),
    ("cargo", Use::Command(&["build", "b", "rustc", "doc"]), Build),
    ("cargo", Use::Flag(&["--check"]), Lint),
    ("rustc", Use::Always, Build),
    ("rustfmt", Use::Flag(&["--check"]), Lint),
    ("go", Use::Command(&["test"]), Test),
    ("go", Use::Command(&["vet"]), Lint),
    ("go", Use::Command(&["build"]), Build),
    ("gotestsum", Use::Always, Test),
    ("golangci-lint", Use::Command(&["run"]), Lint),
    ("staticcheck", Use::Always, Lint),
    ("ginkgo", Use::Always, Test),
    ("mvn", Use::Command(&["test", "verify", "integration-test"]), Test),
    ("mvn", Use::Command(&["compile", "package", "install", "test-compile"]), Build),
    ("gradle", Use::Command(&["test", "check", "connectedCheck"]), Test),
    ("gradle", Use::Command(&["build", "assemble", "compileJava", "compileKotlin"]), Build),
    ("sbt", Use::Command(&["test", "testOnly"]), Test),
    ("sbt", Use::Command(&["compile"]), Build),
    ("ant", Use::Command(&["test"]), Test),
    ("javac", Use::Always, Build),
    ("kotlinc", Use::Always, Build),
    ("scalac", Use::Always, Build),
    ("ktlint", Use::Always, Lint),
    ("detekt", Use::Always, Lint),
    ("lein", Use::Command(&["test"]), Test),
    ("dotnet", Use::Command(&["test", "vstest"]), Test),
    ("dotnet", Use::Command(&["build", "publish"]), Build),
    ("msbuild", Use::Always, Build),
    ("swift", Use::Command(&["test"]), Test),
    ("swift", Use::Command(&["build"]), Build),
    ("swiftlint", Use::Always, Lint),
    ("xcodebuild", Use::Command(&["test", "build"]), Build),
    ("rspec", Use::Always, Test),
    ("minitest", Use::Always, Test),
    ("cucumber", Use::Always, Test),
    ("rails", Use::Command(&["test", "spec"]), Test),
    ("rake", Use::Command(&["test", "spec", "default"]), Test),
    ("rubocop", Use::Always, Lint),
    ("srb", Use::Command(&["tc"]), Types),
    ("phpunit", Use::Always, Test),
    ("pest", Use::Always, Test),
    ("artisan", Use::Command(&["test"]), Test),
    ("phpstan", Use::Always, Types),
    ("psalm", Use::Always, Types),
    ("phpcs", Use::Always, Lint),
    ("php", Use::Flag(&["-l"]), Build),
    ("mix", Use::Command(&["test"]), Test),
    ("mix", Use::Command(&["compile"]), Build),
    ("mix", Use::Command(&["credo", "dialyzer", "format"]), Lint),
    ("rebar3", Use::Command(&["eunit", "ct", "proper"]), Test),
    ("stack", Use::Command(&["test"]), Test),
    ("stack", Use::Command(&["build"]), Build),
    ("cabal", Use::Command(&["test", "v2-test"]), Test),
    ("cabal", Use::Command(&["build", "v2-build"]), Build),
    ("hlint", Use::Always, Lint),
    ("dune", Use::Command(&["test", "runtest"]), Test),
    ("dune", Use::Command(&["build"]), Build),
    ("zig", Use::Command(&["test"]), Test),
    ("zig", Use::Command(&["build"]), Build),
    ("dart", Use::Command(&["test"]), Test),
    ("dart", Use::Command(&["analyze"]), Lint),
    ("flutter", Use::Command(&["test"]), Test),
    ("flutter", Use::Command(&["analyze"]), Lint),
    ("flutter", Use::Command(&["build"]), Build),
    ("ctest", Use::Always, Test),
    ("cmake", Use::Flag(&["--build"]), Build),
    ("ninja", Use::Always, Build),
    ("meson", Use::Command(&["test"]), Test),
    ("meson", Use::Command(&["compile"]), Build),
    ("bazel", Use::Command(&["test"]), Test),
    ("bazel", Use::Command(&["build"]), Build),
    ("gcc", Use::Always, Build),
    ("g++", Use::Always, Build),
    ("clang", Use::Always, Build),
    ("clang++", Use::Always, Build),
    ("cppcheck", Use::Always, Lint),
    ("clang-tidy", Use::Always, Lint),
    ("bats", Use::Always, Test),
    ("prove", Use::Always, Test),
    ("shellcheck", Use::Always, Lint),
    ("hadolint", Use::Always, Lint),
    ("actionlint", Use::Always, Lint),
    ("yamllint", Use::Always, Lint),
    ("markdownlint", Use::Always, Lint),
    ("markdownlint-cli2", Use::Always, Lint),
    ("luacheck", Use::Always, Lint),
    ("busted", Use::Always, Test),
    ("sqlfluff", Use::Command(&["lint"]), Lint),
    ("terraform", Use::Command(&["validate"]), Lint),
    ("tflint", Use::Always, Lint),
    ("helm", Use::Command(&["lint"]), Lint),
    ("ansible-lint", Use::Always, Lint),
    ("buf", Use::Command(&["lint"]), Lint),
    ("pre-commit", Use::Command(&["run"]), Lint),
    ("docker", Use::Command(&["build"]), Build),
    ("nix", Use::Command(&["build"]), Build),
    ("forge", Use::Command(&["test"]), Test),
    ("forge", Use::Command(&["build"]), Build),
    ("hardhat", Use::Command(&["test"]), Test),
];

/// Runners of named scripts or targets: the name tells what it is.
const RUNNERS: &[&str] = &[
    "npm", "yarn", "pnpm", "bun", "make", "gmake", "just", "task", "mage", "composer", "rake", "invoke", "inv",
    "gradle", "mise", "hatch", "pdm", "poe", "nx", "deno", "npm-run-all", "run-s", "wireit",
];

/// Flags with which a verifying program verifies nothing.
const IDLE_FLAGS: &[&str] = &[
    "--help", "-h", "--version", "-V", "--collect-only", "--co", "--listTests", "--list-tests", "--list",
    "--list-targets", "--fixtures", "--markers", "--showConfig", "--print-config", "--init", "--dry-run",
    "--just-print",
];

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
        "do" | "then" | "else" | "if" | "while" | "until" | "elif" | "!" | "{" | "time" | "sudo" | "env"
            | "nice" | "nohup" | "command" | "exec" | "builtin" | "xvfb-run" | "cross-env" | "dotenv" | "caffeinate"
            | "unbuffer" | "rtk" | "stdbuf" | "-oL" | "-eL" | "--"
    ) || word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
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
    let position = rest.iter().position(|word| !word.starts_with('-') || is_command_flag(word))?;
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
                "-n" | "--name" | "-p" | "--package" | "--with" | "--python" | "--extra" | "--group" | "-e" | "--env"
                    | "-w" | "--workdir" | "-u" | "--user" | "-s" | "--signal" | "-k" | "-f" | "--file" | "-C"
                    | "--directory" | "--project" | "-I" | "-P"
            );
            position += if takes_value { 2 } else { 1 };
        }
        rest.get(position..)
    };
    match (program, rest.first().copied()) {
        ("uv" | "poetry" | "pipenv" | "pdm" | "hatch" | "rye" | "pixi" | "conda" | "mamba" | "devbox" | "doppler", Some("run"))
        | ("bundle" | "mise" | "direnv", Some("exec"))
        | ("pnpm" | "yarn" | "npm", Some("exec" | "dlx"))
        | ("bun", Some("x")) => after_flags(1),
        ("npx" | "uvx" | "bunx" | "pipx" | "xargs", _) => after_flags(0),
        ("timeout" | "gtimeout", _) => after_flags(0)?.get(1..),
        ("docker" | "podman" | "nerdctl", Some("exec" | "run")) => after_flags(1)?.get(1..),
        ("docker" | "podman", Some("compose")) if matches!(rest.get(1), Some(&("exec" | "run"))) => after_flags(2)?.get(1..),
        ("docker-compose", Some("exec" | "run")) => after_flags(1)?.get(1..),
        ("kubectl" | "nix" | "flatpak", _) => {
            let position = rest.iter().position(|word| matches!(*word, "--" | "-c" | "--command"))?;
            rest.get(position + 1..)
        }
        ("coverage", Some("run")) => after_flags(1),
        _ => None,
    }
}

/// Python's modules and scripts.
fn python(program: &str, rest: &[&str], depth: usize) -> Option<Option<Program>> {
    let is_python = program == "py" || program == "python" || program.starts_with("python3") || program.starts_with("python2");
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
        skip_value = matches!(**word, "-C" | "--prefix" | "--cwd" | "--manifest-path" | "-f" | "-p" | "--project");
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
                .find(|word| flags.iter().any(|flag| *word == flag || word.strip_prefix(flag).is_some_and(|after| after.starts_with('='))))
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
            skip_value = matches!(*word, "--prefix" | "-C" | "--cwd" | "-w" | "--workspace" | "--filter" | "-F" | "-f" | "--file" | "--dir");
            continue;
        }
        if matches!(*word, "run" | "run-script" | "workspace" | "workspaces" | "foreach") || word.contains('=') {
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
    (matches!(program, "make" | "gmake") && rest.iter().all(|word| word.starts_with('-') || word.contains('=')))
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
    if any(&["test", "tests", "t", "tst", "spec", "specs", "e2e", "unit", "integration", "coverage", "jest", "vitest", "pytest", "check-tests"]) {
        Some(Test)
    } else if any(&["lint", "eslint", "clippy", "ruff", "fmt", "format", "style", "prettier", "stan", "cs"])
        && (!any(&["fmt", "format", "prettier"]) || any(&["check", "lint"]))
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
    let is_script = matches!(ending, "sh" | "bash" | "py" | "rb" | "js" | "mjs" | "cjs" | "ts" | "pl" | "php" | "ps1")
        || matches!(ending, "test.js" | "test.ts" | "test.mjs" | "spec.js" | "spec.ts");
    if !is_script && !(is_path && ending.is_empty()) {
        return None;
    }
    let stem = if ending.contains("test.") || ending.contains("spec.") { "test" } else { stem };
    kind_of_target(stem).map(|kind| named(kind, name))
}

fn named(kind: VerificationKind, name: &str) -> Program {
    Program {
        kind,
        name: name.to_owned(),
    }
}
