//! A `flock` with a timeout.
//!
//! PHP calls `flock` once and waits forever. To count waits, a call with `LOCK_NB` goes first: one
//! more system call than in PHP, and only if the lock is held. The kernel does the actual waiting:
//! it queues the thread and wakes it when the lock is free, so the wait is not rounded to a polling
//! interval. A timer that signals the thread limits the wait (three more system calls, again only
//! if the lock is held).

use std::fs::{File, TryLockError};
use std::io;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use model::ErrorClass;
use nix::sys::signal::{
    SaFlags, SigAction, SigEvent, SigHandler, SigSet, SigevNotify, Signal, sigaction,
};
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::time::ClockId;
use workloads::store::{LockWait, StoreError};

use crate::fault;

/// The signal that interrupts a wait. Nothing else here uses out-of-band data, and the signal is
/// ignored by default, so a late one is harmless.
const ALARM: Signal = Signal::SIGURG;

/// Interval at which the signal repeats after the timeout, in case one arrives before the call is
/// entered.
const REPEAT: Duration = Duration::from_millis(10);

/// Takes the exclusive lock of `file`, waiting for at most `timeout`.
pub(super) fn exclusive(file: &File, timeout: Duration) -> Result<LockWait, StoreError> {
    within(timeout, || file.try_lock(), || file.lock())
}

/// Takes a shared lock of `file`, waiting for at most `timeout`.
pub(super) fn shared(file: &File, timeout: Duration) -> Result<LockWait, StoreError> {
    within(timeout, || file.try_lock_shared(), || file.lock_shared())
}

fn within(
    timeout: Duration,
    attempt: impl Fn() -> Result<(), TryLockError>,
    wait: impl Fn() -> io::Result<()>,
) -> Result<LockWait, StoreError> {
    match attempt() {
        Ok(()) => return Ok(LockWait { attempts: 1, waited_ns: 0 }),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(e)) => return Err(fault::file("cannot lock", &e)),
    }
    let started = Instant::now();
    let _timer = alarm_after(timeout).map_err(|e| fault::file("cannot set a timer", &e.into()))?;
    loop {
        match wait() {
            Ok(()) => break,
            Err(e) if e.kind() != io::ErrorKind::Interrupted => {
                return Err(fault::file("cannot lock", &e));
            }
            Err(_) if started.elapsed() >= timeout => {
                let message = format!("the file was still locked after {} ms", timeout.as_millis());
                return Err(StoreError::soft(ErrorClass::Lock, message));
            }
            Err(_) => {}
        }
    }
    Ok(LockWait { attempts: 2, waited_ns: started.elapsed().as_nanos() as u64 })
}

/// Starts a timer that signals this thread; dropping it stops it.
fn alarm_after(timeout: Duration) -> nix::Result<Timer> {
    static HANDLER: OnceLock<nix::Result<()>> = OnceLock::new();
    (*HANDLER.get_or_init(install))?;
    SigSet::from(ALARM).thread_unblock()?;
    // nix has no `SigevThreadId` for musl, so the fields are set here.
    let mut event =
        SigEvent::new(SigevNotify::SigevSignal { signal: ALARM, si_value: 0 }).sigevent();
    event.sigev_notify = nix::libc::SIGEV_THREAD_ID;
    event.sigev_notify_thread_id = nix::unistd::gettid().as_raw();
    let mut timer = Timer::new(ClockId::CLOCK_MONOTONIC, SigEvent::from(&event))?;
    let expiration = Expiration::IntervalDelayed(timeout.into(), REPEAT.into());
    timer.set(expiration, TimerSetTimeFlags::empty())?;
    Ok(timer)
}

extern "C" fn nothing(_: nix::libc::c_int) {}

#[expect(unsafe_code, reason = "a blocking flock can only be ended by a signal with a handler")]
fn install() -> nix::Result<()> {
    // Without SA_RESTART, so that the call returns instead of restarting.
    let action = SigAction::new(SigHandler::Handler(nothing), SaFlags::empty(), SigSet::empty());
    // SAFETY: the handler does nothing, so it is async-signal-safe; the old one is not called.
    unsafe { sigaction(ALARM, &action) }.map(drop)
}
