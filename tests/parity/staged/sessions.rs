//! Several command lines in a row, through the real program.
//!
//! The original takes a night's skills or its managed pair; ours takes proposals. What counts is
//! which documents are adopted, what is refused, and what the files hold in the end.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::super::Vector;
use super::home::Home;

pub(super) fn run(vector: &Vector) -> Value {
    let input = &vector.input;
    let mut home = Home::new(input);
    fs::create_dir_all(home.path.join("proj")).expect("a project");
    home.stage(&input["stage"]).expect("a night");
    home.accept_all().expect("a reviewer");
    home.change(&input["mutate"]);
    let session = Session::new(&home);
    let lines = input["argv"].as_array().into_iter().flatten();
    let results: Vec<Value> = lines.map(|line| session.result(line)).collect();
    json!({"results": results, "files": home.files_as(&vector.expected["files"])})
}

/// The program in that home.
struct Session<'t> {
    home: &'t Home,
    config: std::path::PathBuf,
}

impl<'t> Session<'t> {
    fn new(home: &'t Home) -> Session<'t> {
        let config = home.state.with_file_name("config.yaml");
        let roots: Vec<String> = home
            .roots
            .directories()
            .iter()
            .map(|root| format!("{:?}", root.display().to_string()))
            .collect();
        let text = format!(
            "skill_roots: [{}]\nprojects: {{mode: list, paths: [{:?}]}}\ndocuments: {{skill: {{path: \
             {:?}}}, memory: {{enabled: true}}}}\n",
            roots.join(", "),
            home.path.join("proj").display().to_string(),
            home.path.join("managed/m/SKILL.md").display().to_string(),
        );
        fs::write(&config, text).expect("a configuration");
        Session { home, config }
    }

    fn result(&self, line: &Value) -> Value {
        let words: Vec<&str> = line
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let before = self.adopted();
        let ended = self.command(&words);
        let mut adopted = self.adopted();
        adopted.retain(|name| !before.contains(name));
        json!({"done": ended, "adopted": adopted})
    }

    /// Runs our counterpart of a command line; whether it ended well.
    fn command(&self, words: &[&str]) -> bool {
        let mut command = Command::new(env!("CARGO_BIN_EXE_skillopt-sleep"));
        command
            .env_clear()
            .env("HOME", &self.home.path)
            .env("SKILLOPT_SLEEP_HOME", &self.home.state)
            .env("SKILLOPT_SLEEP_CONFIG", &self.config)
            .env("CLAUDE_CONFIG_DIR", self.home.path.join(".claude"))
            .env("CODEX_HOME", self.home.path.join(".codex"))
            .current_dir(self.home.path.join("proj"));
        match words[0] {
            "adopt" => command.arg("adopt").args(self.selection(words)),
            "status" => command.args(["status", "--json"]),
            "harvest" => command.args(["harvest", "tasks", "--json"]),
            "dry-run" => command.args(["run", "--dry-run"]),
            "run" => command.args(["run", "--json"]),
            other => panic!("no command {other}"),
        };
        let output = command.output().expect("the program");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!said.contains("panicked"), "{said}");
        output.status.success()
    }

    /// The proposals that the original's flags mean, and our `--all` beside names for flags that
    /// exclude each other.
    fn selection(&self, words: &[&str]) -> Vec<String> {
        let night = &self.home.night;
        let mut chosen = Vec::new();
        let mut flags = 0;
        let mut words = words.iter().copied();
        let mut named = false;
        while let Some(word) = words.next() {
            let name = match word {
                "--skill" => words.next(),
                other => other.strip_prefix("--skill="),
            };
            if let Some(name) = name {
                let row = night.skills().find(|row| row.name == name);
                chosen.push(row.map_or_else(|| name.to_owned(), |row| row.id.clone()));
                named = true;
            }
            match word {
                "--legacy" => {
                    flags += 1;
                    chosen.extend(night.managed().map(|row| row.id.clone()));
                }
                "--all-skills" => {
                    flags += 1;
                    let adopted = self.adopted();
                    let pending = night.skills().filter(|row| !adopted.contains(&row.name));
                    chosen.extend(pending.map(|row| row.id.clone()));
                }
                _ => {}
            }
        }
        if flags + usize::from(named) > 1 {
            chosen.push("--all".to_owned());
        }
        chosen
    }

    /// The names of the documents that are adopted by now.
    fn adopted(&self) -> Vec<String> {
        let listing = self
            .home
            .area()
            .and_then(|area| area.list())
            .expect("a listing");
        let adopted = listing
            .staged
            .into_iter()
            .filter(|staged| staged.status.word() == "adopted");
        let mut names: Vec<String> = adopted
            .map(|staged| staged.proposal.document.name)
            .collect();
        names.sort();
        names
    }
}

/// Which documents the original adopted at each command line.
pub(super) fn recorded(vector: &Vector) -> Value {
    let results = vector.expected["results"].as_array().into_iter().flatten();
    let results: Vec<Value> = results
        .map(|result| {
            let json = &result["json"];
            let paths = json["updated_paths"].as_array().into_iter().flatten();
            let mut names: Vec<String> = paths.filter_map(Value::as_str).map(name_of).collect();
            names.sort();
            json!({"done": result["exit"] == 0, "adopted": names})
        })
        .collect();
    json!({"results": results, "files": super::outcome::files(&vector.expected["after"])})
}

/// The name under which a document is staged.
fn name_of(path: &str) -> String {
    let mut parts = path.rsplit('/');
    match (parts.next(), parts.next()) {
        (Some("SKILL.md"), Some(folder)) => folder.to_owned(),
        (file, _) => file.unwrap_or_default().to_owned(),
    }
}
