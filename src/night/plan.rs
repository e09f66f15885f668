//! What a night is to do, beyond the configuration: whose logs are read, which documents may change,
//! and where documents may lie.

use std::path::PathBuf;

use skillopt_harvesters::{Agent, Session};
use skillopt_staging::AllowedRoots;

use super::assignment::{Assigner, Assignment, PlannedDocument};
use super::document::Document;
use super::gather::Gatherer;
use super::split::Fractions;
use super::task::Task;
use super::used_skills::UsedSkills;

/// What a night is to do.
pub struct NightPlan {
    /// Reads the logs.
    pub gatherer: Gatherer,
    /// Tasks to use instead of mined ones, with splits.
    pub tasks: Option<Vec<Task>>,
    /// The documents that may be improved, in order.
    pub documents: Vec<PlannedDocument>,
    /// Where the skills that sessions used are looked for; none when they shall not be trained.
    pub used_skills: Option<UsedSkills>,
    /// Where documents may lie, those that the command line names among them.
    pub roots: AllowedRoots,
    /// Where configuration alone lets documents be written, for adoptions without a person.
    pub adoptable: AllowedRoots,
    /// The folders of the agents.
    pub homes: Vec<(Agent, PathBuf)>,
}

impl NightPlan {
    /// Gives every document its tasks.
    #[must_use]
    pub fn assign(
        &self,
        sessions: &[Session],
        tasks: &[Task],
        fractions: Fractions,
        seed: i64,
    ) -> Assignment {
        let assigner = Assigner {
            planned: &self.documents,
            used: self.used_skills.as_ref(),
            sessions,
            fractions,
            seed,
        };
        assigner.assign(tasks)
    }

    /// Reads a document, if its proposal could be adopted: where it lies, whose it is and whether it
    /// can be written are looked at here, and again at adoption.
    ///
    /// # Errors
    /// Why not, and what to do about it.
    pub fn open(&self, planned: &PlannedDocument) -> Result<Document, String> {
        skillopt_staging::preflight(&planned.path, &self.roots)
            .map_err(|refusal| refusal.reason)?;
        Document::read(planned.kind, &planned.name, &planned.path)
            .map_err(|error| error.to_string())
    }
}
