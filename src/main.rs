//! The `skillopt-sleep` binary: parses arguments, runs the command, prints errors. Nothing else.

use std::process::ExitCode;

use clap::Parser as _;
use skillopt_sleep::cli::{Cli, ExitStatus, Failure};

fn main() -> ExitCode {
    let cli = Cli::parse();
    cli.start_logging();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return report(&Failure::situation(&error)),
    };
    let result = runtime.block_on(async {
        tokio::select! {
            result = cli.run() => result,
            _ = tokio::signal::ctrl_c() => Err(Failure::new(ExitStatus::Interrupted, "interrupted")
                .hint("state is kept: the same command goes on, and no finished call is paid for again")),
        }
    });
    // Calls in flight are dropped, not waited for; what had finished is on disk.
    runtime.shutdown_background();
    match result {
        Ok(status) => ExitCode::from(status as u8),
        Err(failure) => report(&failure),
    }
}

fn report(failure: &Failure) -> ExitCode {
    eprintln!("error: {failure}");
    for cause in failure.causes() {
        eprintln!("  because: {cause}");
    }
    if let Some(hint) = failure.hint_text() {
        eprintln!("  hint: {hint}");
    }
    ExitCode::from(failure.status as u8)
}
