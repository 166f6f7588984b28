//! A web server on loopback whose answers a test chooses, request by request, and that remembers what it was sent.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use serde_json::Value;

use super::{PATIENCE, wait_for};

/// One request, as it came.
#[derive(Clone, Debug)]
pub struct Received {
    pub method: String,
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Received {
    #[track_caller]
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map_or_else(|| panic!("no {name} in {self:?}"), |(_, value)| value)
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    pub fn event(&self) -> String {
        self.json()["event"].as_str().unwrap_or_default().to_owned()
    }

    /// `start of api`
    pub fn words(&self) -> String {
        format!("{} of {}", self.event(), self.json()["session"]["name"].as_str().unwrap_or("nothing"))
    }

    /// Computes the signature anew, from the specification's words.
    #[track_caller]
    pub fn check_signature(&self, secret: &str) {
        let key = STANDARD.decode(secret.strip_prefix("whsec_").expect("a secret")).expect("base64");
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(&key).expect("any key");
        mac.update(format!("{}.{}.{}", self.header("webhook-id"), self.header("webhook-timestamp"), self.body).as_bytes());
        let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
        assert_eq!(self.header("webhook-signature"), expected);
    }
}

/// What is answered.
#[derive(Clone, Debug)]
pub enum Reply {
    Status(u16),
    With {
        status: u16,
        headers: String,
        body: String,
    },
    /// Never: the connection stays open.
    Hang,
    /// A success whose body has no end.
    Endless(u16),
}

impl Reply {
    pub fn with(status: u16, headers: &str, body: &str) -> Self {
        Self::With { status, headers: headers.to_owned(), body: body.to_owned() }
    }
}

type Choose = Box<dyn FnMut(&Received) -> Reply + Send>;

pub struct Server {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    choose: Arc<Mutex<Choose>>,
    is_over: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Server {
    /// Answers each request with what `choose` says.
    pub fn start(choose: impl FnMut(&Received) -> Reply + Send + 'static) -> Self {
        Self::listen(TcpListener::bind("127.0.0.1:0").expect("a port"), choose)
    }

    /// At the address of one that was stopped, or that was only reserved.
    #[track_caller]
    pub fn start_at(address: SocketAddr, choose: impl FnMut(&Received) -> Reply + Send + 'static) -> Self {
        let listener = wait_for("the port to be free again", || TcpListener::bind(address).ok());
        Self::listen(listener, choose)
    }

    fn listen(listener: TcpListener, choose: impl FnMut(&Received) -> Reply + Send + 'static) -> Self {
        let address = listener.local_addr().expect("an address");
        let received: Arc<Mutex<Vec<Received>>> = Arc::default();
        let choose: Arc<Mutex<Choose>> = Arc::new(Mutex::new(Box::new(choose)));
        let is_over = Arc::new(AtomicBool::new(false));
        let accepting = std::thread::spawn({
            let (received, choose, is_over) = (Arc::clone(&received), Arc::clone(&choose), Arc::clone(&is_over));
            move || {
                for stream in listener.incoming() {
                    if is_over.load(Ordering::SeqCst) {
                        return;
                    }
                    let Ok(stream) = stream else { return };
                    let (received, choose) = (Arc::clone(&received), Arc::clone(&choose));
                    std::thread::spawn(move || serve(stream, &received, &choose));
                }
            }
        });
        Self { address, received, choose, is_over, accepting: Some(accepting) }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        url(self.address)
    }

    /// From now on.
    pub fn answer(&self, choose: impl FnMut(&Received) -> Reply + Send + 'static) {
        *lock(&self.choose) = Box::new(choose);
    }

    /// Everything so far, in the order of arrival.
    pub fn received(&self) -> Vec<Received> {
        lock(&self.received).clone()
    }

    pub fn words(&self) -> Vec<String> {
        self.received().iter().map(Received::words).collect()
    }

    /// Waits until there are at least this many requests.
    #[track_caller]
    pub fn wait(&self, number: usize) -> Vec<Received> {
        wait_for(&format!("{number} requests, of which there are {:?}", self.words()), || {
            let received = self.received();
            (received.len() >= number).then_some(received)
        })
    }
}

impl Drop for Server {
    /// Nobody listens at its address once this is over.
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // one last connection, for `incoming` to see it
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

pub fn url(address: SocketAddr) -> String {
    format!("http://{address}/hook")
}

/// An address nobody listens at.
pub fn closed_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One request a connection; whatever goes wrong ends it, and the other side tells the test.
fn serve(mut stream: TcpStream, received: &Mutex<Vec<Received>>, choose: &Mutex<Choose>) -> Option<()> {
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    let request = read(&mut BufReader::new(stream.try_clone().ok()?))?;
    let reply = {
        let mut received = lock(received);
        received.push(request.clone());
        drop(received);
        lock(choose)(&request)
    };
    match reply {
        Reply::Status(status) => answer(&mut stream, status, "", ""),
        Reply::With { status, headers, body } => answer(&mut stream, status, &headers, &body),
        Reply::Hang => {
            // until the other side has had enough
            let _ = stream.read(&mut [0; 1]);
            Some(())
        }
        Reply::Endless(status) => {
            write!(stream, "HTTP/1.1 {status} Endless\r\n\r\n").ok()?;
            loop {
                stream.write_all(&[b'x'; 4096]).ok()?;
            }
        }
    }
}

fn answer(stream: &mut TcpStream, status: u16, headers: &str, body: &str) -> Option<()> {
    let length = body.len();
    write!(stream, "HTTP/1.1 {status} Chosen\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}").ok()
}

fn read(reader: &mut impl BufRead) -> Option<Received> {
    let mut line = || {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        Some(line.trim_end().to_owned())
    };
    let first = line()?;
    let mut words = first.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let text = line()?;
        if text.is_empty() {
            break;
        }
        let (name, value) = text.split_once(':')?;
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Received { method, path, headers, body: String::from_utf8(body).ok()? })
}
