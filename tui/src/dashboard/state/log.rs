//! What was said to the user: the latest in the status line, all of it in a log. Pure.

use std::collections::VecDeque;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Said,
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub at: jiff::Timestamp,
    pub text: String,
    pub tone: Tone,
    /// How often in a row.
    pub times: u32,
}

/// Messages that are kept.
const MOST: usize = 500;

/// How long something that is no failure stays in the status line.
const BRIEFLY: Duration = Duration::from_secs(6);

/// Whether the latest is in the status line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Shown {
    #[default]
    No,
    Until(Duration),
    UntilAKey,
}

#[derive(Default)]
pub struct Log {
    pub messages: VecDeque<Message>,
    shown: Shown,
}

impl Log {
    pub fn say(&mut self, text: impl Into<String>, tone: Tone, at: jiff::Timestamp, now: Duration) {
        let text = text.into();
        self.shown = if tone == Tone::Said { Shown::Until(now + BRIEFLY) } else { Shown::UntilAKey };
        if let Some(last) = self.messages.back_mut()
            && last.text == text
            && last.tone == tone
        {
            last.times += 1;
            last.at = at;
            return;
        }
        if self.messages.len() == MOST {
            self.messages.pop_front();
        }
        self.messages.push_back(Message { at, text, tone, times: 1 });
    }

    /// What the status line says.
    pub fn current(&self) -> Option<&Message> {
        if self.shown == Shown::No { None } else { self.messages.back() }
    }

    pub fn dismiss(&mut self) -> bool {
        std::mem::take(&mut self.shown) != Shown::No
    }

    pub fn next_deadline(&self) -> Option<Duration> {
        match self.shown {
            Shown::Until(at) => Some(at),
            Shown::No | Shown::UntilAKey => None,
        }
    }

    /// `true` if something has gone from the status line.
    pub fn passed(&mut self, now: Duration) -> bool {
        let is_over = self.next_deadline().is_some_and(|until| now >= until);
        if is_over {
            self.shown = Shown::No;
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_stay_until_a_key_and_all_is_kept() {
        let mut log = Log::default();
        let at = jiff::Timestamp::UNIX_EPOCH;
        log.say("renamed", Tone::Said, at, Duration::ZERO);
        assert!(log.passed(Duration::from_secs(7)));
        assert_eq!(log.current(), None);
        log.say("refused", Tone::Failed, at, Duration::ZERO);
        log.say("refused", Tone::Failed, at, Duration::ZERO);
        assert!(!log.passed(Duration::from_secs(700)));
        assert_eq!(log.current().map(|message| message.times), Some(2));
        assert!(log.dismiss());
        assert_eq!(log.messages.len(), 2);
        for n in 0..1000 {
            log.say(format!("{n}"), Tone::Said, at, Duration::ZERO);
        }
        assert_eq!(log.messages.len(), MOST);
    }
}
