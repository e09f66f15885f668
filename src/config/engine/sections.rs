//! The sections of a training run's configuration, checked.

use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::config::modes::{
    AppendixSource, GateMetric, GateRuleName, LrControl, LrScheduler, PairPolicy, SplitMode,
    UpdateMode,
};
use crate::model::budget::Price;

/// Which models to use.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSection {
    /// The backend label for both roles; blank: decided by the environment.
    pub backend: String,
    /// The optimizer's backend, where it is not the label's.
    pub optimizer_backend: String,
    /// The target's backend, where it is not the label's.
    pub target_backend: String,
    /// The optimizer's model; blank: the backend's default.
    pub optimizer: String,
    /// The target's model; blank: the backend's default.
    pub target: String,
    /// How hard models that can should think; blank: their default.
    pub reasoning_effort: String,
    /// The same for rewrites of the whole document. Absent from a file it is `high`.
    pub rewrite_reasoning_effort: String,
    /// Most tokens of a reply that rewrites the whole document.
    pub rewrite_max_completion_tokens: u32,
    /// US dollars per million tokens that the optimizer gets and gives; none: not known.
    pub optimizer_price: Option<Price>,
    /// The same of the target.
    pub target_price: Option<Price>,
}

/// How long to train.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainSection {
    /// Passes over the train split; at least 1.
    pub num_epochs: usize,
    /// Items of an epoch; none: all of the split.
    pub train_size: Option<usize>,
    /// Items of a batch; at least 1.
    pub batch_size: usize,
    /// Batches of a step; at least 1.
    pub accumulation: usize,
    /// Seeds every shuffle.
    pub seed: i64,
}

/// How rollouts become patches.
#[derive(Debug, Clone, PartialEq)]
pub struct GradientSection {
    /// Rollouts that one reflection sees; at least 1.
    pub minibatch_size: usize,
    /// Patches that one merge call sees; at least 2, because a merge of one would never end.
    pub merge_batch_size: usize,
    /// Reflections and merges at once; at least 1.
    pub analyst_workers: usize,
    /// Reflect on failures only.
    pub failure_only: bool,
}

/// How patches change the document.
#[derive(Debug, Clone, PartialEq)]
pub struct OptimizerSection {
    /// Most edits of a step at the start of the schedule; 0 means none.
    pub learning_rate: usize,
    /// Most edits of a step at its end; not above the former.
    pub min_learning_rate: usize,
    /// How the number runs over the steps.
    pub lr_scheduler: LrScheduler,
    /// Who decides on it.
    pub lr_control_mode: LrControl,
    /// What an optimizer's reply changes.
    pub skill_update_mode: UpdateMode,
    /// The folder with prompts that replace the built-in ones.
    pub prompts_dir: Option<PathBuf>,
    /// Rewrite the slow-update region at each epoch's end.
    pub use_slow_update: bool,
    /// Items that the slow update compares.
    pub slow_update_samples: usize,
    /// Gate the slow update on the selection split.
    pub slow_update_gate_with_selection: bool,
    /// Which items it compares.
    pub longitudinal_pair_policy: PairPolicy,
    /// Keep a memory of how to reflect.
    pub use_meta_skill: bool,
    /// Keep an appendix of notes about the document.
    pub use_skill_aware_reflection: bool,
    /// Whose notes go into it.
    pub skill_aware_appendix_source: AppendixSource,
    /// Notes from which on the appendix is consolidated; 0: never.
    pub skill_aware_consolidate_threshold: usize,
}

/// How candidates are judged.
#[derive(Debug, Clone, PartialEq)]
pub struct EvaluationSection {
    /// Keep only candidates that score better on the selection split.
    pub use_gate: bool,
    /// Which score counts.
    pub gate_metric: GateMetric,
    /// The weight of the soft score in a mixed one, from 0 to 1.
    pub gate_mixed_weight: f64,
    /// How the gate decides.
    pub gate_rule: GateRuleName,
    /// Of the confident rule: the most that a useless candidate may be accepted, 0 to 0.5.
    pub gate_alpha: f64,
    /// Of the confident rule: the most that a candidate worth having may be rejected, 0 to 0.5.
    pub gate_reject_level: f64,
    /// Of the confident rule: the least gain that matters, as a share of the scale.
    pub gate_smallest_gain: f64,
    /// Of the confident rule: the most scorings of an item on average.
    pub gate_max_repeats: u32,
    /// Of the strict rule: score every item even when the decision has fallen.
    pub gate_full_scores: bool,
    /// Score a candidate on its own batch first.
    pub gate_prescreen: bool,
    /// Find out what each accepted edit contributes, and drop those that contribute nothing.
    pub gate_attribute: bool,
    /// Reject a candidate that does worse on any item.
    pub gate_no_regression: bool,
    /// The file in which runs share the target's replies; none: each run makes its own.
    pub result_cache: Option<PathBuf>,
    /// Least measured share of the items for a decision.
    pub coverage_floor: f64,
    /// Let the score favour dense documents.
    pub use_semantic_density: bool,
    /// How much.
    pub semantic_density_weight: f64,
    /// The words that make a document dense; none: the built-in list.
    pub leading_words: Option<Vec<String>>,
    /// Items of the selection split that are scored; none: all.
    pub sel_env_num: Option<usize>,
    /// Items of the test split that are scored; none: all.
    pub test_env_num: Option<usize>,
    /// Score the best document on the test split at the end.
    pub eval_test: bool,
}

/// What to train on; what every benchmark has.
#[derive(Debug, Clone, PartialEq)]
pub struct EnvSection {
    /// The benchmark.
    pub name: String,
    /// The document to start from; none: an empty one.
    pub skill_init: Option<PathBuf>,
    /// Where the run is written; none: a new folder.
    pub out_root: Option<PathBuf>,
    /// Where splits come from.
    pub split_mode: SplitMode,
    /// Parts of train, validation and test, such as `2:1:7`; none: the benchmark's.
    pub split_ratio: Option<String>,
    /// Seeds the cut; none: [`TrainSection::seed`].
    pub split_seed: Option<i64>,
    /// The folder with `train`, `val` and `test`.
    pub split_dir: Option<PathBuf>,
    /// The file that is cut.
    pub data_path: Option<PathBuf>,
    /// Where the cut is written; none: within the run.
    pub split_output_dir: Option<PathBuf>,
    /// Items of each split that are used; none: all.
    pub limit: Option<usize>,
    /// Attempts at once; none: the benchmark's.
    pub workers: Option<usize>,
    /// Seconds that one item's code or agent may take.
    pub exec_timeout: u64,
    /// Most tokens of one reply; none: the benchmark's.
    pub max_completion_tokens: Option<u32>,
    /// The benchmark's own keys, as given.
    pub options: Map<String, Value>,
}
