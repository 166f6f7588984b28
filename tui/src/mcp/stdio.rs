//! Standard input and output, and whether the client has closed them. A call that is cut off by that is not one that the
//! client has cancelled: the library that speaks the protocol does not tell the two apart.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rmcp::transport::io::{StdioReader, StdioWriter, stdio_pipes};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::watch;

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

pub fn open() -> (Reader, StdioWriter, Gone) {
    let (inner, writer) = stdio_pipes();
    let (sender, receiver) = watch::channel(false);
    (Reader { inner, gone: Arc::new(sender) }, writer, Gone(receiver))
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
