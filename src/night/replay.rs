//! The night's environment: mined tasks, attempted again under a candidate document.
//!
//! An attempt sees the developer's request and the documents, not what the developer said later;
//! that is what the judge compares with. So a document scores when it makes the agent do by itself
//! what it had to be told.

use std::collections::HashMap;
use std::sync::Arc;

use minijinja::context;
use serde_json::{Map, Value, json};

use super::document::DocumentKind;
use super::judge::{self, JudgeError};
use super::judge_reply::Grade;
use super::task::Task;
use crate::model::{ChatModel, ChatRequest};
use crate::trainer::environment::{Environment, Item, Outcome, Rollout, Split};
use crate::trainer::error::TrainError;
use crate::trainer::prompt::Prompts;

/// Most tokens of an attempt.
const ATTEMPT_TOKENS: u32 = 4096;

/// Mined tasks and the models that attempt and judge them.
pub struct ReplayEnvironment {
    tasks: HashMap<String, Task>,
    train: Vec<Item>,
    selection: Vec<Item>,
    test: Vec<Item>,
    target: Arc<dyn ChatModel>,
    grader: Arc<dyn ChatModel>,
    prompts: Arc<Prompts>,
    trained: DocumentKind,
    beside: String,
    companion: String,
    guidance: String,
}

/// What the environment is made of.
pub struct ReplayParts {
    /// The tasks, with their splits.
    pub tasks: Vec<Task>,
    /// Attempts tasks.
    pub target: Arc<dyn ChatModel>,
    /// Grades answers.
    pub grader: Arc<dyn ChatModel>,
    /// The prompts, with the night's among them.
    pub prompts: Arc<Prompts>,
    /// Which kind of document is being trained.
    pub trained: DocumentKind,
    /// What stands above the trained text in the same place: the SKILL.md while one of its references
    /// is trained.
    pub beside: String,
    /// The text of the document that stays as it is: the memory while a skill is trained, the skill
    /// while the memory is.
    pub companion: String,
    /// What analysts are told.
    pub guidance: String,
}

impl ReplayEnvironment {
    /// The environment over `parts`.
    #[must_use]
    pub fn new(parts: ReplayParts) -> Self {
        let of = |split: &str| {
            parts
                .tasks
                .iter()
                .filter(|task| task.split == split)
                .map(item)
                .collect::<Vec<_>>()
        };
        Self {
            train: of("train"),
            selection: of("val"),
            test: of("test"),
            tasks: parts
                .tasks
                .iter()
                .map(|task| (task.id.clone(), task.clone()))
                .collect(),
            target: parts.target,
            grader: parts.grader,
            prompts: parts.prompts,
            trained: parts.trained,
            beside: parts.beside,
            companion: parts.companion,
            guidance: parts.guidance,
        }
    }

    /// The task behind an item.
    #[must_use]
    pub fn task(&self, id: &str) -> Option<&Task> {
        self.tasks.get(id)
    }

    fn request(
        &self,
        task: &Task,
        document: &str,
        sample: &str,
    ) -> Result<ChatRequest, TrainError> {
        let document = match self.beside.as_str() {
            "" => document.to_owned(),
            beside => format!("{}\n\n{}", beside.trim_end(), document.trim_start()),
        };
        let (skill, memory) = match self.trained {
            DocumentKind::Skill | DocumentKind::Reference => {
                (document.as_str(), self.companion.as_str())
            }
            DocumentKind::Memory => (self.companion.as_str(), document.as_str()),
        };
        Ok(ChatRequest {
            stage: "rollout",
            sample: sample.to_owned(),
            messages: self.prompts.render(
                "attempt",
                context! {
                    skill => skill.trim(),
                    memory => memory.trim(),
                    project => &task.project,
                    intent => &task.intent,
                },
            )?,
            max_tokens: ATTEMPT_TOKENS,
        })
    }

    async fn attempt_task(
        &self,
        item: &Item,
        task: &Task,
        document: &str,
        sample: &str,
    ) -> Rollout {
        let request = match self.request(task, document, sample) {
            Ok(request) => request,
            Err(error) => return Rollout::unusable(item, &error.to_string()),
        };
        let answer = match self.target.chat(&request).await {
            Ok(reply) => reply.text,
            Err(error) => return Rollout::not_measured(item, &error),
        };
        match judge::judge(task, &answer, self.grader.as_ref(), &self.prompts, sample).await {
            Ok(grade) => rollout(item, task, &request, answer, &grade),
            Err(JudgeError::Call(error)) => Rollout::not_measured(item, &error),
            Err(JudgeError::Prompt(error)) => Rollout::unusable(item, &error.to_string()),
        }
    }
}

impl Environment for ReplayEnvironment {
    fn name(&self) -> &str {
        "replay"
    }

    fn items(&self, split: Split) -> &[Item] {
        match split {
            Split::Train => &self.train,
            Split::Selection => &self.selection,
            Split::Test => &self.test,
        }
    }

    fn analyst_guidance(&self) -> Option<&str> {
        Some(&self.guidance)
    }

    async fn attempt(&self, item: &Item, skill: &str, sample: &str) -> Rollout {
        match self.tasks.get(&item.id) {
            Some(task) => self.attempt_task(item, task, skill, sample).await,
            None => Rollout::unusable(item, "there is no task with this id"),
        }
    }
}

fn item(task: &Task) -> Item {
    Item {
        id: task.id.clone(),
        payload: Value::Null,
    }
}

fn rollout(
    item: &Item,
    task: &Task,
    request: &ChatRequest,
    answer: String,
    grade: &Grade,
) -> Rollout {
    let mut conversation = vec![json!({"role": "assistant", "content": answer})];
    conversation.push(json!({
        "role": "system",
        "content": format!("[EVALUATION RESULT]\nScore: {:.2}\n{}", grade.soft, grade.reason),
    }));
    Rollout {
        id: item.id.clone(),
        outcome: Outcome::Measured {
            hard: grade.hard,
            soft: grade.soft,
        },
        fail_reason: if grade.hard >= 1.0 {
            String::new()
        } else {
            grade.reason.clone()
        },
        task_type: task
            .tags
            .first()
            .cloned()
            .unwrap_or_else(|| "task".to_owned()),
        task_description: task.intent.clone(),
        reference_text: judge::expected(task),
        target_system_prompt: request.messages[0].content.clone(),
        target_user_prompt: request.messages[1].content.clone(),
        response: answer,
        conversation,
        fields: Map::from_iter([
            ("judge_rationale".to_owned(), json!(grade.reason)),
            ("project".to_owned(), json!(task.project)),
            ("source_sessions".to_owned(), json!(task.source_sessions)),
        ]),
    }
}
