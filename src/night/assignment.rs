//! Which document is trained with which of a night's tasks.
//!
//! Tasks whose sessions used one skill train that skill, and the references of it that they opened.
//! Tasks of a project train the project's instruction files. What no skill takes trains the skill
//! that nights keep. So two skills never share a task, and each is decided on its own evidence; a
//! skill with too few tasks for a gate leaves them to the skill that nights keep.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use skillopt_harvesters::session::CallStatus;
use skillopt_harvesters::{Agent, Session};
use skillopt_staging::Lookup;

use super::document::DocumentKind;
use super::report::TaskCounts;
use super::split::{self, Fractions};
use super::task::Task;
use super::used_skills::{UsedSkills, references};

/// Which tasks a document is trained with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// All: somebody named the document.
    All,
    /// Those that no other skill takes.
    Rest,
    /// Those of sessions that began in this folder or below it.
    Under(PathBuf),
    /// Those of sessions that used it.
    Used,
}

/// A document that may be improved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedDocument {
    /// What kind.
    pub kind: DocumentKind,
    /// The skill's name, or the file's.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// Which tasks it is trained with.
    pub scope: Scope,
}

/// A document with its tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct Assigned {
    /// The document.
    pub planned: PlannedDocument,
    /// Its tasks, with splits; at least one trains and one validates.
    pub tasks: Vec<Task>,
}

/// The documents of a night, and why others are none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Assignment {
    /// In the order in which they are trained.
    pub documents: Vec<Assigned>,
    /// Tasks that train nothing, and skills that could not be found.
    pub notes: Vec<String>,
}

/// Tasks by the skill that they train.
#[derive(Default)]
struct Grouped {
    skills: BTreeMap<PathBuf, Vec<Task>>,
    rest: Vec<Task>,
    notes: Vec<String>,
}

/// What tasks are assigned by.
pub struct Assigner<'a> {
    /// The documents that configuration or the command line names.
    pub planned: &'a [PlannedDocument],
    /// Where the skills that sessions used are looked for; none: they are not trained.
    pub used: Option<&'a UsedSkills>,
    /// The sessions behind the tasks.
    pub sessions: &'a [Session],
    /// How tasks are split.
    pub fractions: Fractions,
    /// Seeds the split.
    pub seed: i64,
}

impl Assigner<'_> {
    /// Gives every document its tasks.
    #[must_use]
    pub fn assign(&self, tasks: &[Task]) -> Assignment {
        let sessions: HashMap<&str, &Session> = self
            .sessions
            .iter()
            .map(|session| (session.id.as_str(), session))
            .collect();
        let Grouped {
            skills,
            mut rest,
            mut notes,
        } = self.group(tasks, &sessions);
        let mut used = Vec::new();
        for (path, group) in skills {
            let name = skill_name(&path);
            match self.split(group) {
                Ok(tasks) => used.extend(self.with_references(&path, &name, tasks, &sessions)),
                Err(group) => {
                    notes.push(format!(
                        "skill `{name}`: {} is too little to train it by itself",
                        counted(group.len())
                    ));
                    rest.extend(group);
                }
            }
        }
        // Those with most to learn from come first: a budget may end the night.
        used.sort_by_key(|assigned| std::cmp::Reverse(assigned.tasks.len()));
        let mut assignment = Assignment {
            notes,
            ..Assignment::default()
        };
        self.named(tasks, &rest, used, &mut assignment);
        assignment
    }

    /// The tasks by the skill that they train.
    fn group(&self, tasks: &[Task], sessions: &HashMap<&str, &Session>) -> Grouped {
        let rest_name = self.rest_name();
        let mut grouped = Grouped::default();
        let mut unknown: BTreeMap<&str, String> = BTreeMap::new();
        for task in tasks {
            match self.skill_of(task, rest_name, sessions) {
                Ok(Some(path)) => grouped.skills.entry(path).or_default().push(task.clone()),
                Ok(None) => grouped.rest.push(task.clone()),
                Err(why) => {
                    unknown.insert(&task.skill_hint, why);
                    grouped.rest.push(task.clone());
                }
            }
        }
        let notes = unknown
            .iter()
            .map(|(name, why)| format!("skill `{name}`: {why}"));
        grouped.notes.extend(notes);
        grouped
    }

    /// Puts the named documents and the used skills in order: skills, then instruction files.
    fn named(
        &self,
        tasks: &[Task],
        rest: &[Task],
        used: Vec<Assigned>,
        assignment: &mut Assignment,
    ) {
        let mut memories = Vec::new();
        for planned in self.planned {
            let own: Vec<Task> = match &planned.scope {
                Scope::All => tasks.to_vec(),
                Scope::Rest | Scope::Used => rest.to_vec(),
                Scope::Under(folder) => tasks
                    .iter()
                    .filter(|task| lies_in(&task.project, folder))
                    .cloned()
                    .collect(),
            };
            match self.split(own) {
                Ok(tasks) => {
                    let assigned = Assigned {
                        planned: planned.clone(),
                        tasks,
                    };
                    match planned.kind {
                        DocumentKind::Memory => memories.push(assigned),
                        _ => assignment.documents.push(assigned),
                    }
                }
                Err(own) => assignment.notes.push(format!(
                    "{} is not trained: it has {}, and one is needed to learn from and one to \
                     hold out",
                    planned.path.display(),
                    counted(own.len())
                )),
            }
        }
        assignment.documents.extend(used);
        assignment.documents.extend(memories);
    }

    /// The name of the skill that nights keep.
    fn rest_name(&self) -> Option<&str> {
        self.planned
            .iter()
            .find(|planned| planned.scope == Scope::Rest)
            .map(|planned| planned.name.as_str())
    }

    /// The file of the skill that a task's sessions used; none when they used none of its own, and
    /// an error that says why the name means no file.
    fn skill_of(
        &self,
        task: &Task,
        rest_name: Option<&str>,
        sessions: &HashMap<&str, &Session>,
    ) -> Result<Option<PathBuf>, String> {
        let hint = task.skill_hint.trim();
        let Some(used) = self.used else {
            return Ok(None);
        };
        if hint.is_empty() || Some(hint) == rest_name {
            return Ok(None);
        }
        let agent = task
            .source_sessions
            .iter()
            .find_map(|id| sessions.get(id.as_str()))
            .map_or(Agent::default(), |session| session.agent);
        match used.find(hint, &task.project, agent) {
            // A link out of its root goes on to the checks of targets, which say what is wrong.
            Lookup::Found(path) | Lookup::Outside(path) => {
                let named = |planned: &PlannedDocument| planned.path == path;
                Ok((!self.planned.iter().any(named)).then_some(path))
            }
            Lookup::Missing | Lookup::Rejected => Err("it was used, but lies in none of the \
                folders in which skills are looked for; `skill_roots` can add one"
                .to_owned()),
            Lookup::Ambiguous(paths) => {
                let places: Vec<String> = paths
                    .iter()
                    .map(|path| path.display().to_string())
                    .collect();
                Err(format!(
                    "it is not clear which one was used, {}; it is trained when one of them is gone",
                    places.join(" or ")
                ))
            }
        }
    }

    /// The skill, and those of its references that enough of its sessions opened.
    fn with_references(
        &self,
        path: &Path,
        name: &str,
        tasks: Vec<Task>,
        sessions: &HashMap<&str, &Session>,
    ) -> Vec<Assigned> {
        let mut documents = Vec::new();
        if self.used.is_some_and(|used| used.references) {
            for reference in references(path) {
                let named = format!("{name}/{}", reference.display());
                let opened = |task: &&Task| {
                    let mut of_task = task.source_sessions.iter();
                    of_task.any(|id| {
                        sessions
                            .get(id.as_str())
                            .is_some_and(|session| mentions(session, &named))
                    })
                };
                let own = tasks.iter().filter(opened).cloned().collect();
                if let Ok(tasks) = self.split(own) {
                    let folder = path.parent().unwrap_or(path);
                    documents.push(Assigned {
                        planned: PlannedDocument {
                            kind: DocumentKind::Reference,
                            path: folder.join(&reference),
                            name: named,
                            scope: Scope::Used,
                        },
                        tasks,
                    });
                }
            }
        }
        let skill = PlannedDocument {
            kind: DocumentKind::Skill,
            name: name.to_owned(),
            path: path.to_owned(),
            scope: Scope::Used,
        };
        documents.insert(
            0,
            Assigned {
                planned: skill,
                tasks,
            },
        );
        documents
    }

    /// The tasks with splits of their own; gives them back when they are too few.
    fn split(&self, mut tasks: Vec<Task>) -> Result<Vec<Task>, Vec<Task>> {
        split::assign(&mut tasks, self.fractions, self.seed);
        let counts = TaskCounts::of(&tasks);
        if counts.train > 0 && counts.validation > 0 {
            Ok(tasks)
        } else {
            Err(tasks)
        }
    }
}

/// Whether a session's project is a folder or lies below it, under either of the folder's names when
/// links lead to it.
pub(super) fn lies_in(project: &str, folder: &Path) -> bool {
    let project = Path::new(project);
    let real = fs_err::canonicalize(folder);
    project.starts_with(folder) || real.is_ok_and(|real| project.starts_with(real))
}

/// Whether the agent opened a file, going by what its calls name.
fn mentions(session: &Session, file: &str) -> bool {
    session.calls().any(|call| {
        let worked = matches!(call.status, CallStatus::Ok | CallStatus::Unknown);
        let command = call.command.as_ref().map(|command| command.text.as_str());
        worked && command.unwrap_or(&call.arguments).contains(file)
    })
}

/// A skill is called like its folder.
fn skill_name(path: &Path) -> String {
    let folder = path.parent().and_then(Path::file_name);
    folder
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

fn counted(tasks: usize) -> String {
    match tasks {
        1 => "1 task".to_owned(),
        count => format!("{count} tasks"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(number: usize, project: &str, skill: &str) -> Task {
        Task {
            skill_hint: skill.to_owned(),
            ..Task::new(
                format!("t{number}"),
                project.to_owned(),
                "intent".to_owned(),
            )
        }
    }

    fn planned(kind: DocumentKind, path: &str, scope: Scope) -> PlannedDocument {
        PlannedDocument {
            kind,
            name: skill_name(Path::new(path)),
            path: PathBuf::from(path),
            scope,
        }
    }

    fn assign(
        planned: &[PlannedDocument],
        used: Option<&UsedSkills>,
        tasks: &[Task],
    ) -> Assignment {
        let assigner = Assigner {
            planned,
            used,
            sessions: &[],
            fractions: Fractions::default(),
            seed: 42,
        };
        assigner.assign(tasks)
    }

    fn ids(assigned: &Assigned) -> Vec<&str> {
        let mut ids: Vec<&str> = assigned.tasks.iter().map(|task| task.id.as_str()).collect();
        ids.sort_unstable();
        ids
    }

    #[test]
    fn a_skill_with_too_few_tasks_leaves_them_to_the_one_that_nights_keep() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("skills/rare/SKILL.md");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "# Rare\n").unwrap();
        let used = UsedSkills {
            homes: vec![(Agent::Claude, home.path().to_owned())],
            ..UsedSkills::default()
        };
        let kept = [planned(
            DocumentKind::Skill,
            "/h/kept/SKILL.md",
            Scope::Rest,
        )];
        let mut tasks = vec![
            task(0, "/p", ""),
            task(1, "/p", "kept"),
            task(2, "/p", "rare"),
        ];
        let few = assign(&kept, Some(&used), &tasks);
        assert_eq!(few.documents.len(), 1);
        assert_eq!(ids(&few.documents[0]), ["t0", "t1", "t2"]);
        assert!(
            few.notes[0].contains("`rare`") && few.notes[0].contains("1 task"),
            "{few:?}"
        );
        tasks.push(task(3, "/p", "rare"));
        let enough = assign(&kept, Some(&used), &tasks);
        assert_eq!(ids(&enough.documents[0]), ["t0", "t1"]);
        assert_eq!(
            (
                enough.documents[1].planned.path.clone(),
                ids(&enough.documents[1])
            ),
            (path, vec!["t2", "t3"])
        );
        assert_eq!(assign(&kept, None, &tasks).documents[0].tasks.len(), 4);
    }

    #[test]
    fn a_name_that_two_files_have_trains_neither() {
        let home = tempfile::tempdir().unwrap();
        for root in ["one/skills", "two"] {
            let path = home.path().join(root).join("both/SKILL.md");
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "# Both\n").unwrap();
        }
        let used = UsedSkills {
            homes: vec![(Agent::Claude, home.path().join("one"))],
            directories: vec![home.path().join("two")],
            references: false,
        };
        let tasks = [task(0, "/p", "both"), task(1, "/p", "both")];
        let assignment = assign(&[], Some(&used), &tasks);
        assert!(assignment.documents.is_empty());
        assert!(
            assignment.notes[0].contains("not clear which one"),
            "{assignment:?}"
        );
    }

    #[test]
    fn an_instruction_file_has_the_tasks_of_its_project() {
        let files = [
            planned(
                DocumentKind::Memory,
                "/p/AGENTS.md",
                Scope::Under("/p".into()),
            ),
            planned(
                DocumentKind::Memory,
                "/q/AGENTS.md",
                Scope::Under("/q".into()),
            ),
            planned(DocumentKind::Skill, "/h/kept/SKILL.md", Scope::Rest),
        ];
        let tasks = [
            task(0, "/p", ""),
            task(1, "/p/sub", "x"),
            task(2, "/pp", ""),
            task(3, "/q", ""),
        ];
        let assignment = assign(&files, None, &tasks);
        assert_eq!(assignment.documents.len(), 2);
        assert_eq!(ids(&assignment.documents[0]), ["t0", "t1", "t2", "t3"]);
        assert_eq!(ids(&assignment.documents[1]), ["t0", "t1"]);
        assert!(
            assignment.notes[0].contains("/q/AGENTS.md"),
            "{assignment:?}"
        );
    }
}
