//! Why a run stops before its end. The state on disk is good in every case, and the same command
//! goes on from it.

use std::io;

use crate::model::CallError;

/// Why training stopped.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// The configuration or the data cannot be trained on.
    #[error("{0}")]
    Setup(String),
    /// The budget is used up.
    #[error("{0}")]
    Budget(String),
    /// No attempt of an evaluation could be measured.
    #[error("none of the {attempts} attempts of {dir} could be measured: {message}")]
    NothingMeasured {
        /// The evaluation.
        dir: String,
        /// How many were tried.
        attempts: usize,
        /// What the first failure said.
        message: String,
    },
    /// Too few attempts of the baseline were measured to compare anything with it.
    #[error(
        "only {measured} of {attempts} baseline attempts could be measured, fewer than the \
         coverage floor of {floor:.0}% allows",
        floor = floor * 100.0
    )]
    Coverage {
        /// Measured attempts.
        measured: usize,
        /// All attempts.
        attempts: usize,
        /// The least share, 0 to 1.
        floor: f64,
    },
    /// The optimizer gave no usable reply where the run cannot do without.
    #[error("the optimizer model cannot be used: {0}")]
    Optimizer(CallError),
    /// A prompt template does not render.
    #[error("cannot render the prompt {name}: {source}")]
    Prompt {
        /// The template.
        name: String,
        /// What the renderer said.
        source: minijinja::Error,
    },
    /// An observer could not keep its record.
    #[error("cannot record the run: {0}")]
    Record(#[from] io::Error),
}
