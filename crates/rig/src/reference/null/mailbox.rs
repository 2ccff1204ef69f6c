//! What the threads of the null server share.

use crate::reference::listen::Socket;
use crate::reference::wake::Wake;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

/// What the thread that takes connections shares with one that answers.
#[derive(Debug)]
pub(super) struct Mailbox {
    pub(super) wake: Wake,
    /// Connections that the thread has not taken over yet.
    pub(super) sockets: Mutex<Vec<Socket>>,
    /// Written by the answering thread alone.
    pub(super) requests: AtomicU64,
}
