//! Raw sockets to a reference server.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Read and write timeout; much longer than any reply takes on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.set_write_timeout(Some(TIMEOUT)).unwrap();
    stream
}

/// Reads as many bytes as expected and compares them.
#[track_caller]
pub(crate) fn expect(stream: &mut impl Read, expected: &[u8]) {
    let mut got = vec![0; expected.len()];
    stream.read_exact(&mut got).unwrap();
    assert!(got == expected, "{:?}", String::from_utf8_lossy(&got[..got.len().min(200)]));
}

#[track_caller]
pub(crate) fn ask(stream: &mut (impl Read + Write), request: &[u8], expected: &[u8]) {
    stream.write_all(request).unwrap();
    expect(stream, expected);
}
