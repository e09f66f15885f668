//! What `train` and `eval` share: their configuration, data and environment.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::context::{Context, config_failure};
use super::failure::{ExitStatus, Failure};
use super::flags::ConfigArgs;
use super::models as cli_models;
use crate::bench::check::{Finding, Kind};
use crate::bench::dataset::{DataError, Dataset, train_size};
use crate::bench::estimate::{Estimate, Sizes};
use crate::bench::layout::Rows;
use crate::bench::ratio::{Cut, RatioSplit};
use crate::bench::searchqa::{self, SearchQa};
use crate::bench::split::SplitRatio;
use crate::config::EngineConfig;
use crate::config::launch::{self, Command, Request};
use crate::config::modes::{AppendixSource, GateRuleName, SplitMode};
use crate::config::night::NightBudget;
use crate::model::{ChatModel, ModelsConfig};
use crate::trainer::confident::ConfidentSettings;
use crate::trainer::environment::Split;
use crate::trainer::gate::GateRule;
use crate::trainer::gate_rule::{DensityBonus, GateProjection};
use crate::trainer::prompt::Prompts;
use crate::trainer::reflect::SkillAware;
use crate::trainer::settings::Settings;
use crate::trainer::statistics::Prices;

/// Most tokens of a reply when the configuration does not say.
const DEFAULT_REPLY_TOKENS: u32 = 16_384;

/// The ratio of a cut when the configuration does not say.
const DEFAULT_RATIO: &str = "2:1:7";

/// A run before it has touched anything: its configuration, its data and where it will be written.
pub(super) struct Plan {
    /// Checked.
    pub(super) config: EngineConfig,
    /// Checked, and of the size that the configuration states.
    pub(super) dataset: Dataset,
    /// What the models are told.
    pub(super) prompts: Arc<Prompts>,
    /// Where the run is written, absolute.
    pub(super) out_root: PathBuf,
    /// What to tell the user.
    pub(super) notices: Vec<String>,
    cut: Option<(Cut, PathBuf)>,
}

/// Reads and checks everything that the command line names. Nothing is written.
pub(super) fn plan(
    context: &Context,
    command: Command,
    args: &ConfigArgs,
) -> Result<Plan, Failure> {
    let path = context.run_config.as_deref().ok_or_else(|| {
        Failure::new(ExitStatus::Situation, "no configuration was given")
            .hint("name one with --config FILE")
    })?;
    let stamp = jiff::Timestamp::now().strftime("%Y%m%d_%H%M%S").to_string();
    let launch = launch::settle(&Request {
        command,
        config: path,
        overrides: &args.overrides(),
        flags: args.flags(),
        out_root: args.out_root.as_deref(),
        stamp: &stamp,
    })
    .map_err(|error| config_failure(&error))?;
    let benchmarks = [(searchqa::NAME, searchqa::OPTIONS)];
    let config =
        EngineConfig::check(&launch.loaded, &benchmarks).map_err(|error| config_failure(&error))?;
    let (dataset, cut) =
        data(&config, &launch.out_root).map_err(|error| Failure::situation(&error))?;
    let mut notices: Vec<String> = launch
        .warnings
        .into_iter()
        .map(|warning| warning.message)
        .collect();
    notices.extend(config.notices.iter().cloned());
    notices.extend(doubts(dataset.findings()));
    let prompts = Prompts::load(config.optimizer.prompts_dir.as_deref(), searchqa::PROMPTS)
        .map_err(|error| Failure::situation(&error))?;
    Ok(Plan {
        config,
        dataset,
        prompts: Arc::new(prompts),
        out_root: launch.out_root,
        notices,
        cut,
    })
}

impl Plan {
    /// Keeps a cut by ratio beside the run, or refuses to go on with another one than the run has.
    pub(super) fn keep_split(&self) -> Result<(), Failure> {
        let Some((cut, dir)) = &self.cut else {
            return Ok(());
        };
        cut.keep(dir).map_err(|error| Failure::situation(&error))
    }
}

/// The benchmark's items, and for a ratio the cut with its folder.
fn data(
    config: &EngineConfig,
    out_root: &Path,
) -> Result<(Dataset, Option<(Cut, PathBuf)>), DataError> {
    let env = &config.env;
    let limit = env.limit.unwrap_or(0);
    let (dataset, cut) = match env.split_mode {
        SplitMode::SplitDir => {
            let dir = env.split_dir.as_deref().unwrap_or(Path::new(""));
            (Dataset::from_split_dir(dir, limit)?, None)
        }
        SplitMode::Ratio => {
            let ratio = env.split_ratio.as_deref().unwrap_or(DEFAULT_RATIO);
            let split = RatioSplit {
                data_path: env.data_path.clone().unwrap_or_default(),
                ratio: SplitRatio::parse(ratio)
                    .map_err(|error| DataError::Splits(error.to_string()))?,
                seed: env.split_seed.unwrap_or(config.train.seed),
            };
            let dir = match &env.split_output_dir {
                Some(dir) => dir.clone(),
                None => split.folder(out_root, &env.name),
            };
            let cut = split.cut()?;
            let rows: Rows = cut.rows.clone();
            (Dataset::new(rows, limit)?, Some((cut, dir)))
        }
    };
    let configured = config
        .train
        .train_size
        .and_then(|size| i64::try_from(size).ok());
    train_size(configured, Some(dataset.split(Split::Train).len()))?;
    Ok((dataset, cut))
}

/// What is doubtful about the data, one sentence a kind.
fn doubts(findings: &[Finding]) -> impl Iterator<Item = String> {
    [
        (
            Kind::OverlappingContent,
            "items that stand in two splits under different ids",
        ),
        (
            Kind::LeakedAnswer,
            "items with their answer in the question",
        ),
    ]
    .into_iter()
    .filter_map(|(kind, what)| {
        let ids: Vec<&str> = findings
            .iter()
            .filter(|f| f.kind == kind)
            .filter_map(|f| f.id.as_deref())
            .collect();
        let shown = ids[..ids.len().min(3)].join(", ");
        (!ids.is_empty()).then(|| {
            format!(
                "{what}: {} ({shown}{}); `data check` lists them",
                ids.len(),
                if ids.len() > 3 { ", …" } else { "" }
            )
        })
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

/// What the run would take.
pub(super) fn estimate(plan: &Plan, settings: &Settings, skill: &str) -> Result<Estimate, Failure> {
    let count = |split| plan.dataset.split(split).len();
    let sizes = Sizes {
        train: count(Split::Train),
        selection: count(Split::Selection),
        test: count(Split::Test),
    };
    let average = SearchQa::average_prompt(plan.dataset.all(), skill, &plan.prompts)
        .map_err(|error| Failure::situation(&error))?;
    Ok(Estimate::of(settings, sizes, average))
}

/// The environment over the plan's items.
pub(super) fn environment(plan: &Plan, target: Arc<dyn ChatModel>) -> Result<SearchQa, Failure> {
    let tokens = plan
        .config
        .env
        .max_completion_tokens
        .unwrap_or(DEFAULT_REPLY_TOKENS);
    SearchQa::new(plan.dataset.clone(), target, tokens, &plan.prompts)
        .map_err(|error| Failure::situation(&error))
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
        document_tokens: config.model.rewrite_max_completion_tokens,
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
        prices: Prices {
            optimizer: config.model.optimizer_price,
            target: config.model.target_price,
        },
    }
}

fn skill_aware(config: &EngineConfig) -> SkillAware {
    match config.optimizer.skill_aware_appendix_source {
        _ if !config.optimizer.use_skill_aware_reflection => SkillAware::Off,
        AppendixSource::Both => SkillAware::Both,
        AppendixSource::FailureOnly => SkillAware::FailureOnly,
    }
}
