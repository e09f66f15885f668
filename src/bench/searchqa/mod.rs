//! SearchQA: answer a question from search-result passages (benchmarks 6).
//!
//! One call an item. The answer stands in `<answer>` tags; `hard` is exact match and `soft` token
//! F1 against the best of the golds, after normalisation.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::dataset::{DataError, Dataset};
use crate::model::{ChatModel, ChatRequest, Message, Speaker};
use crate::trainer::environment::{Environment, Item, Outcome, Rollout, Split};

pub mod materialise;
pub mod score;

/// The name in `env.name`.
pub const NAME: &str = "searchqa";

/// Configuration keys under `env` that this benchmark reads, besides the common ones.
pub const OPTIONS: &[&str] = &["max_completion_tokens"];

/// Longest context in characters (benchmarks 6.3).
const MAX_CONTEXT_CHARS: usize = 6000;

const SYSTEM_PROMPT: &str = include_str!("prompts/system.md");
const GUIDANCE: &str = include_str!("prompts/guidance.md");

/// The benchmark with its items and the model that attempts them.
pub struct SearchQa {
    dataset: Dataset,
    target: Arc<dyn ChatModel>,
    max_tokens: u32,
}

impl SearchQa {
    /// The benchmark over `dataset`.
    ///
    /// # Errors
    /// When an item lacks its question or its answers.
    pub fn new(
        dataset: Dataset,
        target: Arc<dyn ChatModel>,
        max_tokens: u32,
    ) -> Result<Self, DataError> {
        for item in dataset.all() {
            Question::of(item)?;
        }
        Ok(Self {
            dataset,
            target,
            max_tokens,
        })
    }

    /// How many characters the model is sent for an item under a skill.
    ///
    /// # Errors
    /// When the item lacks its question or its answers.
    pub fn prompt_chars(item: &Item, skill: &str) -> Result<usize, DataError> {
        let prompt = Question::of(item)?.prompt();
        Ok(system_prompt(skill).chars().count() + prompt.chars().count())
    }

    fn request(&self, question: &Question<'_>, skill: &str, sample: &str) -> ChatRequest {
        ChatRequest {
            stage: "rollout",
            sample: sample.to_owned(),
            messages: vec![
                Message {
                    role: Speaker::System,
                    content: system_prompt(skill),
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
        Some(GUIDANCE)
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

fn system_prompt(skill: &str) -> String {
    if skill.trim().is_empty() {
        SYSTEM_PROMPT.trim().to_owned()
    } else {
        format!("{}\n\n## Skill\n\n{}", SYSTEM_PROMPT.trim(), skill.trim())
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
