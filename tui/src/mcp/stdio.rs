//! Standard input and output, and whether the client has closed them. A call that is cut off by that is not one that the
//! client has cancelled: the library that speaks the protocol does not tell the two apart. Output is queued here, because the
//! library drops a message that it has begun to write when its input ends.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rmcp::transport::io::{StdioReader, StdioWriter, stdio_pipes};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::{mpsc, watch};

/// Bytes that may wait for a client that reads slowly, before calls wait for it too. A message is taken whole.
const MAX_QUEUED: usize = 4 << 20;

/// A client that has closed our input, and takes nothing for this long, reads no more.
const STALLED: Duration = Duration::from_secs(10);

/// Whether the client has gone.
#[derive(Clone)]
pub struct Gone(watch::Receiver<bool>);

impl Gone {
    pub fn is_true(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is so.
    pub async fn wait(&self) {
        // its sender is only dropped together with the connection
        let _ = self.0.clone().wait_for(|gone| *gone).await;
    }
}

/// What the client says, until it says no more.
pub struct Reader {
    inner: StdioReader,
    gone: Arc<watch::Sender<bool>>,
}

/// Must be called within a runtime: a task of its own writes what is queued.
pub fn open() -> (Reader, Writer, Gone, Output) {
    let (inner, stdout) = stdio_pipes();
    let (sender, receiver) = watch::channel(false);
    let (messages, queue) = mpsc::unbounded_channel();
    let (queued, progress) = watch::channel(Some(0));
    let queued = Arc::new(Queued { bytes: queued, waiting: Mutex::new(None) });
    tokio::spawn(write_out(stdout, queue, Arc::clone(&queued)));
    (Reader { inner, gone: Arc::new(sender) }, Writer { messages, queued }, Gone(receiver), Output(progress))
}

/// What waits to be written.
struct Queued {
    /// Nothing once the client has closed our output.
    bytes: watch::Sender<Option<usize>>,
    waiting: Mutex<Option<Waker>>,
}

impl Queued {
    fn wake(&self) {
        if let Some(waker) = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take() {
            waker.wake();
        }
    }
}

/// The queue as the library writes to it.
pub struct Writer {
    messages: mpsc::UnboundedSender<Vec<u8>>,
    queued: Arc<Queued>,
}

impl AsyncWrite for Writer {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let closed = || Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        // before looking, so that no progress is missed
        *self.queued.waiting.lock().unwrap_or_else(PoisonError::into_inner) = Some(context.waker().clone());
        match *self.queued.bytes.borrow() {
            None => return closed(),
            Some(queued) if queued >= MAX_QUEUED => return Poll::Pending,
            Some(_) => {}
        }
        self.queued.bytes.send_modify(|queued| *queued = queued.map(|queued| queued + bytes.len()));
        if self.messages.send(bytes.to_vec()).is_err() { closed() } else { Poll::Ready(Ok(bytes.len())) }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

async fn write_out(mut stdout: StdioWriter, mut queue: mpsc::UnboundedReceiver<Vec<u8>>, queued: Arc<Queued>) {
    while let Some(message) = queue.recv().await {
        let mut rest = message.as_slice();
        while !rest.is_empty() {
            let Ok(written @ 1..) = stdout.write(rest).await else {
                queued.bytes.send_replace(None);
                queued.wake();
                return;
            };
            rest = &rest[written..];
            if rest.is_empty() {
                // where output is no pipe it is buffered once more
                let _ = stdout.flush().await;
            }
            queued.bytes.send_modify(|queued| *queued = queued.map(|queued| queued.saturating_sub(written)));
            queued.wake();
        }
    }
}

/// How much of the output is still to be written.
pub struct Output(watch::Receiver<Option<usize>>);

impl Output {
    /// Waits until the client has taken everything, has closed our output, or has stopped reading.
    pub async fn drained(&mut self) {
        while self.0.borrow_and_update().is_some_and(|queued| queued > 0) {
            match tokio::time::timeout(STALLED, self.0.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return,
            }
        }
    }
}

impl AsyncRead for Reader {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let polled = Pin::new(&mut this.inner).poll_read(context, buffer);
        let is_over = match &polled {
            Poll::Pending => false,
            Poll::Ready(Ok(())) => buffer.filled().len() == before,
            Poll::Ready(Err(_)) => true,
        };
        if is_over {
            this.gone.send_replace(true);
        }
        polled
    }
}
