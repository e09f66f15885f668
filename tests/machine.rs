//! A machine of its own for each test: home, state, configuration and environment in a temporary
//! folder. Nothing outside of it is read or written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A machine.
pub(crate) struct Machine {
    folder: tempfile::TempDir,
    env: BTreeMap<String, String>,
}

/// What a command printed and returned.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Machine {
    /// A machine with an empty home.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut machine = Self {
            folder,
            env: BTreeMap::new(),
        };
        for (name, folder) in [
            ("HOME", "home"),
            ("XDG_CONFIG_HOME", "home/.config"),
            ("XDG_STATE_HOME", "home/.local/state"),
            ("SKILLOPT_SLEEP_HOME", "state"),
            ("CLAUDE_CONFIG_DIR", "home/.claude"),
            ("CODEX_HOME", "home/.codex"),
            ("TMPDIR", "tmp"),
        ] {
            let path = machine.path(folder);
            std::fs::create_dir_all(&path).unwrap();
            machine.set(name, &path.display().to_string());
        }
        machine.set("TZ", "UTC");
        machine.set("NO_COLOR", "1");
        machine
    }

    /// A path on it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Sets an environment variable.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.env.insert(name.to_owned(), value.to_owned());
    }

    /// Writes a file.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Copies a folder of the test data onto it.
    pub(crate) fn copy(&self, from: &Path, to: &str) {
        copy_folder(from, &self.path(to));
    }

    /// The program, ready to be given arguments.
    pub(crate) fn command(&self) -> Command {
        self.command_of(env!("CARGO_BIN_EXE_skillopt-sleep"))
    }

    /// Another program on this machine.
    pub(crate) fn command_of(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .envs(&self.env)
            .current_dir(self.path("home"))
            .stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command().args(args).output().unwrap())
    }

    /// Runs the program and expects it to succeed.
    pub(crate) fn ok(&self, args: &[&str]) -> Ran {
        let ran = self.run(args);
        assert_eq!(ran.code, Some(0), "{args:?}\n{}{}", ran.stdout, ran.stderr);
        ran
    }

    /// Runs the program and reads its JSON.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.ok(args).stdout).unwrap()
    }
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// The test data of the repository.
pub(crate) fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).unwrap();
        }
    }
}
