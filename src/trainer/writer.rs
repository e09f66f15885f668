//! A thread that writes a run's files, so that training never waits for the disk.
//!
//! Files are written in the order in which they were handed over, and after the first that fails
//! none is: what says that a step is done cannot be on the disk without the step's files. The
//! failure is reported with the next file, or at the latest by [`Writer::settle`].

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Files that may wait; beyond this whoever makes them waits too.
const QUEUE: usize = 1024;

type Job = Box<dyn FnOnce() -> io::Result<()> + Send>;

enum Order {
    Write(Job),
    /// Tell when everything before is done.
    Settle(SyncSender<()>),
}

/// The thread.
pub(super) struct Writer {
    orders: Option<SyncSender<Order>>,
    thread: Option<JoinHandle<()>>,
    failure: Arc<Mutex<Option<io::Error>>>,
}

impl Writer {
    /// Starts one.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(super) fn start() -> io::Result<Writer> {
        let (orders, received) = sync_channel(QUEUE);
        let failure = Arc::<Mutex<Option<io::Error>>>::default();
        let told = Arc::clone(&failure);
        let thread = std::thread::Builder::new()
            .name("run files".to_owned())
            .spawn(move || write_all(&received, &told))?;
        Ok(Writer {
            orders: Some(orders),
            thread: Some(thread),
            failure,
        })
    }

    /// Hands a file over.
    ///
    /// # Errors
    /// What an earlier one failed with.
    pub(super) fn write(
        &self,
        job: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        self.check()?;
        self.send(Order::Write(Box::new(job)))
    }

    /// Waits until everything is written.
    ///
    /// # Errors
    /// What a file failed with.
    pub(super) fn settle(&self) -> io::Result<()> {
        let (done, wait) = sync_channel(1);
        self.send(Order::Settle(done))?;
        // An answer that does not come is a thread that is gone, which `check` knows the reason of.
        let answered = wait.recv();
        self.check()?;
        answered.map_err(|_| ended())
    }

    fn send(&self, order: Order) -> io::Result<()> {
        let sent = self
            .orders
            .as_ref()
            .and_then(|orders| orders.send(order).ok());
        sent.ok_or_else(ended)
    }

    /// The failure stays, for an [`io::Error`] cannot be had twice: its kind and text do.
    fn check(&self) -> io::Result<()> {
        match &*self.failure.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(io::Error::new(error.kind(), error.to_string())),
            None => Ok(()),
        }
    }
}

impl Drop for Writer {
    /// What was handed over is written, also when training ends early.
    fn drop(&mut self) {
        drop(self.orders.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported where it happened.
            let _ = thread.join();
        }
    }
}

fn write_all(orders: &Receiver<Order>, failure: &Mutex<Option<io::Error>>) {
    let mut failed = false;
    for order in orders {
        match order {
            Order::Write(job) if !failed => {
                if let Err(error) = job() {
                    failed = true;
                    *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
            }
            Order::Write(_) => {}
            // Nobody waits any more when the receiver is gone.
            Order::Settle(done) => drop(done.send(())),
        }
    }
}

fn ended() -> io::Error {
    io::Error::other("the thread that writes the run's files has ended")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_written_after_a_failure_and_the_failure_is_told() {
        let writer = Writer::start().unwrap();
        let written = Arc::new(Mutex::new(Vec::new()));
        let note = |name: &'static str| {
            let written = Arc::clone(&written);
            move || {
                written.lock().unwrap().push(name);
                Ok(())
            }
        };
        writer.write(note("first")).unwrap();
        writer.settle().unwrap();
        writer.write(|| Err(io::Error::other("disk full"))).unwrap();
        // Whether the failure is known by now is up to the threads; that nothing follows is not.
        let _ = writer.write(note("second"));
        assert!(
            writer
                .settle()
                .unwrap_err()
                .to_string()
                .contains("disk full")
        );
        assert!(writer.write(note("third")).is_err());
        drop(writer);
        assert_eq!(*written.lock().unwrap(), ["first"]);
    }

    #[test]
    fn what_was_handed_over_is_written_before_the_writer_is_gone() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("late");
        let writer = Writer::start().unwrap();
        for number in 0..100 {
            let path = path.clone();
            writer
                .write(move || fs_err::write(path, number.to_string()))
                .unwrap();
        }
        drop(writer);
        assert_eq!(fs_err::read_to_string(path).unwrap(), "99");
    }
}
