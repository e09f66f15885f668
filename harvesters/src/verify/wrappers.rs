//! What stands before the program that a command runs: keywords, assignments, wrappers,
//! shells and interpreters.

use crate::shell::steps;

/// What a wrapper hides.
pub(super) enum Hidden<'r, 'w> {
    /// The rest of its words.
    Words(&'r [&'w str]),
    /// A command line in one of its words.
    Line(&'w str),
}

/// Words of the shell before a command.
pub(super) fn is_keyword(word: &str) -> bool {
    matches!(
        word,
        "do" | "then" | "else" | "if" | "while" | "until" | "elif" | "!" | "{" | "--"
    )
}

/// The value of an assignment before a command.
pub(super) fn assigned(word: &str) -> Option<&str> {
    let (name, value) = word.split_once('=')?;
    let is_name = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then_some(value)
}

/// The command line in `$(…)`, when that is all.
pub(super) fn substituted(value: &str) -> Option<&str> {
    value.strip_prefix("$(")?.strip_suffix(')')
}

/// A program that runs another: its name, the commands of its own that do so (any use when
/// there are none), the operands before the other program, and the flags that have a value.
struct Wrapper {
    programs: &'static [&'static str],
    commands: &'static [&'static str],
    operands: usize,
    valued: &'static [&'static str],
}

const fn wrapper(
    programs: &'static [&'static str],
    commands: &'static [&'static str],
    operands: usize,
    valued: &'static [&'static str],
) -> Wrapper {
    Wrapper {
        programs,
        commands,
        operands,
        valued,
    }
}

const CONTAINER_VALUES: &[&str] = &[
    "-v",
    "--volume",
    "-w",
    "--workdir",
    "-e",
    "--env",
    "-u",
    "--user",
    "--name",
    "-p",
    "--publish",
    "--network",
    "--net",
    "--entrypoint",
    "-m",
    "--memory",
    "--mount",
    "--platform",
    "--env-file",
    "--add-host",
    "--hostname",
    "--gpus",
    "--ulimit",
    "--cpus",
    "-l",
    "--label",
    "-f",
    "--file",
    "--index",
    "--profile",
];

const WRAPPERS: &[Wrapper] = &[
    wrapper(
        &[
            "time",
            "command",
            "exec",
            "builtin",
            "nohup",
            "setsid",
            "unbuffer",
            "caffeinate",
            "chronic",
            "rtk",
            "cross-env",
            "cross-env-shell",
            "nyc",
            "c8",
            "parallel",
        ],
        &[],
        0,
        &[
            "-f",
            "-o",
            "--format",
            "--output",
            "--reporter",
            "-r",
            "-j",
            "--jobs",
        ],
    ),
    wrapper(
        &["sudo", "doas"],
        &[],
        0,
        &["-u", "--user", "-g", "--group", "-D", "-C"],
    ),
    wrapper(&["env"], &[], 0, &["-u", "--unset", "-C", "--chdir"]),
    wrapper(&["nice", "ionice"], &[], 0, &["-n", "-c", "-p"]),
    wrapper(&["stdbuf"], &[], 0, &["-i", "-o", "-e"]),
    wrapper(
        &["xvfb-run"],
        &[],
        0,
        &["-s", "-n", "-e", "-f", "--server-args", "--server-num"],
    ),
    wrapper(&["dotenv"], &[], 0, &["-e", "-f", "-p", "-v"]),
    wrapper(
        &["timeout", "gtimeout"],
        &[],
        1,
        &["-k", "--kill-after", "-s", "--signal"],
    ),
    wrapper(
        &["taskset", "flock", "faketime"],
        &[],
        1,
        &["-c", "-w", "-E"],
    ),
    wrapper(
        &[
            "uv",
            "poetry",
            "pipenv",
            "pdm",
            "hatch",
            "rye",
            "pixi",
            "conda",
            "mamba",
            "micromamba",
            "devbox",
            "doppler",
        ],
        &["run"],
        0,
        &[
            "-n",
            "--name",
            "-p",
            "--package",
            "--with",
            "--python",
            "--extra",
            "--group",
            "-e",
            "--env",
            "--environment",
            "-C",
            "--directory",
            "--project",
            "--env-file",
        ],
    ),
    wrapper(&["direnv"], &["exec"], 1, &[]),
    wrapper(
        &["bundle", "mise", "rbenv", "asdf", "composer"],
        &["exec"],
        0,
        &[],
    ),
    wrapper(
        &["pnpm", "yarn", "npm"],
        &["exec", "dlx"],
        0,
        &[
            "-w",
            "--workspace",
            "-F",
            "--filter",
            "-C",
            "--dir",
            "--prefix",
            "-p",
            "--package",
        ],
    ),
    wrapper(&["bun"], &["x"], 0, &[]),
    wrapper(
        &["npx", "uvx", "bunx", "pipx"],
        &[],
        0,
        &["-p", "--package", "--with", "--python", "--from", "--spec"],
    ),
    wrapper(
        &["xargs"],
        &[],
        0,
        &["-n", "-P", "-I", "-L", "-d", "-a", "-s"],
    ),
    wrapper(
        &["docker", "podman", "nerdctl"],
        &["exec", "run"],
        1,
        CONTAINER_VALUES,
    ),
    wrapper(
        &["docker-compose", "podman-compose"],
        &["exec", "run"],
        1,
        CONTAINER_VALUES,
    ),
    wrapper(
        &["coverage"],
        &["run"],
        0,
        &["--source", "--rcfile", "--omit", "--include"],
    ),
    wrapper(&["go"], &["run"], 0, &["-tags", "-mod", "-exec"]),
    wrapper(&["symfony"], &["php"], 0, &[]),
];

/// What a program runs, if it is one that runs others.
pub(super) fn hidden<'r, 'w>(program: &str, rest: &'r [&'w str]) -> Option<Hidden<'r, 'w>> {
    let after = |marks: &[&str]| {
        let position = rest.iter().position(|word| marks.contains(word))?;
        rest.get(position + 1..)
    };
    let line_after = |marks: &[&str]| Some(Hidden::Line(after(marks)?.first()?));
    match (program, rest) {
        ("docker" | "podman", ["compose", inner @ ..]) => return hidden("docker-compose", inner),
        ("symfony", ["php", ..]) => return Some(Hidden::Words(rest)),
        ("kubectl" | "oc" | "nix" | "flatpak", _) => {
            return after(&["--", "-c", "--command"]).map(Hidden::Words);
        }
        ("find", _) => return after(&["-exec", "-execdir"]).map(Hidden::Words),
        ("cmd", _) => return after(&["/c", "/C"]).map(Hidden::Words),
        ("nix-shell", _) => return line_after(&["--run", "--command"]),
        ("su" | "script", _) => return line_after(&["-c", "-qc", "-qec", "--command"]),
        ("pwsh" | "powershell", _) => return line_after(&["-c", "-Command", "-command"]),
        ("ssh", _) => {
            return rest
                .last()
                .filter(|_| rest.len() > 1)
                .map(|line| Hidden::Line(line));
        }
        _ => {}
    }
    let wrapper = WRAPPERS.iter().find(|wrapper| {
        let command = rest.first().unwrap_or(&"");
        wrapper.programs.contains(&program)
            && (wrapper.commands.is_empty() || wrapper.commands.contains(command))
    })?;
    let own = usize::from(!wrapper.commands.is_empty());
    let mut words = past_flags(rest.get(own..)?, wrapper.valued);
    for _ in 0..wrapper.operands {
        words = past_flags(words.get(1..)?, wrapper.valued);
    }
    Some(Hidden::Words(words))
}

/// The words behind flags and their values.
fn past_flags<'r, 'w>(words: &'r [&'w str], valued: &[&str]) -> &'r [&'w str] {
    let mut position = 0;
    while let Some(word) = words.get(position).filter(|word| word.starts_with('-')) {
        position += if valued.contains(word) { 2 } else { 1 };
        if *word == "--" {
            break;
        }
    }
    words.get(position..).unwrap_or_default()
}

/// What a shell is given to run.
pub(super) enum Given<'w> {
    /// A command line (`bash -lc "…"`).
    Line(&'w str),
    /// A file, of which `-n` only looks at the syntax.
    Script { path: &'w str, is_run: bool },
}

/// What `bash`, `sh` and their kind are given; none for any other program.
pub(super) fn given_to_shell<'w>(program: &str, rest: &[&'w str]) -> Option<Given<'w>> {
    if !matches!(program, "bash" | "sh" | "zsh" | "dash" | "fish") {
        return None;
    }
    let is_line_flag =
        |word: &str| word.starts_with('-') && !word.starts_with("--") && word.ends_with('c');
    let position = rest
        .iter()
        .position(|word| !word.starts_with('-') || is_line_flag(word))?;
    if is_line_flag(rest[position]) {
        return rest.get(position + 1).map(|line| Given::Line(line));
    }
    Some(Given::Script {
        path: rest[position],
        is_run: !rest[..position].contains(&"-n"),
    })
}

/// Programs that run the script that they are given.
pub(super) fn is_interpreter(program: &str) -> bool {
    matches!(
        program,
        "node" | "nodejs" | "tsx" | "ts-node" | "php" | "ruby" | "perl" | "lua" | "elixir"
    )
}

/// The position of an interpreter's script among its arguments; none when it is given code.
pub(super) fn script_position(rest: &[&str]) -> Option<usize> {
    const VALUED: &[&str] = &["-r", "--require", "--import", "--loader", "-I", "-d", "-C"];
    let position = rest.len() - past_flags(rest, VALUED).len();
    let is_code = rest
        .iter()
        .take(position)
        .any(|word| matches!(*word, "-e" | "-p" | "--eval"));
    (position < rest.len() && !is_code).then_some(position)
}

/// The first recognised thing in a command line, from its end.
pub(super) fn last_in_line<T>(line: &str, recognise: impl Fn(&[&str]) -> Option<T>) -> Option<T> {
    steps(line).iter().rev().find_map(|step| {
        let words: Vec<&str> = step.words.iter().map(String::as_str).collect();
        recognise(&words)
    })
}
