//! The clock of file times, which is the kernel's last tick and so a little behind the wall clock.

use jiff::Timestamp;

/// File times are those of the kernel's last tick: up to so much earlier than it was, unless the machine is late for its ticks.
pub fn tick() -> jiff::SignedDuration {
    let tick = rustix::time::clock_getres(FILE_CLOCK);
    jiff::SignedDuration::new(tick.tv_sec, i32::try_from(tick.tv_nsec).unwrap_or_default())
}

/// Whatever is written from now on has a later time than this.
pub fn file_time() -> Timestamp {
    let now = rustix::time::clock_gettime(FILE_CLOCK);
    Timestamp::from_microsecond(now.tv_sec * 1_000_000 + now.tv_nsec / 1000 - 1).unwrap_or_default()
}

#[cfg(target_os = "linux")]
const FILE_CLOCK: rustix::time::ClockId = rustix::time::ClockId::RealtimeCoarse;
#[cfg(not(target_os = "linux"))]
const FILE_CLOCK: rustix::time::ClockId = rustix::time::ClockId::Realtime;
