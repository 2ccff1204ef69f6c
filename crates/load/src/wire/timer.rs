//! A timer that an event loop can wait for, finer than the milliseconds of `epoll_wait`.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

/// A timer.
pub(crate) struct Timer {
    fd: TimerFd,
    /// When it will ring; 0 when it will not.
    rings_at_ns: u64,
}

impl Timer {
    pub(crate) fn new() -> nix::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        Ok(Self { fd: TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?, rings_at_ns: 0 })
    }

    /// Rings once, at a time of the caller's clock, which shows `now_ns`; what was set before is
    /// forgotten. The same time again costs no system call.
    pub(crate) fn set(&mut self, at_ns: u64, now_ns: u64) -> nix::Result<()> {
        if self.rings_at_ns == at_ns {
            return Ok(());
        }
        self.rings_at_ns = at_ns;
        let after = TimeSpec::from(Duration::from_nanos(at_ns.saturating_sub(now_ns).max(1)));
        self.fd.set(Expiration::OneShot(after), TimerSetTimeFlags::empty())
    }

    /// Takes note that it rang.
    pub(crate) fn clear(&mut self) {
        self.rings_at_ns = 0;
        // It never blocks: where it did not ring there is nothing to take note of.
        let _rang = self.fd.wait();
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
