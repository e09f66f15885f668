//! A home directory as a vector describes it, with our state beside it.
//!
//! Recorded paths begin with `/home/dev`; here that is a folder of the test. The state directory
//! lies outside of it, so that everything inside is a person's.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use skillopt_files::{Lock, NoSteps, Steps, TEMPORARY_PREFIX};
use skillopt_staging::{
    Acceptance, AllowedRoots, Approver, Base, Cost, Document, DocumentKind, Draft, EditSelection,
    EditStatus, Error, GateRecord, Origin, StagedEdit, StagingArea, adopt_with, preflight, sha256,
};

use super::outcome::{refused, row};
use super::place::{Night, RECORDED_HOME};

/// The names that the original gives to the documents that are not one of many skills.
const MANAGED_SKILL: &str = "/home/dev/managed/m/SKILL.md";
const MEMORY: &str = "/home/dev/proj/CLAUDE.md";

/// A home, its state, and what is staged.
pub(super) struct Home {
    _dir: tempfile::TempDir,
    /// What is recorded as `/home/dev`.
    pub(super) path: PathBuf,
    pub(super) state: PathBuf,
    pub(super) roots: AllowedRoots,
    pub(super) night: Night,
    locks: Vec<Lock>,
}

/// Moments in order, without a clock.
pub(super) fn at(minute: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + 60 * minute).expect("a moment")
}

impl Home {
    /// The home with the vector's files, and nothing staged.
    pub(super) fn new(input: &Value) -> Home {
        // A file system in memory where there is one: every write of an adoption is synced.
        let dir = tempfile::tempdir_in("/dev/shm")
            .or_else(|_| tempfile::tempdir())
            .expect("a folder");
        let top = dir.path().canonicalize().expect("its path");
        let (path, state) = (top.join("home/dev"), top.join("state"));
        fs::create_dir_all(&path).expect("a home");
        let home = Home {
            _dir: dir,
            night: Night::new(&path, &state),
            roots: AllowedRoots::new(),
            locks: Vec::new(),
            path,
            state,
        };
        for entry in input["tree"].as_array().into_iter().flatten() {
            home.make(entry);
        }
        home
    }

    pub(super) fn area(&self) -> Result<StagingArea, Error> {
        StagingArea::open(&self.state.join("staging"))
    }

    /// Where a recorded path is here.
    pub(super) fn here(&self, recorded: &str) -> PathBuf {
        match recorded.strip_prefix(RECORDED_HOME) {
            Some(rest) => self.path.join(rest.trim_start_matches('/')),
            None => PathBuf::from(recorded),
        }
    }

    fn make(&self, entry: &Value) {
        let path = self.here(entry["path"].as_str().expect("a path"));
        fs::create_dir_all(path.parent().expect("a parent")).expect("its folder");
        if let Some(target) = entry["symlink"].as_str() {
            return symlink(self.here(target), &path).expect("a link");
        } else if let Some(other) = entry["hardlink"].as_str() {
            return fs::hard_link(self.here(other), &path).expect("a second name");
        } else if entry.get("fifo").is_some() {
            return make_fifo(&path);
        } else if entry.get("dir").is_some() {
            fs::create_dir_all(&path).expect("a folder");
        } else {
            fs::write(&path, bytes(entry)).expect("a file");
        }
        let usual = if path.is_dir() { 0o755 } else { 0o644 };
        set_mode(&path, mode(entry).unwrap_or(usual));
    }

    /// Stages what the vector gives, as a night does: the document checked and read first.
    ///
    /// The directories that the vector names, else those that hold the skills, are allowed.
    pub(super) fn stage(&mut self, given: &Value) -> Result<(), Error> {
        let mut wanted: Vec<(String, DocumentKind, String, &Value)> = Vec::new();
        for skill in given["skills"].as_array().into_iter().flatten() {
            let live = text(skill, "live_skill_path");
            let name = text(skill, "skill_name").trim().to_owned();
            wanted.push((name, DocumentKind::Skill, live, skill));
        }
        let path_of = |key: &str, usual: &str| {
            let given = given[key].as_str().unwrap_or(usual);
            given.to_owned()
        };
        if given["managed_skill"].is_string() {
            let live = path_of("live_skill_path", MANAGED_SKILL);
            self.roots = self.roots.clone().document(self.here(&live));
            wanted.push((
                super::place::MANAGED.to_owned(),
                DocumentKind::Skill,
                live,
                given,
            ));
        }
        if given["memory"].is_string() {
            let live = path_of("live_memory_path", MEMORY);
            self.roots = self.roots.clone().document(self.here(&live));
            wanted.push((
                super::place::MEMORY.to_owned(),
                DocumentKind::Memory,
                live,
                given,
            ));
        }
        let named = given["skill_roots"].as_array().map(|roots| {
            let roots = roots.iter().filter_map(Value::as_str);
            roots.map(|root| self.here(root)).collect::<Vec<_>>()
        });
        let holding = wanted.iter().filter_map(|(_, _, live, _)| {
            let live = self.here(live);
            live.ancestors().nth(2).map(Path::to_path_buf)
        });
        let roots = named.unwrap_or_else(|| holding.take(self.skills_of(given)).collect());
        self.roots = roots
            .into_iter()
            .fold(self.roots.clone(), AllowedRoots::skills);
        for (name, kind, live, row) in wanted {
            let proposed = match name.as_str() {
                super::place::MANAGED => &row["managed_skill"],
                super::place::MEMORY => &row["memory"],
                _ => &row["proposed_skill"],
            };
            let draft = self.draft(&name, kind, &live, proposed.as_str(), row)?;
            let id = self.area()?.stage(draft)?.id;
            self.night.add(&name, &live, &id);
        }
        Ok(())
    }

    /// A draft for a document that is not there yet.
    pub(super) fn new_document(&self, live: &str, proposed: &str) -> Draft {
        Draft {
            night: "n1".to_owned(),
            created: at(0),
            document: Document {
                kind: DocumentKind::Skill,
                name: "a".to_owned(),
                path: self.here(live),
                real_path: None,
                hosts: Vec::new(),
            },
            base: Base::absent(),
            proposed: proposed.to_owned(),
            edits: vec![edit()],
            gate: GateRecord::default(),
            rejected: Vec::new(),
            lint: Vec::new(),
            cost: Cost::default(),
            verified: true,
        }
    }

    fn skills_of(&self, given: &Value) -> usize {
        given["skills"].as_array().map_or(0, Vec::len)
    }

    fn draft(
        &self,
        name: &str,
        kind: DocumentKind,
        live: &str,
        proposed: Option<&str>,
        row: &Value,
    ) -> Result<Draft, Error> {
        let path = self.here(live);
        let mut base = preflight(&path, &self.roots)?.read()?;
        if let Some(given) = row["live_sha256"].as_str() {
            base.existed = !given.is_empty();
            given.clone_into(&mut base.sha256);
        }
        let mut draft = self.new_document(live, proposed.unwrap_or_default());
        draft.document.kind = kind;
        name.clone_into(&mut draft.document.name);
        let real = match name {
            super::place::MEMORY => &row["live_memory_realpath"],
            _ => &row["live_realpath"],
        };
        draft.document.real_path = real.as_str().map(|real| self.here(real));
        draft.base = base;
        Ok(draft)
    }

    /// Accepts everything that is staged, as it is shown now.
    pub(super) fn accept_all(&self) -> Result<(), Error> {
        let area = self.area()?;
        for row in self.night.rows() {
            let text = area.load(&row.id)?.proposal.proposed.text;
            area.accept(
                &row.id,
                Acceptance {
                    edits: EditSelection::All,
                    shown_sha256: sha256(&text),
                    text,
                    edited_by_person: false,
                    base_sha256: None,
                    at: at(1),
                },
            )?;
        }
        Ok(())
    }

    /// An adoption as the vector names it, in the words of [`super::outcome`].
    pub(super) fn act(&self, act: &Value, steps: &mut dyn Steps) -> Value {
        match self.adopt(act, steps) {
            Ok(done) => json!({"done": done}),
            Err(error) => refused(&error),
        }
    }

    fn adopt(&self, act: &Value, steps: &mut dyn Steps) -> Result<Vec<Value>, Error> {
        let area = self.area()?;
        let ids: Vec<String> = match (act["mode"].as_str(), act["names"].as_array()) {
            (Some("managed"), _) => self.night.managed().map(|row| row.id.clone()).collect(),
            (_, None) => self.night.skills().map(|row| row.id.clone()).collect(),
            (_, Some(names)) => names
                .iter()
                .map(|name| name.as_str().unwrap_or_default().trim())
                .map(
                    |name| match self.night.skills().find(|row| row.name == name) {
                        Some(row) => Ok(row.id.clone()),
                        None => area.find(name).map(|staged| staged.proposal.id),
                    },
                )
                .collect::<Result<_, _>>()?,
        };
        if ids.is_empty() {
            // The command line says that there is nothing to adopt, and ends well.
            return Ok(Vec::new());
        }
        let plan = area.plan(&ids, Approver::Person, at(10))?;
        let adoption = adopt_with(&plan, &self.state, &self.roots, steps)?;
        let mut rows: Vec<Value> = adoption.documents.iter().map(row).collect();
        rows.sort_by_key(Value::to_string);
        Ok(rows)
    }

    /// Which of the many skills, or whether one of the others, is still to be adopted.
    pub(super) fn pending(&self) -> Map<String, Value> {
        let listing = match self.area().and_then(|area| area.list()) {
            Ok(listing) => listing,
            Err(error) => {
                let error = refused(&error);
                let both = [
                    ("pending_skills", error.clone()),
                    ("pending_managed", error),
                ];
                return both
                    .map(|(key, value)| (key.to_owned(), value))
                    .into_iter()
                    .collect();
            }
        };
        let open = |row: &&super::place::Row| {
            let staged = listing
                .staged
                .iter()
                .find(|staged| staged.proposal.id == row.id);
            staged.is_some_and(|staged| staged.status.is_open())
        };
        let broken = |mut rows: Box<dyn Iterator<Item = &super::place::Row> + '_>| {
            rows.any(|row| {
                listing
                    .staged
                    .iter()
                    .all(|staged| staged.proposal.id != row.id)
            })
        };
        let damaged = json!({"refused": "proposal"});
        let skills = if broken(Box::new(self.night.skills())) {
            damaged.clone()
        } else {
            let shown = |row: &super::place::Row| {
                let staged = listing
                    .staged
                    .iter()
                    .find(|staged| staged.proposal.id == row.id);
                staged.map(|staged| staged.proposal.document.name.clone())
            };
            let names = self.night.skills().filter(open).map(shown);
            json!({"done": names.collect::<Vec<_>>()})
        };
        let managed = if broken(Box::new(self.night.managed())) {
            damaged
        } else {
            json!({"done": self.night.managed().filter(open).count() > 0})
        };
        Map::from_iter([
            ("pending_skills".to_owned(), skills),
            ("pending_managed".to_owned(), managed),
        ])
    }

    /// Carries out changes in order.
    pub(super) fn change(&mut self, changes: &Value) {
        for change in changes.as_array().into_iter().flatten() {
            match change["op"].as_str().expect("an operation") {
                "lock" => self.hold_lock(),
                "adopt" => {
                    let done = self.act(change, &mut NoSteps);
                    assert!(done.get("done").is_some(), "{change}: {done}");
                }
                _ => self
                    .meddle(change)
                    .unwrap_or_else(|error| panic!("{change}: {error}")),
            }
        }
    }

    /// Somebody else has the lock until the home is gone.
    fn hold_lock(&mut self) {
        if self.locks.is_empty() {
            let lock = Lock::acquire(&self.state.join("adopt.lock"), "somebody else");
            self.locks.push(lock.expect("nobody has it yet"));
        }
    }

    /// One change of the files that somebody else makes.
    pub(super) fn meddle(&self, change: &Value) -> io::Result<()> {
        let recorded = change["path"].as_str().expect("a path");
        for path in self.night.places(recorded) {
            match change["op"].as_str().expect("an operation") {
                "write" => {
                    if let Some(parent) = path.parent() {
                        fs::create_dir_all(parent)?;
                    }
                    if path.is_dir() {
                        fs::remove_dir_all(&path)?;
                    }
                    fs::write(&path, bytes(change))?;
                }
                "delete" if path.is_dir() && !path.is_symlink() => fs::remove_dir_all(&path)?,
                "delete" => remove(&path)?,
                "mkdir" => fs::create_dir_all(&path)?,
                "symlink" => {
                    remove(&path)?;
                    symlink(self.here(change["to"].as_str().expect("a target")), &path)?;
                }
                "hardlink" => {
                    remove(&path)?;
                    let from = self.night.places(change["from"].as_str().expect("a file"));
                    fs::hard_link(&from[0], &path)?;
                }
                "rename" => {
                    let to = change["to"].as_str().expect("a place");
                    let to = self.night.beside(&path, to);
                    fs::rename(&path, to)?;
                }
                "chmod" => set_mode(&path, mode(change).expect("a mode")),
                "fifo" => {
                    remove(&path)?;
                    make_fifo(&path);
                }
                "touch_same_bytes" => {
                    let same = fs::read(&path)?;
                    let mode = fs::metadata(&path)?.permissions();
                    remove(&path)?;
                    fs::write(&path, same)?;
                    fs::set_permissions(&path, mode)?;
                }
                "json" => self.night.edit_record(recorded, change)?,
                "rehash" => {
                    let hash = sha256(fs::read(&path)?);
                    let edit = json!({"pointer": change["pointer"], "value": hash});
                    self.night.edit_record("$NIGHT/manifest.json", &edit)?;
                }
                other => panic!("no operation {other}"),
            }
        }
        Ok(())
    }

    /// Everything in the home: text and mode of files, where links lead.
    pub(super) fn files(&self) -> Value {
        let mut found = Map::new();
        let mut open = vec![self.path.clone()];
        while let Some(path) = open.pop() {
            let metadata = fs::symlink_metadata(&path).expect("a file of ours");
            let inside = path.strip_prefix(&self.path).expect("a place in the home");
            let name = format!("{RECORDED_HOME}/{}", inside.display());
            if metadata.is_dir() {
                let entries = fs::read_dir(&path).expect("a folder of ours");
                open.extend(entries.map(|entry| entry.expect("an entry").path()));
            } else if metadata.is_symlink() {
                let target = fs::read_link(&path).expect("a link");
                let target = match target.strip_prefix(&self.path) {
                    Ok(inside) => format!("{RECORDED_HOME}/{}", inside.display()),
                    Err(_) => target.display().to_string(),
                };
                found.insert(name, json!({"symlink": target}));
            } else if metadata.is_file() && metadata.permissions().mode() & 0o400 == 0 {
                found.insert(name, json!({"unreadable": true}));
            } else if metadata.is_file() {
                let mode = format!("{:04o}", metadata.permissions().mode() & 0o7777);
                let bytes = fs::read(&path).expect("a file of ours");
                found.insert(
                    name,
                    match String::from_utf8(bytes) {
                        Ok(text) => json!({"mode": mode, "text": text}),
                        Err(error) => json!({"mode": mode, "bytes": error.into_bytes()}),
                    },
                );
            } else {
                found.insert(name, json!({"special": true}));
            }
        }
        self.night.forget_moved(&mut found);
        // While an operation waits for recovery, the old text may lie beside the document.
        if skillopt_staging::is_interrupted(&self.state) {
            found.retain(|path, _| !path.contains(&format!("/{TEMPORARY_PREFIX}")));
        }
        found.into()
    }

    /// [`Home::files`], where only that a file is there counts if no more was recorded.
    pub(super) fn files_as(&self, recorded: &Value) -> Value {
        let mut files = self.files();
        for (path, file) in recorded.as_object().into_iter().flatten() {
            if file == &json!({"present": true}) && files.get(path).is_some() {
                files[path] = file.clone();
            }
        }
        files
    }
}

fn edit() -> StagedEdit {
    StagedEdit {
        index: 1,
        op: "add".to_owned(),
        target: String::new(),
        anchor: None,
        content: "a rule".to_owned(),
        rationale: String::new(),
        origin: Origin::Model,
        status: EditStatus::Applied,
        contribution: None,
        evidence: Vec::new(),
    }
}

pub(super) fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

/// The content that an entry or a change gives.
fn bytes(entry: &Value) -> Vec<u8> {
    use base64::Engine as _;
    match entry["b64"].as_str() {
        Some(coded) => base64::engine::general_purpose::STANDARD
            .decode(coded)
            .expect("base 64"),
        None => text(entry, "text").into_bytes(),
    }
}

fn mode(entry: &Value) -> Option<u32> {
    let digits = entry["mode"].as_str()?;
    Some(u32::from_str_radix(digits, 8).expect("an octal mode"))
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn make_fifo(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.expect("mkfifo runs").success());
}
