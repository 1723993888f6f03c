//! Owns the end of a connection: what its client still sends is read and thrown away within bounds, since a
//! socket that is closed with unread bytes is reset, and a reset can take the answer along.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

/// The most that is thrown away, in bytes.
const BYTES_MAX: usize = 16 << 20;

/// A connection that comes back to its lender when it is dropped.
#[derive(Debug)]
pub(super) struct Lent {
    stream: Option<TcpStream>,
    lender: Option<oneshot::Sender<TcpStream>>,
}

impl Lent {
    /// Lends a connection, and says where it comes back.
    pub(super) fn new(stream: TcpStream) -> (Self, oneshot::Receiver<TcpStream>) {
        let (lender, back) = oneshot::channel();
        (Self { stream: Some(stream), lender: Some(lender) }, back)
    }

    /// The connection, which is here until the drop.
    fn stream(self: Pin<&mut Self>) -> io::Result<Pin<&mut TcpStream>> {
        self.get_mut()
            .stream
            .as_mut()
            .map(Pin::new)
            .ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let (Some(stream), Some(lender)) = (self.stream.take(), self.lender.take()) {
            let _nobody_waits = lender.send(stream);
        }
    }
}

impl AsyncRead for Lent {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream()?.poll_read(cx, buf)
    }
}

impl AsyncWrite for Lent {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream()?.poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_shutdown(cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream()?.poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }
}

/// Says that nothing more is answered, and reads until the client has ended too, or for so long.
pub(super) async fn hear_out(mut stream: TcpStream, patience: Duration) {
    if stream.shutdown().await.is_err() {
        return;
    }
    let read = async {
        let (mut piece, mut heard) = (vec![0; 16 * 1024], 0);
        while heard < BYTES_MAX
            && let Ok(bytes @ 1..) = stream.read(&mut piece).await
        {
            heard += bytes;
        }
    };
    let _that_was_enough = tokio::time::timeout(patience, read).await;
}
