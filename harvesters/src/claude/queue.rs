//! Messages that were sent while the agent worked, in releases that log them in no other
//! way: 2.0 and early 2.1 note that a message came into the queue and that it was taken
//! out, and the model was given it in the middle of its turn. Later ones say so in a
//! record of its own (`queued_command`).

use std::collections::VecDeque;

use crate::node::Node;

/// The messages that wait.
#[derive(Default)]
pub(super) struct Queue(VecDeque<String>);

impl Queue {
    /// Takes a `queue-operation` in. The message that the model was given by it, where the
    /// log does not tell what became of the message: what was dequeued follows as a prompt,
    /// and a removal with a reason has its own record or never was given.
    pub(super) fn take(&mut self, record: Node<'_>) -> Option<String> {
        const MOST: usize = 100;
        let text = record.get("content").text();
        match record.get("operation").str()? {
            "enqueue" if self.0.len() < MOST => {
                self.0.push_back(text.unwrap_or_default().to_owned())
            }
            "dequeue" => drop(self.0.pop_front()),
            "popAll" => self.0.clear(),
            "remove" => {
                let place = match text {
                    Some(text) => self.0.iter().position(|waits| waits == text)?,
                    None => 0,
                };
                let message = self.0.remove(place);
                let told = record.get("reason").is_some();
                return message.filter(|message| !told && !message.trim().is_empty());
            }
            _ => {}
        }
        None
    }
}
