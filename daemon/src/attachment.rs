//! What goes out to one client: a queue that a slow client cannot make grow without end.
//! Lines are never dropped; terminal output may be, because a fresh screen can always take its place.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

/// Taken for one write at a time, so that what is behind it can still be skipped.
const WRITE_BYTES: usize = 64 << 10;

enum Item {
    Line(Vec<u8>),
    Output(Vec<u8>),
}

#[derive(Default)]
struct Queue {
    items: VecDeque<Item>,
    output_bytes: usize,
    writing: bool,
    closed: bool,
    /// Told when everything has been written.
    watcher: Option<Arc<Notify>>,
}

#[derive(Default)]
pub struct Outbox {
    queue: Mutex<Queue>,
    filled: Notify,
    closing: Notify,
    /// Told each time the queue runs empty.
    emptied: Notify,
}

impl Outbox {
    fn queue(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn line(&self, value: &impl serde::Serialize) {
        let Ok(mut bytes) = serde_json::to_vec(value) else { return };
        bytes.push(b'\n');
        self.queue().items.push_back(Item::Line(bytes));
        self.filled.notify_one();
    }

    pub fn output(&self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let mut queue = self.queue();
        queue.output_bytes += bytes.len();
        if let Some(Item::Output(last)) = queue.items.back_mut()
            && last.len() + bytes.len() <= WRITE_BYTES
        {
            last.extend_from_slice(bytes);
        } else {
            for part in bytes.chunks(WRITE_BYTES) {
                queue.items.push_back(Item::Output(part.to_vec()));
            }
        }
        drop(queue);
        self.filled.notify_one();
    }

    /// Output that is waiting to be written.
    pub fn backlog(&self) -> usize {
        self.queue().output_bytes
    }

    /// Forgets output that has not gone out yet.
    pub fn skip_output(&self) {
        let mut queue = self.queue();
        queue.items.retain(|item| matches!(item, Item::Line(_)));
        queue.output_bytes = 0;
    }

    pub fn is_drained(&self) -> bool {
        let queue = self.queue();
        queue.items.is_empty() && !queue.writing
    }

    /// From now on `watcher` is told each time the queue runs empty.
    pub fn watch(&self, watcher: Arc<Notify>) {
        self.queue().watcher = Some(watcher);
    }

    /// Nothing more will come: the writer ends once all is out.
    pub fn close(&self) {
        self.queue().closed = true;
        self.filled.notify_one();
        self.closing.notify_waiters();
    }

    /// Returns when nothing more can be told to this client.
    pub async fn closed(&self) {
        let closing = self.closing.notified();
        tokio::pin!(closing);
        // registered before looking, so that a close in between is not missed
        closing.as_mut().enable();
        if !self.queue().closed {
            closing.await;
        }
    }

    /// Returns when all that was queued has been taken by the other side; `false` when nothing more can be told to it. For those
    /// who have more to say than should wait in memory.
    pub async fn drained(&self) -> bool {
        loop {
            let emptied = self.emptied.notified();
            tokio::pin!(emptied);
            // registered before looking, so that nothing in between is missed
            emptied.as_mut().enable();
            {
                let queue = self.queue();
                if queue.closed {
                    return false;
                }
                if queue.items.is_empty() && !queue.writing {
                    return true;
                }
            }
            tokio::select! {
                () = emptied => {}
                () = self.closed() => return false,
            }
        }
    }

    /// Returns when the write that is under way is done, or after a moment if the other side does not take it.
    pub async fn written(&self) {
        let deadline = tokio::time::Instant::now() + std::time::Duration::from_millis(500);
        while self.queue().writing && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }

    /// What to write next; `None` when closed and empty.
    pub async fn next(&self) -> Option<Outgoing> {
        loop {
            {
                let mut queue = self.queue();
                queue.writing = false;
                if let Some(outgoing) = Self::take(&mut queue) {
                    queue.writing = true;
                    return Some(outgoing);
                }
                self.emptied.notify_waiters();
                if let Some(watcher) = &queue.watcher {
                    watcher.notify_one();
                }
                if queue.closed {
                    return None;
                }
            }
            self.filled.notified().await;
        }
    }

    fn take(queue: &mut Queue) -> Option<Outgoing> {
        match queue.items.pop_front()? {
            Item::Output(output) => {
                queue.output_bytes -= output.len();
                Some(Outgoing::Output(output))
            }
            Item::Line(mut lines) => {
                while let Some(Item::Line(line)) = queue.items.front()
                    && lines.len() < WRITE_BYTES
                {
                    lines.extend_from_slice(line);
                    queue.items.pop_front();
                }
                Some(Outgoing::Lines(lines))
            }
        }
    }
}

/// What goes out in one write.
#[derive(Debug, PartialEq, Eq)]
pub enum Outgoing {
    Lines(Vec<u8>),
    Output(Vec<u8>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipping_drops_output_but_no_line() {
        let outbox = Outbox::default();
        outbox.output(b"old");
        outbox.line(&"kept");
        outbox.output(&vec![b'x'; 200_000]);
        assert_eq!(outbox.backlog(), 200_003);
        outbox.skip_output();
        assert_eq!(outbox.backlog(), 0);
        outbox.output(b"new");
        let mut queue = outbox.queue();
        assert_eq!(Outbox::take(&mut queue), Some(Outgoing::Lines(b"\"kept\"\n".to_vec())));
        assert_eq!(Outbox::take(&mut queue), Some(Outgoing::Output(b"new".to_vec())));
        assert_eq!(Outbox::take(&mut queue), None);
    }
}
