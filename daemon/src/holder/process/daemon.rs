//! The holder and whoever is the daemon: strangers that knock, the one that says hello, orders from it and news to it.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage};
use shared::runtime::Keeps;

use super::Holder;
use crate::descriptor;
use crate::holder::peer::{Peer, is_same_user};
use crate::holder::wire::{Greeting, News, Order, VERSION};

/// Connections that have not said hello yet; a further one takes the place of the oldest.
const MAX_STRANGERS: usize = 4;

/// Answers to terminal queries that wait for a program that does not read.
const MAX_ANSWERS: usize = 64 << 10;

/// What is queued for a daemon gets this long to go out when everything is over.
const FAREWELL: Duration = Duration::from_secs(1);

impl Holder {
    /// Queues a message for the daemon, if one is listening.
    pub(super) fn say(&mut self, news: &News) {
        if let Some(peer) = &mut self.daemon {
            news.encode(&mut peer.outgoing);
            if peer.send().is_err() {
                self.daemon = None;
            }
        }
    }

    /// Tells the end once the link has room: a busy daemon hears only the latest, which is all it needs.
    pub(super) fn tell_end(&mut self) {
        if let Some(peer) = &mut self.daemon
            && peer.send().is_err()
        {
            self.daemon = None;
        }
        if self.quiet_until.is_some_and(|at| Instant::now() < at) {
            return;
        }
        self.quiet_until = None;
        if self.end_due && self.daemon.as_ref().is_some_and(|peer| peer.outgoing.is_empty()) {
            self.end_due = false;
            self.say(&News::End(self.recorder.end()));
        }
    }

    pub(super) fn greet(&mut self) {
        let greeting = Greeting {
            runtime: self.runtime.clone(),
            pid: std::process::id(),
            child: self.child,
            size: self.size,
            end: self.recorder.end(),
            answered: self.answered,
            suspended: self.recorder.why_suspended(),
            exit: self.exit.filter(|_| !self.is_put_down),
            is_driver: self.driver.is_some(),
            keeps: self.recorder.keeps(),
            call: self.driver.as_ref().and_then(|driver| driver.unsettled(self.recorder.end())),
            can_freeze: true,
            frozen: self.frozen(),
            call_ran_ms: self.call_ran_ms(),
            typed: Some(self.streams.known()),
        };
        let mut bytes = Vec::new();
        News::Greeting(VERSION, Some(greeting)).encode(&mut bytes);
        let handed_over = self.hand_over_terminal(&bytes);
        if let Some(peer) = &mut self.daemon {
            peer.outgoing.extend_from_slice(bytes.get(handed_over..).unwrap_or_default());
        }
        self.introduce_driver();
        self.tell_end();
    }

    /// Sends the greeting with the terminal itself, so that input need not pass through us. Gives how much of it is out;
    /// without that the daemon sends input as messages.
    pub(super) fn hand_over_terminal(&self, bytes: &[u8]) -> usize {
        let (Some(peer), Some(pty)) = (&self.daemon, &self.pty) else { return 0 };
        // what is to be recorded has to pass through us
        if !peer.outgoing.is_empty() || self.recorder.keeps() == Keeps::OutputAndInput {
            return 0;
        }
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let terminal = [pty.master.as_fd()];
        if !control.push(SendAncillaryMessage::ScmRights(&terminal)) {
            return 0;
        }
        rustix::net::sendmsg(&peer.stream, &[io::IoSlice::new(bytes)], &mut control, descriptor::SENDS).unwrap_or(0)
    }

    /// The folder of our socket was taken away, and somebody wants to reach us.
    pub(super) fn listen_again(&mut self, socket: &Path) {
        if let Some(folder) = socket.parent() {
            let _ = crate::files::private_dir(folder);
        }
        // without one we are as we were
        if let Ok(listener) = super::listen(socket) {
            self.listener = listener;
        }
    }

    pub(super) fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            if !is_same_user(stream.as_fd()) {
                continue;
            }
            if let Ok(peer) = Peer::new(stream) {
                if self.strangers.len() >= MAX_STRANGERS {
                    self.strangers.remove(0);
                }
                self.strangers.push(peer);
            }
        }
    }

    /// A stranger becomes the daemon by a proper hello; anything else closes it.
    pub(super) fn hear_strangers(&mut self, ready: &[bool]) {
        let mut waiting = Vec::new();
        for (index, mut peer) in std::mem::take(&mut self.strangers).into_iter().enumerate() {
            if !ready.get(index).copied().unwrap_or(false) {
                waiting.push(peer);
                continue;
            }
            if peer.receive().is_err() {
                continue;
            }
            match peer.next_order() {
                Ok(Some(Order::Hello(_))) => {
                    self.hear_out_daemon();
                    self.daemon = Some(peer);
                    // what is still to be given goes on, but was not sent by this one
                    self.taken = 0u64.wrapping_sub(self.input.len() as u64);
                    self.told_taken = 0;
                    self.greet();
                    self.obey();
                }
                Ok(None) => waiting.push(peer),
                _ => {}
            }
        }
        self.strangers = waiting;
    }

    /// What a daemon that is gone had sent is obeyed before another one's hello: it may have said that it was.
    pub(super) fn hear_out_daemon(&mut self) {
        while let Some(peer) = &mut self.daemon {
            match peer.receive() {
                Ok(true) => self.obey(),
                Ok(false) | Err(_) => return,
            }
        }
    }

    pub(super) fn hear_daemon(&mut self) {
        if let Some(peer) = &mut self.daemon
            && peer.receive().is_err()
        {
            self.daemon = None;
        }
        self.obey();
    }

    pub(super) fn obey(&mut self) {
        loop {
            let order = match self.daemon.as_mut().map(Peer::next_order) {
                Some(Ok(Some(order))) => order,
                Some(Ok(None)) | None => return,
                Some(Err(_)) => {
                    self.daemon = None;
                    return;
                }
            };
            match order {
                Order::Input(bytes) => {
                    self.record_input(&bytes);
                    self.input.extend_from_slice(&bytes);
                }
                Order::Typed(stream, at, bytes) => {
                    let fresh = self.streams.take(stream, at, &bytes);
                    // given before: it counts as taken from this daemon too
                    self.taken = self.taken.wrapping_add((bytes.len() - fresh.len()) as u64);
                    self.record_input(fresh);
                    self.input.extend_from_slice(fresh);
                }
                Order::Resize(size) => self.resize(size),
                Order::Answer(offset, bytes) => {
                    if offset > self.answered {
                        self.answered = offset;
                        if self.input.len() > MAX_ANSWERS {
                            // a program that asks and never reads gets no more
                            continue;
                        }
                        self.input.extend_from_slice(&bytes);
                        // not typed input: it does not count against the daemon's window
                        self.taken = self.taken.wrapping_sub(bytes.len() as u64);
                    }
                }
                Order::Terminate(grace) => self.terminate(Duration::from_millis(u64::from(grace))),
                Order::Call(call) => self.call(&call),
                Order::Interrupt(force) => self.interrupt(force),
                Order::Names => {
                    if let Some(driver) = &mut self.driver {
                        driver.names();
                    }
                }
                Order::Forget => self.forget(),
                Order::Freeze { queues_input } => self.freeze(queues_input),
                Order::Thaw => self.thaw(),
                Order::Queue(bytes) => self.queue(&bytes),
                Order::Hello(_) => self.greet(),
                Order::Start(_) | Order::Unknown => {}
            }
        }
    }

    /// The program is gone: the daemon still gets what is queued, for a moment.
    pub(super) fn say_the_rest(&mut self) {
        self.tell_end();
        let deadline = Instant::now() + FAREWELL;
        while let Some(peer) = &mut self.daemon {
            if peer.send().is_err() || (peer.outgoing.is_empty() && !self.end_due) || Instant::now() >= deadline {
                return;
            }
            let mut fds = [PollFd::new(&peer.stream, PollFlags::OUT)];
            let wait = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
            let _ = poll(&mut fds, Some(&wait));
            self.tell_end();
        }
    }
}
