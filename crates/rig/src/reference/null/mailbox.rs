//! State shared by the threads of the null server.

use crate::reference::listen::Socket;
use crate::reference::wake::Wake;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

/// State shared by the accepting thread and one worker thread.
#[derive(Debug)]
pub(super) struct Mailbox {
    pub(super) wake: Wake,
    /// Accepted connections that the worker has not taken over yet.
    pub(super) sockets: Mutex<Vec<Socket>>,
    /// Number of requests answered; written only by the worker.
    pub(super) requests: AtomicU64,
}
