//! A home directory of its own for each test, and short words for what tests do in it.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use skillopt_staging::{
    Acceptance, Adoption, AllowedRoots, Approver, Base, Cost, Document, DocumentKind, Draft,
    EditSelection, EditStatus, GateRecord, Origin, RefusalKind, Result, RevertPlan, StagedEdit,
    StagingArea, adopt, preflight, revert, sha256,
};
use tempfile::TempDir;

pub(crate) struct World {
    /// `None` for a home that somebody else removes.
    _dir: Option<TempDir>,
    pub(crate) home: PathBuf,
    pub(crate) state: PathBuf,
    pub(crate) roots: AllowedRoots,
}

/// Moments in order, without a clock.
pub(crate) fn at(minute: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + 60 * minute).unwrap()
}

pub(crate) fn edit(index: usize, content: &str) -> StagedEdit {
    StagedEdit {
        index,
        op: "add".to_owned(),
        target: "skill".to_owned(),
        anchor: None,
        content: content.to_owned(),
        rationale: "the tests were forgotten".to_owned(),
        origin: Origin::Model,
        status: EditStatus::Applied,
        contribution: None,
        evidence: Vec::new(),
    }
}

impl World {
    pub(crate) fn new() -> World {
        // A file system in memory where there is one: every write here is synced, and the
        // crash matrix writes thousands of files.
        let dir = tempfile::tempdir_in("/dev/shm")
            .or_else(|_| tempfile::tempdir())
            .unwrap();
        let home = dir.path().canonicalize().unwrap();
        fs::create_dir_all(home.join("skills")).unwrap();
        fs::create_dir_all(home.join("project")).unwrap();
        World {
            _dir: Some(dir),
            ..World::at(&home)
        }
    }

    /// The world of a home that is there already.
    pub(crate) fn at(home: &Path) -> World {
        World {
            roots: AllowedRoots::new()
                .skills(home.join("skills"))
                .project(home.join("project")),
            state: home.join("state"),
            home: home.to_path_buf(),
            _dir: None,
        }
    }

    pub(crate) fn area(&self) -> StagingArea {
        StagingArea::open(&self.state.join("staging")).unwrap()
    }

    pub(crate) fn skill(&self, name: &str) -> PathBuf {
        self.home.join("skills").join(name).join("SKILL.md")
    }

    pub(crate) fn write(&self, path: &Path, text: impl AsRef<[u8]>) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn draft(&self, path: &Path, proposed: &str) -> Draft {
        let base = preflight(path, &self.roots)
            .and_then(|target| target.read())
            .unwrap_or_else(|_| Base::absent());
        let name = path.parent().unwrap().file_name().unwrap();
        Draft {
            night: "n12".to_owned(),
            created: at(0),
            document: Document {
                kind: DocumentKind::Skill,
                name: name.to_string_lossy().into_owned(),
                path: path.to_path_buf(),
                real_path: None,
                hosts: vec!["claude-code".to_owned()],
            },
            base,
            proposed: proposed.to_owned(),
            edits: vec![edit(1, "first"), edit(2, "second"), edit(3, "third")],
            gate: GateRecord::default(),
            rejected: Vec::new(),
            lint: Vec::new(),
            cost: Cost::default(),
            verified: true,
        }
    }

    pub(crate) fn stage(&self, path: &Path, proposed: &str) -> String {
        let draft = self.draft(path, proposed);
        self.area().stage(draft).unwrap().id
    }

    pub(crate) fn accept(&self, id: &str) {
        let text = self.area().load(id).unwrap().proposal.proposed.text;
        self.area().accept(id, acceptance(&text)).unwrap();
    }

    /// Stages a text for a document and accepts it.
    pub(crate) fn accepted(&self, path: &Path, proposed: &str) -> String {
        let id = self.stage(path, proposed);
        self.accept(&id);
        id
    }

    pub(crate) fn adopt(&self, ids: &[String]) -> Result<Adoption> {
        let plan = self.area().plan(ids, Approver::Person, at(10))?;
        adopt(&plan, &self.state, &self.roots)
    }

    pub(crate) fn revert(&self, adoption: Option<&str>, force: bool) -> Result<Adoption> {
        let plan = RevertPlan {
            adoption: adoption.map(str::to_owned),
            force,
            at: at(20),
        };
        revert(&plan, &self.state, &self.roots)
    }

    /// Every file under a directory with its bytes and mode; directories and links too.
    pub(crate) fn tree(&self, top: &str) -> Vec<(PathBuf, u32, Vec<u8>)> {
        use std::os::unix::fs::MetadataExt;
        let mut found = Vec::new();
        let mut open = vec![self.home.join(top)];
        while let Some(path) = open.pop() {
            let Ok(metadata) = fs::symlink_metadata(&path) else {
                continue;
            };
            let bytes = if metadata.is_dir() {
                open.extend(
                    fs::read_dir(&path)
                        .unwrap()
                        .map(|entry| entry.unwrap().path()),
                );
                Vec::new()
            } else if metadata.is_symlink() {
                fs::read_link(&path)
                    .unwrap()
                    .into_os_string()
                    .into_encoded_bytes()
            } else if metadata.is_file() {
                fs::read(&path).unwrap()
            } else {
                Vec::new()
            };
            found.push((path, metadata.mode(), bytes));
        }
        found.sort();
        found
    }
}

pub(crate) fn acceptance(text: &str) -> Acceptance {
    Acceptance {
        edits: EditSelection::All,
        text: text.to_owned(),
        shown_sha256: sha256(text),
        edited_by_person: false,
        base_sha256: None,
        at: at(5),
    }
}

#[track_caller]
pub(crate) fn refused<T: std::fmt::Debug>(result: Result<T>) -> RefusalKind {
    result.unwrap_err().refusal().unwrap()
}
