//! The `skillopt-sleep` binary: parses arguments, runs the command, prints errors. Nothing else.

use std::process::ExitCode;

use clap::Parser as _;
use skillopt_sleep::cli::{Cli, ExitStatus, Failure};

/// Sessions are built on one thread and let go of on another, which the system's allocator
/// pays for with a lock: docs/performance.md.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
    // On a thread of the runtime, so that a command that computes for long does not keep Ctrl-C
    // waiting. What had finished is on disk, and every write there is whole or not at all.
    runtime.spawn(async {
        if tokio::signal::ctrl_c().await.is_ok() {
            let failure = Failure::new(ExitStatus::Interrupted, "interrupted").hint(
                "state is kept: the same command goes on, and no finished call is paid for again",
            );
            report(&failure);
            std::process::exit(failure.status as i32);
        }
    });
    let result = runtime.block_on(cli.run());
    // Calls in flight are dropped, not waited for.
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
