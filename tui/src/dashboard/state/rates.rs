//! How busy sessions are: what is drawn as a small curve, processor and memory. Made from one pulse to the next. Pure.

use std::collections::HashMap;
use std::time::Duration;

use shared::id::SessionId;
use shared::live::Pulse;

/// One bar of the curve.
const SLOT: Duration = Duration::from_secs(2);

/// Bars that are kept.
pub const BARS: usize = 12;

#[derive(Clone, Debug, Default)]
pub struct Rate {
    /// Bytes printed in each slot of time, the newest last.
    bars: Vec<(u64, u64)>,
    output: Option<u64>,
    cpu_ms: Option<(Duration, u64)>,
    /// Percent of one core.
    pub cpu: Option<f64>,
    pub memory: Option<u64>,
    pub processes: Option<u32>,
    pub foreground: Option<String>,
    pub title: Option<String>,
}

#[derive(Default)]
pub struct Rates {
    by_session: HashMap<SessionId, Rate>,
}

impl Rates {
    pub fn get(&self, id: SessionId) -> Option<&Rate> {
        self.by_session.get(&id)
    }

    /// Takes what the daemon says at a time; `true` if it has printed something since.
    pub fn take(&mut self, pulse: Pulse, now: Duration) -> bool {
        let rate = self.by_session.entry(pulse.session).or_default();
        let grown = match rate.output {
            // a restarted program has a recording of its own
            Some(before) => pulse.output.saturating_sub(before),
            None => 0,
        };
        rate.output = Some(pulse.output);
        if grown > 0 {
            let slot = slot_of(now);
            match rate.bars.last_mut() {
                Some((last, bytes)) if *last == slot => *bytes += grown,
                _ => rate.bars.push((slot, grown)),
            }
            let oldest = slot.saturating_sub(BARS as u64);
            rate.bars.retain(|(slot, _)| *slot > oldest);
        }
        rate.cpu = match (rate.cpu_ms, pulse.cpu_ms) {
            (Some((at, before)), Some(ms)) if now > at => {
                // what has ended takes its time with it
                let used = ms.saturating_sub(before) as f64;
                Some(used / (now.saturating_sub(at).as_secs_f64() * 10.0))
            }
            (_, Some(_)) => rate.cpu,
            (_, None) => None,
        };
        rate.cpu_ms = pulse.cpu_ms.map(|ms| (now, ms));
        rate.memory = pulse.memory;
        rate.processes = pulse.processes;
        rate.foreground = pulse.foreground;
        rate.title = pulse.title;
        grown > 0
    }

    /// Forgets those that are not there any more.
    pub fn keep(&mut self, is_there: impl Fn(SessionId) -> bool) {
        self.by_session.retain(|id, _| is_there(*id));
    }
}

fn slot_of(now: Duration) -> u64 {
    now.as_millis() as u64 / SLOT.as_millis() as u64
}

impl Rate {
    /// The curve, oldest first: 0 is nothing, 8 is a lot. A line typed is seen, a flood does not hide it.
    pub fn curve(&self, now: Duration, bars: usize) -> Vec<u8> {
        // the slot that is under way would flicker
        let Some(newest) = slot_of(now).checked_sub(1) else { return vec![0; bars] };
        (0..bars as u64)
            .rev()
            .map(|back| {
                let slot = newest.checked_sub(back);
                let bytes = self.bars.iter().find(|(at, _)| Some(*at) == slot).map_or(0, |(_, bytes)| *bytes);
                // each step is four times as much: 1 byte … 64 KiB in two seconds
                if bytes == 0 { 0 } else { (bytes.ilog2() / 2 + 1).min(8) as u8 }
            })
            .collect()
    }

    /// Until when the curve moves by itself.
    pub fn moves_until(&self) -> Option<Duration> {
        let (slot, _) = self.bars.last()?;
        Some(SLOT * (*slot as u32 + BARS as u32 + 1))
    }
}

/// When the curves move next.
pub fn next_slot(now: Duration) -> Duration {
    SLOT * (slot_of(now) as u32 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pulse(session: SessionId, output: u64, cpu_ms: u64) -> Pulse {
        Pulse { session, output, cpu_ms: Some(cpu_ms), memory: None, processes: None, foreground: None, title: None, unreachable: None }
    }

    #[test]
    fn curves_show_what_was_printed_when() {
        let id = SessionId::new();
        let mut rates = Rates::default();
        let at = Duration::from_secs;
        assert!(!rates.take(pulse(id, 500, 0), at(0)), "what was there before is no news");
        assert!(rates.take(pulse(id, 501, 1000), at(2)));
        assert!(rates.take(pulse(id, 100_000, 3000), at(6)));
        let rate = rates.get(id).expect("is there");
        assert_eq!(rate.curve(at(9), 4), [0, 1, 0, 8]);
        assert_eq!(rate.cpu, Some(50.0));
        assert_eq!(rate.curve(at(60), 4), [0, 0, 0, 0]);
        assert!(rate.moves_until().is_some_and(|until| until > at(7) && until < at(60)));
        rates.keep(|_| false);
        assert!(rates.get(id).is_none());
    }
}
