//! Output of earlier execs, kept apart from that of the exec that runs. What an exec left running (a background process, a
//! timer, a thread) still prints into the pipes it knew; so the next exec gets new ones, and what comes out of the old ones while
//! it runs is not its own. Without anything left running nothing is switched: that costs time.

use std::os::fd::{AsRawFd, OwnedFd};

use crate::descriptor;
use crate::recording::kind;

/// Old pipes that are still read. Beyond that, late output counts to the exec during which it is printed.
const MAX_LATE: usize = 32;

/// A pipe that no exec prints into any more.
pub struct LatePipe {
    pub pipe: OwnedFd,
    /// As it is recorded between two execs, and while one runs.
    pub kinds: (u8, u8),
}

/// New pipes: for stdout and stderr, our ends and theirs. Theirs stay open here, because a driver may open and close them with
/// every exec.
struct Pipes {
    ours: (OwnedFd, OwnedFd),
    theirs: [OwnedFd; 2],
}

#[derive(Default)]
pub struct Apart {
    can_switch: bool,
    /// Something of earlier execs may still print.
    pub has_background: bool,
    /// An exec has ended: whether it left something running has not been looked at yet.
    pub is_look_due: bool,
    switching: Option<Pipes>,
    present: Option<[OwnedFd; 2]>,
    pub late: Vec<LatePipe>,
}

impl Apart {
    pub fn new(can_switch: bool) -> Self {
        Self { can_switch: can_switch && cfg!(target_os = "linux"), ..Self::default() }
    }

    pub fn can_switch(&self) -> bool {
        self.can_switch
    }

    /// The driver has been told to switch and has not answered: until then nobody knows whose output is in the present pipes.
    pub fn is_switching(&self) -> bool {
        self.switching.is_some()
    }

    /// Makes new pipes. Gives the paths by which the driver opens them, separated by a space.
    pub fn begin_switch(&mut self) -> Option<String> {
        if !self.can_switch || !self.has_background || self.is_switching() || self.late.len() >= MAX_LATE {
            return None;
        }
        let pipe = || -> std::io::Result<(OwnedFd, OwnedFd)> {
            let (ours, theirs) = descriptor::pipe()?;
            rustix::io::ioctl_fionbio(&ours, true)?;
            Ok((ours, theirs))
        };
        let ((stdout, stdout_end), (stderr, stderr_end)) = (pipe().ok()?, pipe().ok()?);
        let place = |end: &OwnedFd| format!("/proc/{}/fd/{}", std::process::id(), end.as_raw_fd());
        let places = format!("{} {}", place(&stdout_end), place(&stderr_end));
        self.switching = Some(Pipes { ours: (stdout, stderr), theirs: [stdout_end, stderr_end] });
        Some(places)
    }

    /// Gives the new pipes if the driver prints into them now. A driver that cannot open them is not asked again.
    pub fn end_switch(&mut self, is_done: bool) -> Option<(OwnedFd, OwnedFd)> {
        let Pipes { ours, theirs } = self.switching.take()?;
        self.can_switch = is_done;
        if !is_done {
            return None;
        }
        self.present = Some(theirs);
        Some(ours)
    }

    /// Pipes of stdout and stderr that are not the present ones any more.
    pub fn keep_late(&mut self, [stdout, stderr]: [Option<OwnedFd>; 2]) {
        for (pipe, kinds) in [(stdout, (kind::STDOUT, kind::LATE_STDOUT)), (stderr, (kind::STDERR, kind::LATE_STDERR))] {
            self.late.extend(pipe.map(|pipe| LatePipe { pipe, kinds }));
        }
    }

    /// The interpreter has ended: without our own copies, the end of its output can be seen.
    pub fn close(&mut self) {
        self.switching = None;
        self.present = None;
    }
}
