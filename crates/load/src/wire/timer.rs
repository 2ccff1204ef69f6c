//! A timer for an event loop, with a finer resolution than the milliseconds of `epoll_wait`.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

/// A timer.
pub(crate) struct Timer {
    fd: TimerFd,
    /// When it fires; 0 if it is not set.
    fires_at_ns: u64,
}

impl Timer {
    pub(crate) fn new() -> nix::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        Ok(Self { fd: TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?, fires_at_ns: 0 })
    }

    /// Fires once at `at_ns` on the caller's clock, which shows `now_ns`; replaces the previous
    /// setting. Setting the same time again costs no system call.
    pub(crate) fn set(&mut self, at_ns: u64, now_ns: u64) -> nix::Result<()> {
        if self.fires_at_ns == at_ns {
            return Ok(());
        }
        self.fires_at_ns = at_ns;
        let after = TimeSpec::from(Duration::from_nanos(at_ns.saturating_sub(now_ns).max(1)));
        self.fd.set(Expiration::OneShot(after), TimerSetTimeFlags::empty())
    }

    /// Resets the timer after it fired.
    pub(crate) fn clear(&mut self) {
        self.fires_at_ns = 0;
        // This never blocks: it fails if the timer has not fired.
        let _expirations = self.fd.wait();
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
