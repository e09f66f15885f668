//! SearchQA: answer a question from search-result passages (benchmarks 6).
//!
//! One call an item. The answer stands in `<answer>` tags; `hard` is exact match and `soft` token
//! F1 against the best of the golds, after normalisation.

use std::sync::Arc;

use minijinja::context;
use serde_json::{Map, Value, json};

use super::dataset::{DataError, Dataset};
use crate::model::{ChatModel, ChatRequest, Message, Speaker};
use crate::trainer::environment::{Environment, Item, Outcome, Rollout, Split};
use crate::trainer::error::TrainError;
use crate::trainer::prompt::Prompts;

pub mod materialise;
pub mod score;

/// The name in `env.name`.
pub const NAME: &str = "searchqa";

/// Configuration keys under `env` that this benchmark reads, besides the common ones.
pub const OPTIONS: &[&str] = &["max_completion_tokens"];

/// Longest context in characters (benchmarks 6.3).
const MAX_CONTEXT_CHARS: usize = 6000;

/// What the target and the analysts are told; files of these names replace them, as they do the
/// trainer's own ([`Prompts::load`]).
pub const PROMPTS: &[(&str, &str)] = &[
    ("searchqa_system", include_str!("prompts/system.md")),
    ("searchqa_guidance", include_str!("prompts/guidance.md")),
];

/// The benchmark with its items and the model that attempts them.
pub struct SearchQa {
    dataset: Dataset,
    target: Arc<dyn ChatModel>,
    max_tokens: u32,
    system: String,
    guidance: String,
}

impl SearchQa {
    /// The benchmark over `dataset`.
    ///
    /// # Errors
    /// When an item lacks its question or its answers, or a prompt cannot be rendered.
    pub fn new(
        dataset: Dataset,
        target: Arc<dyn ChatModel>,
        max_tokens: u32,
        prompts: &Prompts,
    ) -> Result<Self, TrainError> {
        for item in dataset.all() {
            Question::of(item).map_err(|error| TrainError::Setup(error.to_string()))?;
        }
        Ok(Self {
            dataset,
            target,
            max_tokens,
            system: prompts.text("searchqa_system", context! {})?,
            guidance: prompts.text("searchqa_guidance", context! {})?,
        })
    }

    /// How many characters the model is sent on average for one of `items` under a skill.
    ///
    /// # Errors
    /// When an item lacks its question or its answers, or a prompt cannot be rendered.
    pub fn average_prompt<'a>(
        items: impl Iterator<Item = &'a Item>,
        skill: &str,
        prompts: &Prompts,
    ) -> Result<f64, TrainError> {
        let system = prompts.text("searchqa_system", context! {})?;
        let system = system_prompt(&system, skill).chars().count();
        let (mut chars, mut count) = (0, 0_u32);
        for item in items {
            let question = Question::of(item).map_err(|e| TrainError::Setup(e.to_string()))?;
            chars += system + question.prompt().chars().count();
            count += 1;
        }
        Ok(chars as f64 / f64::from(count.max(1)))
    }

    fn request(&self, question: &Question<'_>, skill: &str, sample: &str) -> ChatRequest {
        ChatRequest {
            stage: "rollout",
            sample: sample.to_owned(),
            messages: vec![
                Message {
                    role: Speaker::System,
                    content: system_prompt(&self.system, skill),
                },
                Message {
                    role: Speaker::User,
                    content: question.prompt(),
                },
            ],
            max_tokens: self.max_tokens,
        }
    }
}

impl Environment for SearchQa {
    fn name(&self) -> &str {
        NAME
    }

    fn items(&self, split: Split) -> &[Item] {
        self.dataset.split(split)
    }

    fn analyst_guidance(&self) -> Option<&str> {
        Some(&self.guidance)
    }

    async fn attempt(&self, item: &Item, skill: &str, sample: &str) -> Rollout {
        let question = match Question::of(item) {
            Ok(question) => question,
            Err(error) => return Rollout::unusable(item, &error.to_string()),
        };
        let request = self.request(&question, skill, sample);
        match self.target.chat(&request).await {
            Ok(reply) => question.grade(item, &request, &reply.text),
            Err(error) => Rollout::not_measured(item, &error),
        }
    }
}

/// The system text with the skill below it, if there is one.
fn system_prompt(system: &str, skill: &str) -> String {
    let (system, skill) = (system.trim(), skill.trim());
    if skill.is_empty() {
        system.to_owned()
    } else {
        format!("{system}\n\n## Skill\n\n{skill}")
    }
}

/// An item as this benchmark reads it.
struct Question<'a> {
    question: &'a str,
    context: &'a str,
    answers: Vec<String>,
    task_type: &'a str,
}

impl<'a> Question<'a> {
    fn of(item: &'a Item) -> Result<Self, DataError> {
        let text = |key: &str| item.payload.get(key).and_then(Value::as_str);
        let missing = |key: &str| DataError::Item {
            id: item.id.clone(),
            message: format!(
                "has no `{key}`; a SearchQA item needs `id`, `question` and `answers`"
            ),
        };
        let answers = item.payload.get("answers").and_then(Value::as_array);
        Ok(Self {
            question: text("question").ok_or_else(|| missing("question"))?,
            context: text("context").unwrap_or_default(),
            answers: answers
                .ok_or_else(|| missing("answers"))?
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            task_type: text("task_type").unwrap_or("qa"),
        })
    }

    fn prompt(&self) -> String {
        let context = score::truncate_context(self.context, MAX_CONTEXT_CHARS);
        format!(
            "## Context\n\n{context}\n\n## Question\n\n{}",
            self.question
        )
    }

    fn grade(&self, item: &Item, request: &ChatRequest, response: &str) -> Rollout {
        let graded = score::score(response, &self.answers);
        let predicted = &graded.predicted_answer;
        let fail_reason = if graded.em >= 1.0 {
            String::new()
        } else {
            format!(
                "EM=0: predicted '{predicted}' but expected {:?}",
                self.answers
            )
        };
        let evaluation = format!(
            "[EVALUATION RESULT]\nQuestion: {}\nPrediction: {predicted}\nGold answers: {:?}\n\
             Exact match: {:.4}\nF1: {:.4}",
            self.question, self.answers, graded.em, graded.f1
        );
        Rollout {
            id: item.id.clone(),
            outcome: Outcome::Measured {
                hard: graded.em,
                soft: graded.f1,
            },
            fail_reason,
            task_type: self.task_type.to_owned(),
            task_description: self.question.to_owned(),
            reference_text: String::new(),
            target_system_prompt: request.messages[0].content.clone(),
            target_user_prompt: request.messages[1].content.clone(),
            response: response.to_owned(),
            conversation: vec![
                json!({"type": "message", "turn": 1, "role": "assistant", "content": response}),
                json!({"role": "system", "content": evaluation}),
            ],
            fields: Map::from_iter([
                ("question".to_owned(), json!(self.question)),
                ("em".to_owned(), json!(graded.em)),
                ("f1".to_owned(), json!(graded.f1)),
                ("sub_em".to_owned(), json!(graded.sub_em)),
                ("predicted_answer".to_owned(), json!(predicted)),
                ("gold_answers".to_owned(), json!(self.answers)),
                ("agent_ok".to_owned(), json!(true)),
                ("n_turns".to_owned(), json!(1)),
            ]),
        }
    }
}
