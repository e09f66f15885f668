//! The configuration of a training or evaluation run, typed and checked (engine 3.5 to 3.7).
//!
//! Everything is checked here, before a run has any side effect (W-C9): types, ranges, names, and
//! that something reads every key. The fields of the sections keep the names and groups of a
//! structured file, so that the file `sections` reads as its reference.

mod reader;
mod sections;

pub use self::sections::{
    EnvSection, EvaluationSection, GradientSection, ModelSection, OptimizerSection, TrainSection,
};

use std::path::Path;

use serde_json::{Map, Value};

use self::reader::Reader;
use super::flatten::{COMMON_ENV, SETTINGS, check_keys};
use super::layer::{self, Loaded};
use super::modes::{
    AppendixSource, GateMetric, GateRuleName, LrControl, LrScheduler, PairPolicy, SplitMode,
    UpdateMode,
};
use super::redact::redact;
use super::{ConfigError, nearest, roles};
use crate::model::budget::Price;
use crate::model::stack::Backend;
use crate::model::{ModelError, ModelsConfig};

/// A benchmark as the configuration sees it: its name, and the names of its own `env` keys.
pub type Benchmark<'a> = (&'a str, &'a [&'a str]);

/// A checked configuration of a training or evaluation run.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineConfig {
    /// Which models to use.
    pub model: ModelSection,
    /// How long to train.
    pub train: TrainSection,
    /// How rollouts become patches.
    pub gradient: GradientSection,
    /// How patches change the document.
    pub optimizer: OptimizerSection,
    /// How candidates are judged.
    pub evaluation: EvaluationSection,
    /// What to train on.
    pub env: EnvSection,
    /// What the user should be told: keys that have no effect.
    pub notices: Vec<String>,
    flat: Map<String, Value>,
}

impl EngineConfig {
    /// Loads and checks a file with everything that it inherits, and `overrides` on top.
    ///
    /// # Errors
    /// [`ConfigError`] for the first thing that is wrong.
    pub fn read<S: AsRef<str>>(
        path: &Path,
        overrides: &[S],
        benchmarks: &[Benchmark<'_>],
    ) -> Result<EngineConfig, ConfigError> {
        EngineConfig::check(&layer::load(path, overrides)?, benchmarks)
    }

    /// Checks what was loaded.
    ///
    /// # Errors
    /// [`ConfigError`] for the first thing that is wrong.
    pub fn check(
        loaded: &Loaded,
        benchmarks: &[Benchmark<'_>],
    ) -> Result<EngineConfig, ConfigError> {
        let mut reader = Reader::new(loaded);
        let (name, options) = benchmark(&mut reader, benchmarks)?;
        let notices = check_keys(loaded, options)?;
        let model = model(&mut reader)?;
        let train = train(&mut reader)?;
        let gradient = gradient(&mut reader)?;
        let optimizer = optimizer(&mut reader)?;
        let evaluation = evaluation(&mut reader)?;
        let env = env(&mut reader, name, loaded)?;
        Ok(EngineConfig {
            model,
            train,
            gradient,
            optimizer,
            evaluation,
            env,
            notices,
            flat: reader.finish(),
        })
    }

    /// The flat form, defaults filled in and credentials redacted, for the run's `config.json`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        redact(&Value::Object(self.flat.clone()))
    }

    /// What the file says about models; the rest is decided by the environment.
    ///
    /// # Errors
    /// [`ModelError`] when a named backend cannot be used.
    pub fn models(&self) -> Result<ModelsConfig, ModelError> {
        let section = &self.model;
        let label = section.backend.trim();
        if !label.is_empty() && !roles::is_known(label) {
            // For the error, which knows the nearest name; `scripted` is ours alone.
            label.parse::<Backend>()?;
        }
        let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let roles = (
            given(&section.optimizer_backend),
            given(&section.target_backend),
        );
        let (optimizer, target) = match roles {
            // Without a label, SkillOpt's default means nothing; the environment decides.
            roles if label.is_empty() => {
                let named = |name: &String| name != "openai_chat";
                (roles.0.filter(named), roles.1.filter(named))
            }
            (Some(optimizer), Some(target)) => (Some(optimizer), Some(target)),
            (optimizer, target) => {
                let (optimizer, target) =
                    roles::resolve(label, optimizer.as_deref(), target.as_deref());
                (Some(optimizer), Some(target))
            }
        };
        let mut config = ModelsConfig::default();
        config.optimizer.backend = optimizer.map(|name| name.parse()).transpose()?;
        config.optimizer.model = given(&section.optimizer);
        config.optimizer.price_in = section.optimizer_price.map(|price| price.input);
        config.optimizer.price_out = section.optimizer_price.map(|price| price.output);
        config.target.price_in = section.target_price.map(|price| price.input);
        config.target.price_out = section.target_price.map(|price| price.output);
        config.optimizer.concurrency = Some(self.gradient.analyst_workers);
        config.target.backend = target.map(|name| name.parse()).transpose()?;
        config.target.model = given(&section.target);
        config.target.concurrency = self.env.workers;
        config
            .shared_results
            .clone_from(&self.evaluation.result_cache);
        Ok(config)
    }
}

/// The chosen benchmark's name and own keys.
fn benchmark<'a>(
    reader: &mut Reader<'_>,
    benchmarks: &[Benchmark<'a>],
) -> Result<(String, &'a [&'a str]), ConfigError> {
    let name = reader.text("env", "")?;
    if let Some((_, options)) = benchmarks.iter().find(|(known, _)| *known == name) {
        return Ok((name, options));
    }
    let names = || benchmarks.iter().map(|(known, _)| *known);
    let all = names().collect::<Vec<_>>().join(", ");
    if name.is_empty() {
        return Err(ConfigError::Missing {
            key: "env.name".to_owned(),
            reason: format!("name the benchmark: {all}"),
        });
    }
    let reason = match nearest(&name, names()) {
        Some(near) => format!("is `{name}`, which is no benchmark; did you mean `{near}`?"),
        None => format!("is `{name}`, which is no benchmark; there are: {all}"),
    };
    Err(reader.wrong("env", reason))
}

fn model(reader: &mut Reader<'_>) -> Result<ModelSection, ConfigError> {
    Ok(ModelSection {
        backend: reader.text("model_backend", "")?,
        optimizer_backend: reader.text("optimizer_backend", "")?,
        target_backend: reader.text("target_backend", "")?,
        optimizer: reader.text("optimizer_model", "")?,
        target: reader.text("target_model", "")?,
        reasoning_effort: reader.text("reasoning_effort", "")?,
        rewrite_reasoning_effort: reader.text("rewrite_reasoning_effort", "high")?,
        rewrite_max_completion_tokens: narrow(reader.integer(
            "rewrite_max_completion_tokens",
            1,
            64_000,
        )?),
        optimizer_price: price(reader, "optimizer")?,
        target_price: price(reader, "target")?,
    })
}

/// A role's price; both of its numbers or neither.
fn price(reader: &mut Reader<'_>, role: &str) -> Result<Option<Price>, ConfigError> {
    let keys = ["in", "out"].map(|end| format!("{role}_price_{end}"));
    let [input, output] = keys
        .each_ref()
        .map(|key| reader.optional_number(key, 0.0..=1e6));
    match (input?, output?) {
        (None, None) => Ok(None),
        (Some(input), Some(output)) => Ok(Some(Price { input, output })),
        (given, _) => {
            let [input, output] = &keys;
            let (key, other) = if given.is_some() {
                (input, output)
            } else {
                (output, input)
            };
            Err(reader.wrong(key, format!("is set without `{other}`; give both prices")))
        }
    }
}

fn train(reader: &mut Reader<'_>) -> Result<TrainSection, ConfigError> {
    Ok(TrainSection {
        num_epochs: narrow(reader.required("num_epochs", 1)?),
        train_size: reader.count("train_size")?,
        batch_size: narrow(reader.required("batch_size", 1)?),
        accumulation: narrow(reader.required("accumulation", 1)?),
        seed: reader.required("seed", i64::MIN)?,
    })
}

fn gradient(reader: &mut Reader<'_>) -> Result<GradientSection, ConfigError> {
    Ok(GradientSection {
        minibatch_size: narrow(reader.integer("minibatch_size", 1, 8)?),
        merge_batch_size: narrow(reader.required("merge_batch_size", 2)?),
        analyst_workers: narrow(reader.required("analyst_workers", 1)?),
        failure_only: reader.switch("failure_only", false)?,
    })
}

fn optimizer(reader: &mut Reader<'_>) -> Result<OptimizerSection, ConfigError> {
    let learning_rate = reader.required("edit_budget", 0)?;
    let given = reader.optional("min_edit_budget", 0)?;
    // One that nobody gave must not exceed a small rate; one that was given is a mistake (W-L3).
    if let Some(given) = given
        && given > learning_rate
    {
        return Err(reader.wrong(
            "min_edit_budget",
            format!("is {given}; it must not be above learning_rate, which is {learning_rate}"),
        ));
    }
    let min_learning_rate = reader.integer("min_edit_budget", 0, learning_rate.min(2))?;
    Ok(OptimizerSection {
        learning_rate: narrow(learning_rate),
        min_learning_rate: narrow(min_learning_rate),
        lr_scheduler: reader.mode("lr_scheduler", LrScheduler::Constant)?,
        lr_control_mode: reader.mode("lr_control_mode", LrControl::Fixed)?,
        skill_update_mode: reader.mode("skill_update_mode", UpdateMode::Patch)?,
        prompts_dir: reader.path("prompts_dir")?,
        use_slow_update: reader.switch("use_slow_update", false)?,
        slow_update_samples: narrow(reader.integer("slow_update_samples", 1, 20)?),
        slow_update_gate_with_selection: reader.switch("slow_update_gate_with_selection", false)?,
        longitudinal_pair_policy: reader.mode("longitudinal_pair_policy", PairPolicy::Mixed)?,
        use_meta_skill: reader.switch("use_meta_skill", false)?,
        use_skill_aware_reflection: reader.switch("use_skill_aware_reflection", false)?,
        skill_aware_appendix_source: reader
            .mode("skill_aware_appendix_source", AppendixSource::Both)?,
        skill_aware_consolidate_threshold: narrow(reader.integer(
            "skill_aware_consolidate_threshold",
            0,
            0,
        )?),
    })
}

fn evaluation(reader: &mut Reader<'_>) -> Result<EvaluationSection, ConfigError> {
    reader.required("sel_env_num", i64::MIN)?;
    let eval_test = reader.required_switch("eval_test")?;
    if eval_test {
        reader.required("test_env_num", i64::MIN)?;
    }
    Ok(EvaluationSection {
        use_gate: reader.switch("use_gate", true)?,
        gate_metric: reader.mode("gate_metric", GateMetric::Hard)?,
        gate_mixed_weight: reader.number("gate_mixed_weight", 0.0..=1.0, 0.5)?,
        gate_rule: reader.mode("gate_rule", GateRuleName::Strict)?,
        gate_alpha: reader.number("gate_alpha", 0.001..=0.5, 0.1)?,
        gate_reject_level: reader.number("gate_reject_level", 0.001..=0.5, 0.2)?,
        gate_smallest_gain: reader.number("gate_smallest_gain", 0.0..=0.99, 0.1)?,
        gate_max_repeats: u32::try_from(reader.count("gate_max_repeats")?.unwrap_or(6))
            .unwrap_or(u32::MAX),
        gate_full_scores: reader.switch("gate_full_scores", false)?,
        gate_prescreen: reader.switch("gate_prescreen", false)?,
        gate_attribute: reader.switch("gate_attribute", false)?,
        gate_no_regression: reader.switch("gate_no_regression", false)?,
        result_cache: reader.path("result_cache")?,
        coverage_floor: reader.number("coverage_floor", 0.0..=1.0, 0.8)?,
        use_semantic_density: reader.switch("use_semantic_density", false)?,
        semantic_density_weight: reader.number("semantic_density_weight", 0.0..=1.0, 0.05)?,
        leading_words: reader.words("leading_words")?,
        sel_env_num: reader.count("sel_env_num")?,
        test_env_num: reader.count("test_env_num")?,
        eval_test,
    })
}

fn env(reader: &mut Reader<'_>, name: String, loaded: &Loaded) -> Result<EnvSection, ConfigError> {
    let split_ratio = reader.text("split_ratio", "")?;
    if !split_ratio.trim().is_empty() && !is_ratio(&split_ratio) {
        // Unquoted, 2:1:7 is a number to base 60.
        return Err(reader.wrong(
            "split_ratio",
            format!("is {split_ratio}; it must be three whole numbers in quotes, like \"2:1:7\""),
        ));
    }
    let split_mode = reader.mode("split_mode", SplitMode::Ratio)?;
    let split_dir = reader.path("split_dir")?;
    if split_mode == SplitMode::SplitDir && split_dir.is_none() {
        return Err(ConfigError::Missing {
            key: "env.split_dir".to_owned(),
            reason: "with `split_mode: split_dir` it must name the folder with train, val and test"
                .to_owned(),
        });
    }
    let is_own = |key: &str| {
        SETTINGS.iter().all(|setting| setting.flat != key)
            && COMMON_ENV.iter().all(|(common, _)| *common != key)
    };
    let options = loaded
        .flat
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, _)| is_own(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    Ok(EnvSection {
        name,
        skill_init: reader.path("skill_init")?,
        out_root: reader.path("out_root")?,
        split_mode,
        split_ratio: Some(split_ratio).filter(|ratio| !ratio.trim().is_empty()),
        split_seed: reader.optional("split_seed", i64::MIN)?,
        split_dir,
        data_path: reader.path("data_path")?,
        split_output_dir: reader.path("split_output_dir")?,
        limit: reader.count("limit")?,
        workers: reader.optional("workers", 1)?.map(narrow),
        exec_timeout: narrow(reader.integer("exec_timeout", 1, 120)?),
        max_completion_tokens: reader.optional("max_completion_tokens", 1)?.map(narrow),
        options,
    })
}

fn is_ratio(text: &str) -> bool {
    let parts: Vec<_> = text
        .split(':')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect();
    parts.len() == 3
        && parts
            .iter()
            .all(|part| part.parse::<u32>().is_ok_and(|n| n > 0))
}

/// A number whose lower bound was checked; one beyond the type's range stands at its end.
fn narrow<T: TryFrom<i64> + Bounded>(number: i64) -> T {
    T::try_from(number).unwrap_or(T::MOST)
}

/// The largest value of an integer type.
trait Bounded {
    const MOST: Self;
}

impl Bounded for usize {
    const MOST: usize = usize::MAX;
}

impl Bounded for u32 {
    const MOST: u32 = u32::MAX;
}

impl Bounded for u64 {
    const MOST: u64 = u64::MAX;
}

#[cfg(test)]
mod tests;
