//! A timer that an event loop can wait for, finer than the milliseconds of `epoll_wait`.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

/// A timer.
pub(crate) struct Timer(TimerFd);

impl Timer {
    pub(crate) fn new() -> nix::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        TimerFd::new(ClockId::CLOCK_MONOTONIC, flags).map(Self)
    }

    /// Rings once, that many nanoseconds from now; what was set before is forgotten.
    pub(crate) fn set(&self, after_ns: u64) -> nix::Result<()> {
        let after = TimeSpec::from(Duration::from_nanos(after_ns.max(1)));
        self.0.set(Expiration::OneShot(after), TimerSetTimeFlags::empty())
    }

    /// Takes note that it rang.
    pub(crate) fn clear(&self) {
        // It never blocks: where it did not ring there is nothing to take note of.
        let _rang = self.0.wait();
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
