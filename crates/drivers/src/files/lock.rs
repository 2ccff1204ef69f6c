//! A flock that ends.
//!
//! PHP calls `flock` once and waits for ever. To count waits, a call with `LOCK_NB` goes
//! first: one system call more than PHP makes, and only where the lock is taken. The wait itself
//! is the kernel's own: queued, and woken when the lock is free, so its length is not rounded to
//! a polling interval. What bounds it is a timer of the thread that interrupts the call (three
//! more system calls, again only where the lock is taken).

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

/// The signal that interrupts a wait. Nothing else here uses out-of-band data, and by default the
/// signal is ignored, so that a late one does no harm.
const ALARM: Signal = Signal::SIGURG;

/// After the time-out the signal is repeated, for one that came before the call was entered.
const REPEAT: Duration = Duration::from_millis(10);

/// Takes the lock of `file` for this client alone, waiting for at most `timeout`.
pub(super) fn exclusive(file: &File, timeout: Duration) -> Result<LockWait, StoreError> {
    within(timeout, || file.try_lock(), || file.lock())
}

/// Takes the lock of `file` beside others that only read, waiting for at most `timeout`.
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
                let message = format!("the file was locked for {} ms", timeout.as_millis());
                return Err(StoreError::soft(ErrorClass::Lock, message));
            }
            Err(_) => {}
        }
    }
    Ok(LockWait { attempts: 2, waited_ns: started.elapsed().as_nanos() as u64 })
}

/// A running timer that signals this thread; dropping it stops it.
fn alarm_after(timeout: Duration) -> nix::Result<Timer> {
    static HANDLER: OnceLock<nix::Result<()>> = OnceLock::new();
    (*HANDLER.get_or_init(install))?;
    SigSet::from(ALARM).thread_unblock()?;
    let thread_id = nix::unistd::gettid().as_raw();
    let notify = SigevNotify::SigevThreadId { signal: ALARM, thread_id, si_value: 0 };
    let mut timer = Timer::new(ClockId::CLOCK_MONOTONIC, SigEvent::new(notify))?;
    let expiration = Expiration::IntervalDelayed(timeout.into(), REPEAT.into());
    timer.set(expiration, TimerSetTimeFlags::empty())?;
    Ok(timer)
}

extern "C" fn nothing(_: nix::libc::c_int) {}

#[expect(unsafe_code, reason = "a blocking flock can only be ended by a signal with a handler")]
fn install() -> nix::Result<()> {
    // Without SA_RESTART, so that the call ends instead of going on.
    let action = SigAction::new(SigHandler::Handler(nothing), SaFlags::empty(), SigSet::empty());
    // SAFETY: the handler does nothing, so it is async-signal-safe; the old one is not called.
    unsafe { sigaction(ALARM, &action) }.map(drop)
}
