//! The holder of a language's driver: calls to it, what it says, what its code prints.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::{Holder, READ_BUFFER, Ready};
use crate::holder::answers::Answer;
use crate::holder::apart::LatePipe;
use crate::holder::driver::{Driver, Running, since_boot_ms};
use crate::holder::tree;
use crate::holder::wire::{CallOrder, Force, News};
use crate::recording::{Call, CallResult, kind};

/// A call that takes longer is told of before it is over.
const QUIET: Duration = Duration::from_millis(5);

impl Holder {
    pub(super) fn turn_driver(&mut self, ready: &Ready) {
        if ready.calls
            && let Some(driver) = &mut self.driver
        {
            driver.send();
            self.end_if_cut_off();
        }
        // a result takes what was printed before it along
        if ready.answers {
            self.hear_driver();
        }
        // what is in the pipes before the driver has switched was not printed by the exec that runs now
        if self.driver.as_ref().is_none_or(|driver| driver.apart.is_switching()) {
            return;
        }
        if ready.stdout {
            self.read_stream(kind::STDOUT, READ_BUFFER);
        }
        if ready.stderr {
            self.read_stream(kind::STDERR, READ_BUFFER);
        }
    }

    /// Records what earlier execs left running and still prints. A pipe whose last writer is gone is closed.
    pub(super) fn read_late(&mut self, most: usize) {
        let Some(driver) = &mut self.driver else { return };
        let is_running = driver.call.is_some();
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut late = std::mem::take(&mut driver.apart.late);
        late.retain(|LatePipe { pipe, kinds }| {
            let mut left = most;
            while left > 0 {
                let room = buffer.len().min(left);
                let Some(free) = buffer.get_mut(..room) else { return true };
                match rustix::io::read(pipe, free) {
                    Ok(0) => return false,
                    Ok(n) => {
                        left -= n;
                        self.record_printed(if is_running { kinds.1 } else { kinds.0 }, buffer.get_mut(..n).unwrap_or_default());
                    }
                    Err(rustix::io::Errno::INTR) => {}
                    Err(_) => return true,
                }
            }
            true
        });
        self.buffer = buffer;
        if let Some(driver) = &mut self.driver {
            driver.apart.late = late;
        }
    }

    /// Looks, when nobody waits for it, whether the exec that has ended left something running.
    pub(super) fn look_for_background(&mut self) {
        let child = self.child;
        let Some(driver) = self.driver.as_mut().filter(|driver| driver.apart.is_look_due) else { return };
        driver.apart.is_look_due = false;
        driver.apart.has_background |= driver.apart.can_switch() && tree::has_children_besides(child);
    }

    fn record_printed(&mut self, stream: u8, bytes: &mut [u8]) {
        if let Some(redactor) = &self.redactor {
            redactor.cover_bytes(bytes);
        }
        if let Some(driver) = &mut self.driver {
            driver.mid_line = bytes.last() != Some(&b'\n');
        }
        self.record(stream, bytes);
    }

    /// For a daemon that has just come: what the driver said of itself before.
    pub(super) fn introduce_driver(&mut self) {
        let Some(driver) = &mut self.driver else { return };
        let news = [
            driver.hello.clone().map(News::Hello),
            driver.baseline.clone().map(News::Baseline),
            driver.state.clone().map(News::State),
            driver.unrecorded_output.take().map(|(exec, bytes)| News::UnrecordedOutput(exec, bytes)),
            driver.unrecorded_result.take().map(|body| News::UnrecordedFrame(kind::RESULT, body)),
        ];
        for news in news.into_iter().flatten() {
            self.say(&news);
        }
    }

    /// Recorded before it is carried out: whatever happens, it is known that it was asked.
    pub(super) fn call(&mut self, call: &CallOrder) {
        let Some(driver) = &mut self.driver else { return };
        if driver.call.is_some() {
            driver.next = Some(call.clone());
            return;
        }
        // printed by background processes of earlier execs, so not part of this one
        let (stdout, stderr) = driver.waiting();
        self.read_stream(kind::STDOUT, stdout);
        self.read_stream(kind::STDERR, stderr);
        self.read_late(READ_BUFFER);
        let Some(driver) = &mut self.driver else { return };
        driver.keep_late_output_apart();
        let at = self.recorder.end();
        let body = Call { id: call.id, mid_line: driver.mid_line, verb: call.verb, code: call.code.as_bytes() }.encode();
        self.record(kind::CALL, &body);
        // most calls are over before anybody needs to know that they have begun
        self.quiet_until = Some(Instant::now() + QUIET);
        if let Some(driver) = &mut self.driver {
            driver.call = Some(Running { id: call.id, at, since: Instant::now(), since_boot_ms: since_boot_ms(), unrecorded: 0 });
            driver.mid_line = false;
            driver.call(call);
        }
        self.end_if_cut_off();
    }

    /// Without the time it stood still.
    pub(super) fn call_ran_ms(&self) -> u64 {
        let Some(call) = self.driver.as_ref().and_then(|driver| driver.call.as_ref()) else { return 0 };
        let until = self.freeze.since().unwrap_or_else(Instant::now);
        until.saturating_duration_since(call.since).as_millis() as u64
    }

    pub(super) fn hear_driver(&mut self) {
        if let Some(driver) = &mut self.driver {
            driver.receive();
        }
        while let Some(answer) = self.driver.as_mut().and_then(Driver::next_answer) {
            match answer {
                Answer::Result(said) => self.call_ended(&said),
                Answer::Hello(said) => {
                    if let Some(pid) = pid_in(&said).filter(|pid| *pid > 1) {
                        self.child = pid;
                    }
                    self.say(&News::Hello(said.clone()));
                    let image = tree::image_of(self.child);
                    if let Some(driver) = &mut self.driver {
                        driver.hello = Some(said);
                        driver.image = image;
                    }
                }
                Answer::State(said) => {
                    let Some(driver) = &mut self.driver else { return };
                    let is_first = driver.baseline.is_none();
                    if is_first { &mut driver.baseline } else { &mut driver.state }.replace(said.clone());
                    self.say(&if is_first { News::Baseline(said) } else { News::State(said) });
                }
                Answer::Names(said) => self.say(&News::Names(said)),
                Answer::Background => {
                    if let Some(driver) = &mut self.driver {
                        driver.apart.has_background = true;
                    }
                }
                Answer::Switched(is_done) => {
                    if let Some(driver) = &mut self.driver {
                        driver.apart.has_background = false;
                        driver.switched(is_done);
                    }
                }
                Answer::Unknown => {}
                Answer::Nonsense => tree::signal(self.child, Signal::KILL),
            }
        }
        self.end_if_cut_off();
    }

    /// Ends an interpreter that can be neither asked nor answer, so that its exec is reported as lost instead of running for ever.
    /// A shell that was replaced by `exec PROGRAM` closes its descriptors too: that program runs on.
    fn end_if_cut_off(&self) {
        let Some(driver) = self.driver.as_ref().filter(|driver| driver.is_cut_off()) else { return };
        if driver.image.is_some() && tree::image_of(self.child) == driver.image {
            tree::signal(self.child, Signal::KILL);
        }
    }

    fn call_ended(&mut self, said: &[u8]) {
        let Some((stdout, stderr)) = self.driver.as_ref().map(Driver::waiting) else { return };
        self.read_stream(kind::STDOUT, stdout);
        self.read_stream(kind::STDERR, stderr);
        let Some(driver) = &mut self.driver else { return };
        let Some(call) = driver.call.take() else { return };
        let took = call.since.elapsed().as_micros() as u64;
        let body = CallResult { id: call.id, mid_line: driver.mid_line, took, said }.encode();
        driver.mid_line = false;
        driver.apart.is_look_due = true;
        let next = driver.next.take();
        if call.unrecorded > 0 {
            driver.unrecorded_output = Some((call.id, call.unrecorded));
            if self.daemon.is_some() {
                self.say(&News::UnrecordedOutput(call.id, call.unrecorded));
            }
        }
        self.record(kind::RESULT, &body);
        if let Some(driver) = self.driver.as_mut().filter(|driver| driver.unrecorded_result.is_none()) {
            driver.unrecorded_output = None;
        }
        if let Some(next) = next {
            self.call(&next);
        }
    }

    /// Records what is there, about `most` bytes of it; a stream that has ended is not looked at again.
    pub(super) fn read_stream(&mut self, stream: u8, most: usize) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut left = most;
        while left > 0 {
            let Some(driver) = &mut self.driver else { break };
            let source = if stream == kind::STDOUT { &mut driver.stdout } else { &mut driver.stderr };
            let Some(pipe) = source.as_ref() else { break };
            let room = buffer.len().min(left);
            let Some(free) = buffer.get_mut(..room) else { break };
            match rustix::io::read(pipe, free) {
                Ok(0) => {
                    *source = None;
                    break;
                }
                Ok(n) => {
                    left -= n;
                    self.record_printed(stream, buffer.get_mut(..n).unwrap_or_default());
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => break,
            }
        }
        self.buffer = buffer;
    }

    pub(super) fn interrupt(&mut self, force: Force) {
        let Some(driver) = &self.driver else { return };
        // a call that has just ended is not to be ended
        let Some(since) = driver.call.as_ref().map(|call| call.since_boot_ms) else { return };
        let started = self.started_since(since);
        match force {
            Force::Interrupt => {
                let group = driver.group;
                let foreground = started.into_iter().filter(|pid| tree::group_of(*pid) == Some(group));
                // the interpreter first: one that finds its child interrupted must know that it was meant too
                for pid in std::iter::once(self.child).chain(foreground) {
                    tree::signal(pid, Signal::INT);
                    // one that has stopped itself hears it when it goes on
                    tree::signal(pid, Signal::CONT);
                }
            }
            Force::KillChildren => started.into_iter().for_each(|pid| tree::signal(pid, Signal::KILL)),
            Force::Kill => started.into_iter().chain([self.child]).for_each(|pid| tree::signal(pid, Signal::KILL)),
        }
    }

    /// What a call has started; what earlier ones left in the background is not meant.
    fn started_since(&self, since_boot_ms: u64) -> Vec<u32> {
        let is_meant = |pid: &u32| *pid != self.child && tree::started_since(*pid, since_boot_ms);
        tree::descendants(std::process::id()).into_iter().filter(is_meant).collect()
    }
}

/// The number after `"pid":`, without understanding the rest.
fn pid_in(said: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(said).ok()?;
    let digits = text.split("\"pid\":").nth(1)?.trim_start();
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits.get(..end)?.parse().ok()
}
