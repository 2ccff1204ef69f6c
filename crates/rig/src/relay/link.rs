//! A client's connection through the relay, and the relay's to the server.

use crate::reference::listen::Socket;
use model::NetAddress;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Bytes under way in one direction of a link beyond which the relay reads no more from it, as a
/// full TCP window would. Linux' largest receive window is 6 MiB by default.
const WINDOW_BYTES: usize = 8 << 20;
/// Bytes read at once.
const PIECE_BYTES: usize = 64 << 10;
/// Time that the server has to accept a connection; others wait meanwhile.
const CONNECTS_WITHIN: Duration = Duration::from_secs(1);

/// A side of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client = 0,
    Server = 1,
}

impl Side {
    /// The side of a descriptor's number.
    pub(super) fn of(number: u64) -> Self {
        if number.is_multiple_of(2) { Self::Client } else { Self::Server }
    }

    fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// One of the two connections.
#[derive(Debug)]
struct End {
    socket: Socket,
    /// What it has sent and the other one has not got yet.
    under_way: usize,
    /// What has arrived for it and does not fit into its socket yet, from `written` on.
    waiting: Vec<u8>,
    written: usize,
    /// True once it has sent its last byte.
    has_sent_all: bool,
    /// True if nothing follows `waiting`.
    gets_no_more: bool,
    /// True once that is shut down.
    is_shut: bool,
    /// Events that the kernel reports; `None` if it reports nothing, not even that the peer has
    /// gone.
    registered: Option<EpollFlags>,
}

impl End {
    fn new(socket: Socket) -> Self {
        Self {
            socket,
            under_way: 0,
            waiting: Vec::new(),
            written: 0,
            has_sent_all: false,
            gets_no_more: false,
            is_shut: false,
            registered: None,
        }
    }

    fn left(&self) -> usize {
        self.waiting.len() - self.written
    }

    /// Events that it waits for; `None` for none.
    fn wanted(&self) -> Option<EpollFlags> {
        let mut wanted = EpollFlags::empty();
        wanted.set(EpollFlags::EPOLLIN, !self.has_sent_all && self.under_way < WINDOW_BYTES);
        wanted.set(EpollFlags::EPOLLOUT, self.left() > 0);
        (!wanted.is_empty()).then_some(wanted)
    }
}

/// Both connections.
#[derive(Debug)]
pub(super) struct Link {
    ends: [End; 2],
    /// True after an error, which closes both.
    is_broken: bool,
    piece: Vec<u8>,
}

impl Link {
    /// Registers both connections under the number of the link.
    pub(super) fn open(
        epoll: &Epoll,
        number: u64,
        client: Socket,
        server: Socket,
    ) -> nix::Result<Self> {
        let ends = [client, server].map(End::new);
        let mut link = Self { ends, is_broken: false, piece: vec![0; PIECE_BYTES] };
        link.register(epoll, number)?;
        Ok(link)
    }

    /// Reads everything that a side has sent; `sent` gets it, and an empty piece at its end.
    pub(super) fn read(&mut self, side: Side, mut sent: impl FnMut(Vec<u8>)) {
        let end = &mut self.ends[side as usize];
        while !end.has_sent_all && end.under_way < WINDOW_BYTES {
            match end.socket.read(&mut self.piece) {
                Ok(bytes @ 1..) => {
                    end.under_way += bytes;
                    sent(self.piece[..bytes].to_vec());
                    // Less than the buffer: there is no more for now.
                    if bytes < self.piece.len() {
                        return;
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                // A reset also arrives later.
                Ok(0) | Err(_) => {
                    end.has_sent_all = true;
                    sent(Vec::new());
                }
            }
        }
    }

    /// What a side sent arrives at the other one.
    pub(super) fn arrive(&mut self, from: Side, bytes: Vec<u8>) {
        let end = &mut self.ends[from.other() as usize];
        if bytes.is_empty() {
            end.gets_no_more = true;
        } else if end.left() == 0 {
            (end.waiting, end.written) = (bytes, 0);
        } else {
            end.waiting.extend(bytes);
        }
        self.write(from.other());
    }

    /// Writes what has arrived for a side.
    pub(super) fn write(&mut self, side: Side) {
        let [client, server] = &mut self.ends;
        let (end, other) = match side {
            Side::Client => (client, server),
            Side::Server => (server, client),
        };
        while end.left() > 0 {
            match end.socket.write(&end.waiting[end.written..]) {
                Ok(bytes) => {
                    end.written += bytes;
                    other.under_way -= bytes;
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    self.is_broken = true;
                    return;
                }
            }
        }
        end.waiting.clear();
        end.written = 0;
        if end.gets_no_more && !end.is_shut {
            end.is_shut = true;
            // Fails if the other side has gone, which its reading shows.
            let _ = match &end.socket {
                Socket::Tcp(stream) => stream.shutdown(Shutdown::Write),
                Socket::Unix(stream) => stream.shutdown(Shutdown::Write),
            };
        }
    }

    /// True once both sides have got everything, or one is broken.
    pub(super) fn has_ended(&self) -> bool {
        self.is_broken || self.ends.iter().all(|end| end.is_shut)
    }

    /// Tells the kernel what both connections wait for.
    pub(super) fn register(&mut self, epoll: &Epoll, number: u64) -> nix::Result<()> {
        for (end, side) in self.ends.iter_mut().zip([Side::Client, Side::Server]) {
            let wanted = end.wanted();
            match (end.registered, wanted) {
                (before, now) if before == now => {}
                (None, Some(now)) => epoll.add(&end.socket, event(now, number, side))?,
                (_, Some(now)) => epoll.modify(&end.socket, &mut event(now, number, side))?,
                (_, None) => epoll.delete(&end.socket)?,
            }
            end.registered = wanted;
        }
        Ok(())
    }
}

fn event(flags: EpollFlags, number: u64, side: Side) -> EpollEvent {
    EpollEvent::new(flags, number * 2 + side as u64)
}

/// A connection to the server, which does not block.
pub(super) fn connect(server: &NetAddress) -> io::Result<Socket> {
    match server {
        NetAddress::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_nonblocking(true)?;
            Ok(Socket::Unix(stream))
        }
        NetAddress::Tcp(host, port) => {
            let ip = host.parse().map_err(|_| io::Error::from(Errno::EINVAL))?;
            let address = SocketAddr::new(ip, *port);
            let stream = TcpStream::connect_timeout(&address, CONNECTS_WITHIN)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            Ok(Socket::Tcp(stream))
        }
    }
}
