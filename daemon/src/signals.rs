//! Signals as a login shell has them: none blocked, none ignored. Whatever started the daemon may have blocked or ignored some,
//! and every program of every session would inherit that.

/// Unblocks every signal and sets the default action for each. Must come before any handler is installed.
///
/// SIGPIPE stays as it is: the runtime ignores it in our own processes and gives programs that we start the default.
#[expect(unsafe_code, reason = "the signal mask and dispositions can only be set through libc")]
pub fn reset() {
    // the highest real-time signal of Linux; numbers that do not exist are refused without effect
    const LAST: i32 = 64;
    for signal in (1..=LAST).filter(|signal| ![libc::SIGKILL, libc::SIGSTOP, libc::SIGPIPE].contains(signal)) {
        // SAFETY: sets the default action, so no handler of ours can run; no memory is touched.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
    let mut none = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` initialises the set that `sigprocmask` reads; the old mask is not asked for.
    unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
    }
}

/// Makes a write beyond the limit on file sizes (`ulimit -f`) fail like one to a full disk; by default the kernel ends the
/// process. A handler, not an ignored signal: programs that we start get the default.
pub fn survive_file_size_limit() -> std::io::Result<()> {
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default()).map(drop)
}
