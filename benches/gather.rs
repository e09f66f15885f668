//! How fast the logs of a machine get into the database. See docs/performance.md, "Reading logs".
//!
//! `SKILLOPT_CORPUS` names a folder with `.claude` and `.codex` below it (or `claude` and
//! `codex`); nothing is generated here. Each of `SKILLOPT_ROUNDS` rounds (three unless set)
//! stores into a new database; the median and the best are shown, and the processor time, beside the same
//! with no database, and the bytes alone.

#![expect(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a benchmark that cannot prepare its input fails; its figures are rounded"
)]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use skillopt_harvesters::{Agent, ProjectScope, Redactor, Roots};
use skillopt_sleep::night::gather::Gatherer;
use skillopt_sleep::store::Store;

/// The program's own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let Some(corpus) = std::env::var_os("SKILLOPT_CORPUS").map(PathBuf::from) else {
        // `cargo test` and `cargo bench` run this without a corpus as well.
        println!("SKILLOPT_CORPUS is not set: nothing is measured");
        return;
    };
    let rounds = std::env::var("SKILLOPT_ROUNDS")
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(3);
    let mut roots = Roots::none();
    let mut bytes = 0;
    for (name, agent) in [("claude", Agent::Claude), ("codex", Agent::Codex)] {
        for folder in [format!(".{name}"), name.to_owned()] {
            let root = corpus.join(folder);
            if root.is_dir() {
                bytes += bytes_below(&root, &|_| ());
                roots = roots.with(agent, &root);
            }
        }
    }
    // Newest sessions as a night with its defaults keeps them.
    let gatherer = Gatherer {
        roots,
        sources: Vec::new(),
        projects: ProjectScope::All,
        since: None,
        max_sessions: 200,
        program_markers: Vec::new(),
        redactor: Redactor::new(),
    };
    println!("{:.1} MB of logs", bytes as f64 / 1e6);
    measure("stored", bytes, rounds, || {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("skillopt-sleep.db");
        let store = Store::open(&file).unwrap();
        let start = Instant::now();
        let gathered = gatherer.gather(&store).unwrap();
        let time = start.elapsed();
        drop(store);
        (
            time,
            format!(
                "{} sessions, {:.1} MB of database",
                gathered.report.sessions,
                file.metadata().unwrap().len() as f64 / 1e6
            ),
        )
    });
    println!("  peak memory so far: {}", peak_memory());
    measure("read only", bytes, rounds, || {
        let start = Instant::now();
        let gathered = gatherer.read();
        (
            start.elapsed(),
            format!("{} sessions", gathered.report.sessions),
        )
    });
    measure("bytes alone", bytes, rounds, || {
        let start = Instant::now();
        for folder in ["claude", "codex", ".claude", ".codex"] {
            let root = corpus.join(folder);
            if root.is_dir() {
                bytes_below(&root, &|path| {
                    std::hint::black_box(fs_err::read(path).unwrap());
                });
            }
        }
        (start.elapsed(), String::new())
    });
}

/// Prints the median and the best time of some rounds, and the median of the processor time.
fn measure(what: &str, bytes: u64, rounds: usize, mut run: impl FnMut() -> (Duration, String)) {
    let mut busy = Vec::new();
    let mut found: Vec<(Duration, String)> = (0..rounds.max(1))
        .map(|_| {
            let before = processor_time();
            let outcome = run();
            busy.push(processor_time() - before);
            outcome
        })
        .collect();
    found.sort();
    busy.sort();
    let (best, account) = &found[0];
    let figure = |name: &str, time: &Duration| {
        let rate = bytes as f64 / 1e6 / time.as_secs_f64();
        format!(
            "{name} {:>7.1} ms {rate:>7.1} MB/s",
            time.as_secs_f64() * 1e3
        )
    };
    println!(
        "  {what:<12} {}   {}   {}   {account}",
        figure("median", &found[found.len() / 2].0),
        figure("best", best),
        figure("processor", &busy[busy.len() / 2]),
    );
}

/// What this process had of all processors so far, to the hundredth of a second; nothing where the
/// system does not tell it so.
fn processor_time() -> Duration {
    const TICK: Duration = Duration::from_millis(10);
    let stat = fs_err::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name in brackets, the 12th and 13th fields: user and system.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks: u32 = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<u32>().ok())
        .sum();
    TICK * ticks
}

/// The size of all files below a folder, each shown to `each`.
fn bytes_below(folder: &Path, each: &dyn Fn(&Path)) -> u64 {
    let entries = fs_err::read_dir(folder).unwrap();
    entries
        .map(|entry| {
            let path = entry.unwrap().path();
            if path.is_dir() {
                bytes_below(&path, each)
            } else {
                each(&path);
                path.metadata().unwrap().len()
            }
        })
        .sum()
}

/// The most memory that this process ever had, as the system tells it.
fn peak_memory() -> String {
    fs_err::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
            Some(line.trim_start_matches("VmHWM:").trim().to_owned())
        })
        .unwrap_or_else(|| "unknown".to_owned())
}
