//! Where the log goes: warnings to standard error, and of a night its story to daily files under the
//! state folder, so that a night that nobody watched can be read about.

use std::path::Path;

use tracing_appender::rolling::{Builder, RollingFileAppender, Rotation};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

/// How many daily files are kept.
const DAYS: usize = 30;

/// What is said on standard error as progress is not said there again by the log.
const PROGRESS: &str = "skillopt_sleep::cli::progress=off";

/// Starts logging. `SKILLOPT_SLEEP_LOG` sets the filter of both places; `level` is the one of
/// standard error when it is not set; `folder` is where the daily files go, if they are wanted.
pub(super) fn start(level: &str, folder: Option<&Path>) {
    let filter = |level: &str| {
        EnvFilter::try_from_env("SKILLOPT_SLEEP_LOG").unwrap_or_else(|_| EnvFilter::new(level))
    };
    let console = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .without_time()
        .with_filter(filter(&format!("{level},{PROGRESS}")));
    let file = folder.and_then(daily_files).map(|files| {
        tracing_subscriber::fmt::layer()
            .with_writer(files)
            .with_ansi(false)
            .with_filter(filter("info"))
    });
    tracing_subscriber::registry()
        .with(console)
        .with(file)
        .init();
}

/// A night does not end for want of a log; that it is missing is said once.
fn daily_files(folder: &Path) -> Option<RollingFileAppender> {
    let files = skillopt_files::create_private_dir(folder)
        .map_err(|error| error.to_string())
        .and_then(|()| {
            Builder::new()
                .rotation(Rotation::DAILY)
                .filename_prefix("night")
                .filename_suffix("log")
                .max_log_files(DAYS)
                .build(folder)
                .map_err(|error| error.to_string())
        });
    files
        .map_err(|error| {
            eprintln!(
                "warning: no log is written to {}: {error}",
                folder.display()
            )
        })
        .ok()
}
