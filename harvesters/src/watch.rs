//! Watching logs: which agents wrote something since the last look.
//!
//! A [`Watcher`] says which roots changed; reading them is [`crate::harvest_each`] with those
//! roots and the remembered files, the same as ever. Agents write many times a second while
//! they work, so a batch comes when it has been quiet for a while, or when it has not been
//! quiet for long. Where the system cannot watch a root (Linux has a limit of watches a
//! user), its files are looked through at intervals instead.
//!
//! ```no_run
//! use std::path::Path;
//! use std::time::{Duration, Instant};
//! use skillopt_harvesters::{HarvestOptions, Roots, Timing, Watcher, harvest};
//!
//! let roots = Roots::from_env(Path::new("/home/dev"));
//! let mut watcher = Watcher::start(&roots, Timing::default())?;
//! let mut options = HarvestOptions::default();
//! while let Some(changed) = watcher.next(Instant::now() + Duration::from_secs(3600)) {
//!     let found = harvest(&changed, &options);
//!     options.known.extend(&found.files);
//! }
//! # Ok::<(), skillopt_harvesters::WatchError>(())
//! ```

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use notify::{
    Config, Event, EventKind, PollWatcher, RecommendedWatcher, RecursiveMode, Watcher as _,
};

use crate::session::Agent;
use crate::source::{Roots, registry};

/// When changes become a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long nothing may change before a batch comes.
    pub quiet: Duration,
    /// After how long it comes although something still changes.
    pub longest: Duration,
    /// How often files are looked through where the system cannot watch them.
    pub poll: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Timing {
            quiet: Duration::from_secs(5),
            longest: Duration::from_secs(300),
            poll: Duration::from_secs(60),
        }
    }
}

/// Why logs cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The system gives no watcher at all.
    #[error("cannot watch the logs of agents; run `skillopt-sleep harvest list` to read them now")]
    Unavailable(#[source] notify::Error),
    /// A root can neither be watched nor looked through.
    #[error("cannot watch {path}; check that it can be listed")]
    Root {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: notify::Error,
    },
}

/// A root that changed.
type Changed = (Agent, PathBuf);

/// Watches the roots of agents.
pub struct Watcher {
    events: Receiver<Changed>,
    batch: Batch,
    /// Roots that are looked through at intervals.
    polled: Vec<PathBuf>,
    /// They watch as long as they live.
    _watchers: Vec<Box<dyn notify::Watcher + Send>>,
}

impl Watcher {
    /// Starts to watch all roots that are there. Agents that are not used here have none.
    ///
    /// # Errors
    /// [`WatchError`].
    pub fn start(roots: &Roots, timing: Timing) -> Result<Self, WatchError> {
        Self::start_with(roots, timing, false)
    }

    /// As [`Watcher::start`], looking through all roots at intervals: for file systems that
    /// tell of no changes, such as those of other machines.
    ///
    /// # Errors
    /// [`WatchError`].
    pub fn start_polling(roots: &Roots, timing: Timing) -> Result<Self, WatchError> {
        Self::start_with(roots, timing, true)
    }

    fn start_with(roots: &Roots, timing: Timing, poll: bool) -> Result<Self, WatchError> {
        let (sender, events) = channel();
        let mut watcher = Watcher {
            events,
            batch: Batch::new(timing),
            polled: Vec::new(),
            _watchers: Vec::new(),
        };
        for agent in registry().iter().map(|source| source.info().agent) {
            for root in roots.of(agent).iter().filter(|root| root.exists()) {
                watcher.watch(agent, root, timing, poll, &sender)?;
            }
        }
        Ok(watcher)
    }

    /// The roots that are looked through at intervals because they cannot be watched.
    #[must_use]
    pub fn polled(&self) -> &[PathBuf] {
        &self.polled
    }

    /// Waits for the next batch: the roots in which something changed. None when there is
    /// none before the deadline; what changed until then is in a later batch.
    pub fn next(&mut self, deadline: Instant) -> Option<Roots> {
        loop {
            let now = Instant::now();
            if let Some(changed) = self.batch.take(now) {
                return Some(changed);
            }
            let wake = self.batch.due().map_or(deadline, |due| due.min(deadline));
            if now >= deadline {
                return None;
            }
            match self
                .events
                .recv_timeout(wake.saturating_duration_since(now))
            {
                Ok(changed) => self.batch.note(changed, Instant::now()),
                Err(RecvTimeoutError::Timeout) => {}
                // No root was there to be watched: nothing will ever come.
                Err(RecvTimeoutError::Disconnected) if self.batch.due().is_none() => return None,
                Err(RecvTimeoutError::Disconnected) => {
                    std::thread::park_timeout(wake.saturating_duration_since(now));
                }
            }
        }
    }

    fn watch(
        &mut self,
        agent: Agent,
        root: &Path,
        timing: Timing,
        poll: bool,
        sender: &Sender<Changed>,
    ) -> Result<(), WatchError> {
        let tell = || {
            let changed = (agent, root.to_owned());
            let sender = sender.clone();
            move |event: notify::Result<Event>| {
                // An error may be a lost event: look rather once too often.
                if event.is_ok_and(|event| !writes(event.kind)) {
                    return;
                }
                // The other end is gone when nobody waits any more.
                let _ = sender.send(changed.clone());
            }
        };
        let failed = |source| WatchError::Root {
            path: root.to_owned(),
            source,
        };
        if !poll {
            let mut native = RecommendedWatcher::new(tell(), Config::default())
                .map_err(WatchError::Unavailable)?;
            match native.watch(root, RecursiveMode::Recursive) {
                Ok(()) => {
                    self._watchers.push(Box::new(native));
                    return Ok(());
                }
                Err(error) if is_exhausted(&error) => {
                    tracing::warn!(root = %root.display(), "no watches left; looking through it at intervals");
                }
                Err(error) => return Err(failed(error)),
            }
        }
        let config = Config::default().with_poll_interval(timing.poll);
        let mut polling = PollWatcher::new(tell(), config).map_err(failed)?;
        polling
            .watch(root, RecursiveMode::Recursive)
            .map_err(failed)?;
        self._watchers.push(Box::new(polling));
        self.polled.push(root.to_owned());
        Ok(())
    }
}

/// Whether something was written. Reading logs must not look like news of them.
fn writes(kind: EventKind) -> bool {
    !matches!(kind, EventKind::Access(_))
}

/// Whether the system has no more watches to give.
fn is_exhausted(error: &notify::Error) -> bool {
    const NO_SPACE: i32 = 28;
    const TOO_MANY_FILES: i32 = 24;
    match &error.kind {
        notify::ErrorKind::MaxFilesWatch => true,
        notify::ErrorKind::Io(error) => {
            matches!(error.raw_os_error(), Some(NO_SPACE | TOO_MANY_FILES))
        }
        _ => false,
    }
}

/// Changes that wait to be told.
struct Batch {
    timing: Timing,
    changed: BTreeSet<Changed>,
    /// When the first and the last of them happened.
    span: Option<(Instant, Instant)>,
}

impl Batch {
    fn new(timing: Timing) -> Self {
        Batch {
            timing,
            changed: BTreeSet::new(),
            span: None,
        }
    }

    fn note(&mut self, changed: Changed, now: Instant) {
        self.changed.insert(changed);
        let first = self.span.map_or(now, |(first, _)| first);
        self.span = Some((first, now));
    }

    /// When it is to be told; none while nothing changed.
    fn due(&self) -> Option<Instant> {
        let (first, last) = self.span?;
        Some((last + self.timing.quiet).min(first + self.timing.longest))
    }

    /// The changed roots, when it is time.
    fn take(&mut self, now: Instant) -> Option<Roots> {
        if self.due()? > now {
            return None;
        }
        self.span = None;
        let changed = std::mem::take(&mut self.changed).into_iter();
        Some(changed.fold(Roots::none(), |roots, (agent, root)| {
            roots.with(agent, root)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMING: Timing = Timing {
        quiet: Duration::from_secs(5),
        longest: Duration::from_secs(60),
        poll: Duration::from_secs(60),
    };

    fn changed(name: &str) -> Changed {
        (Agent::Claude, PathBuf::from(name))
    }

    #[test]
    fn a_batch_comes_when_it_has_been_quiet() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut batch = Batch::new(TIMING);
        assert!(batch.due().is_none() && batch.take(at(100)).is_none());
        batch.note(changed("/a"), at(0));
        batch.note(changed("/b"), at(3));
        batch.note(changed("/a"), at(4));
        assert_eq!(batch.due(), Some(at(9)));
        assert!(batch.take(at(8)).is_none());
        let roots = batch.take(at(9)).unwrap();
        assert_eq!(roots.of(Agent::Claude), [Path::new("/a"), Path::new("/b")]);
        assert!(batch.take(at(100)).is_none());
    }

    #[test]
    fn a_batch_comes_although_it_is_never_quiet() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut batch = Batch::new(TIMING);
        for second in 0..60 {
            assert!(batch.take(at(second)).is_none());
            batch.note(changed("/a"), at(second));
        }
        assert!(batch.take(at(60)).is_some());
    }

    /// Waits for a batch after a log was written, for at most half a minute.
    fn sees_a_new_log(
        start: fn(&Roots, Timing) -> Result<Watcher, WatchError>,
    ) -> (Watcher, Roots) {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap();
        let roots = Roots::none()
            .with(Agent::Pi, &root)
            .with(Agent::Codex, root.join("not-there"));
        let timing = Timing {
            quiet: Duration::from_millis(20),
            poll: Duration::from_millis(20),
            ..TIMING
        };
        let mut watcher = start(&roots, timing).unwrap();
        std::fs::create_dir_all(root.join("sessions/p")).unwrap();
        std::fs::write(root.join("sessions/p/2026_s1.jsonl"), "{}\n").unwrap();
        let changed = watcher
            .next(Instant::now() + Duration::from_secs(30))
            .unwrap();
        assert_eq!(changed.of(Agent::Pi), [root]);
        assert!(changed.of(Agent::Codex).is_empty());
        (watcher, changed)
    }

    #[test]
    fn a_new_log_is_seen() {
        let (watcher, _) = sees_a_new_log(Watcher::start);
        assert!(watcher.polled().is_empty());
    }

    #[test]
    fn a_new_log_is_seen_by_looking_through_the_files() {
        let (watcher, changed) = sees_a_new_log(Watcher::start_polling);
        assert_eq!(watcher.polled(), changed.of(Agent::Pi));
    }

    #[test]
    fn without_any_root_nothing_comes() {
        let mut watcher = Watcher::start(&Roots::none(), TIMING).unwrap();
        assert!(watcher.next(Instant::now()).is_none());
        assert!(
            watcher
                .next(Instant::now() + Duration::from_secs(3600))
                .is_none()
        );
    }
}
