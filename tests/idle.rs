//! Idle costs nothing: no ticking, no polling, little memory.

use std::time::Duration;

use crate::support::{Root, process, wait_until};

const SESSIONS: usize = 30;

/// What all processes of ours have used so far: CPU ticks and wake-ups.
fn used(pids: &[u32]) -> (u64, u64) {
    let cpu = pids.iter().filter_map(|pid| process::stat(*pid)).map(|stat| stat.cpu).sum();
    (cpu, pids.iter().map(|pid| process::wake_ups(*pid)).sum())
}

#[test]
fn promise_14_idle_sessions_cost_nothing_and_little_memory() {
    let root = Root::new();
    for number in 0..SESSIONS {
        root.start(&format!("s{number}"), &["sleep", "1000"]);
    }
    let holders = root.holders();
    assert_eq!(holders.len(), SESSIONS);
    let mut pids = holders.clone();
    pids.push(root.daemon_pid());
    // whatever still settles after the start has an end; from then on nothing may happen at all
    wait_until("two seconds in which nothing happens", || {
        let before = used(&pids);
        std::thread::sleep(Duration::from_secs(2));
        used(&pids) == before
    });
    for pid in holders {
        let private = process::private_kib(pid);
        assert!(private > 0 && private < 1024, "holder {pid} has {private} KiB of its own");
    }
}
