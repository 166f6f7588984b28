//! Tells the service manager that started us that clients can connect: one datagram, as `sd_notify(3)` says.

use std::os::unix::net::UnixDatagram;

/// Where it waits for it, if anybody does.
pub const SOCKET: &str = "NOTIFY_SOCKET";

/// Nothing happens where no service manager waits.
pub fn notify_ready() {
    let Ok(path) = std::env::var(SOCKET) else { return };
    let Ok(socket) = UnixDatagram::unbound() else { return };
    let message = format!("READY=1\nMAINPID={}\nSTATUS=serving clients", std::process::id());
    // one that does not listen gives up on us by itself, and says so
    let _ = match path.strip_prefix('@') {
        Some(name) => send_to_abstract(&socket, name, message.as_bytes()),
        None => socket.send_to(message.as_bytes(), &path),
    };
}

#[cfg(target_os = "linux")]
fn send_to_abstract(socket: &UnixDatagram, name: &str, message: &[u8]) -> std::io::Result<usize> {
    use std::os::linux::net::SocketAddrExt;
    let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
    socket.send_to_addr(message, &address)
}

#[cfg(not(target_os = "linux"))]
fn send_to_abstract(_: &UnixDatagram, _: &str, _: &[u8]) -> std::io::Result<usize> {
    Ok(0)
}
