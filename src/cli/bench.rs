//! What `train` and `eval` share: their configuration, data and environment.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use miette::Diagnostic as _;

use super::context::{Context, config_failure};
use super::failure::{ExitStatus, Failure};
use super::models as cli_models;
use crate::bench::dataset::Dataset;
use crate::bench::searchqa::{self, SearchQa};
use crate::config::EngineConfig;
use crate::config::modes::{AppendixSource, GateRuleName, SplitMode};
use crate::config::night::NightBudget;
use crate::model::{ChatModel, ModelsConfig};
use crate::trainer::confident::ConfidentSettings;
use crate::trainer::gate::GateRule;
use crate::trainer::gate_rule::{DensityBonus, GateProjection};
use crate::trainer::reflect::SkillAware;
use crate::trainer::settings::Settings;

/// Values on top of the configuration file.
#[derive(Debug, clap::Args)]
pub(super) struct Overrides {
    /// Set one configuration key, such as `train.batch_size=20`; may be given often.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The same in SkillOpt's spelling: several at once.
    #[arg(long = "cfg-options", value_name = "KEY=VALUE", num_args = 1..)]
    cfg_options: Vec<String>,
}

/// Most tokens of a reply when the configuration does not say.
const DEFAULT_REPLY_TOKENS: u32 = 16_384;

/// Reads and checks the run's configuration.
pub(super) fn config(
    context: &Context,
    overrides: &Overrides,
    out_root: Option<&Path>,
) -> Result<EngineConfig, Failure> {
    let path = context.run_config.as_deref().ok_or_else(|| {
        Failure::new(ExitStatus::Situation, "no configuration was given")
            .hint("name one with --config FILE")
    })?;
    let mut all: Vec<String> = overrides
        .cfg_options
        .iter()
        .chain(&overrides.set)
        .cloned()
        .collect();
    if let Some(out_root) = out_root {
        all.push(format!("env.out_root={}", out_root.display()));
    }
    EngineConfig::read(path, &all, &[(searchqa::NAME, searchqa::OPTIONS)]).map_err(|error| {
        let failure = Failure::situation(&error);
        match error.help() {
            Some(help) => failure.hint(help.to_string()),
            None => failure,
        }
    })
}

/// The models that the configuration names, under the limits of `--budget`.
pub(super) fn models(config: &EngineConfig, limits: &[String]) -> Result<ModelsConfig, Failure> {
    let mut budget = NightBudget::none();
    for limits in limits {
        budget
            .apply(limits)
            .map_err(|error| config_failure(&error))?;
    }
    let mut models = config
        .models()
        .map_err(|error| cli_models::failure(&error))?;
    models.budget = budget.limits();
    Ok(models)
}

/// The benchmark's items.
pub(super) fn dataset(config: &EngineConfig) -> Result<Dataset, Failure> {
    let env = &config.env;
    let dir = match (env.split_mode, &env.split_dir) {
        (SplitMode::SplitDir, Some(dir)) => dir,
        (SplitMode::SplitDir, None) => {
            return Err(
                Failure::new(ExitStatus::Situation, "env.split_dir is not set")
                    .hint("name the folder that holds train/, val/ and test/"),
            );
        }
        (SplitMode::Ratio, _) => {
            return Err(Failure::new(
                ExitStatus::Situation,
                "env.split_mode `ratio` is not part of this version",
            )
            .hint("cut the data into train/, val/ and test/ and set env.split_mode=split_dir and env.split_dir"));
        }
    };
    Dataset::from_split_dir(dir, env.limit.unwrap_or(0)).map_err(|error| Failure::situation(&error))
}

/// The environment over `dataset`.
pub(super) fn environment(
    config: &EngineConfig,
    dataset: Dataset,
    target: Arc<dyn ChatModel>,
) -> Result<SearchQa, Failure> {
    let tokens = config
        .env
        .max_completion_tokens
        .unwrap_or(DEFAULT_REPLY_TOKENS);
    SearchQa::new(dataset, target, tokens).map_err(|error| Failure::situation(&error))
}

/// The document to start from: the configured file, or nothing.
pub(super) fn initial_skill(config: &EngineConfig) -> Result<String, Failure> {
    match &config.env.skill_init {
        Some(path) => read_skill(path),
        None => Ok(String::new()),
    }
}

/// A skill file's text with LF line ends.
pub(super) fn read_skill(path: &Path) -> Result<String, Failure> {
    skillopt_files::read_text(path, 16 << 20)
        .map(|text| text.replace("\r\n", "\n").replace('\r', "\n"))
        .map_err(|error| {
            Failure::situation(&error)
                .hint("name the skill file, or leave env.skill_init empty to start from nothing")
        })
}

/// Where the run is written.
pub(super) fn out_root(config: &EngineConfig) -> PathBuf {
    config.env.out_root.clone().unwrap_or_else(|| {
        let now = jiff::Timestamp::now().strftime("%Y%m%d_%H%M%S").to_string();
        let model = config.model.optimizer.replace('/', "-");
        let model = if model.is_empty() {
            "model".to_owned()
        } else {
            model
        };
        PathBuf::from(format!(
            "outputs/skillopt_{}_{model}_{now}",
            config.env.name
        ))
    })
}

/// The trainer's settings.
pub(super) fn settings(config: &EngineConfig) -> Settings {
    let evaluation = &config.evaluation;
    Settings {
        epochs: u32::try_from(config.train.num_epochs).unwrap_or(u32::MAX),
        train_size: config.train.train_size.unwrap_or(0),
        batch_size: config.train.batch_size,
        accumulation: config.train.accumulation,
        seed: config.train.seed,
        minibatch_size: config.gradient.minibatch_size,
        merge_batch_size: config.gradient.merge_batch_size,
        failure_only: config.gradient.failure_only,
        update_mode: config.optimizer.skill_update_mode,
        lr_scheduler: config.optimizer.lr_scheduler,
        edit_budget: config.optimizer.learning_rate,
        min_edit_budget: config.optimizer.min_learning_rate,
        lr_control: config.optimizer.lr_control_mode,
        use_slow_update: config.optimizer.use_slow_update,
        slow_update_samples: config.optimizer.slow_update_samples,
        slow_update_gated: config.optimizer.slow_update_gate_with_selection,
        pair_policy: config.optimizer.longitudinal_pair_policy,
        use_meta_skill: config.optimizer.use_meta_skill,
        skill_aware: skill_aware(config),
        consolidate_threshold: config.optimizer.skill_aware_consolidate_threshold,
        use_gate: evaluation.use_gate,
        gate: GateProjection {
            metric: evaluation.gate_metric,
            mixed_weight: evaluation.gate_mixed_weight,
            density: evaluation.use_semantic_density.then(|| DensityBonus {
                weight: evaluation.semantic_density_weight,
                words: evaluation.leading_words.clone(),
            }),
        },
        gate_rule: match evaluation.gate_rule {
            GateRuleName::Strict => GateRule::Strict {
                full_scores: evaluation.gate_full_scores,
            },
            GateRuleName::Confident => GateRule::Confident(ConfidentSettings {
                alpha: evaluation.gate_alpha,
                reject_level: evaluation.gate_reject_level,
                smallest_gain: evaluation.gate_smallest_gain,
                max_repeats: evaluation.gate_max_repeats.max(1),
                coverage_floor: evaluation.coverage_floor,
            }),
        },
        no_regression: evaluation.gate_no_regression,
        prescreen: evaluation.gate_prescreen,
        attribute: evaluation.gate_attribute,
        coverage_floor: evaluation.coverage_floor,
        selection_items: evaluation.sel_env_num.unwrap_or(0),
        test_items: evaluation.test_env_num.unwrap_or(0),
        eval_test: evaluation.eval_test,
        ..Settings::default()
    }
}

fn skill_aware(config: &EngineConfig) -> SkillAware {
    match config.optimizer.skill_aware_appendix_source {
        _ if !config.optimizer.use_skill_aware_reflection => SkillAware::Off,
        AppendixSource::Both => SkillAware::Both,
        AppendixSource::FailureOnly => SkillAware::FailureOnly,
    }
}
