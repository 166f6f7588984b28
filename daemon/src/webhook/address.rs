//! Where a delivery may go: checks of what a user wrote, and of every address a name leads to. Pure; looks no name up.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use shared::text::{fit, visible};
use ureq::http::Uri;

/// Which addresses are meant by a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Plain http: what is sent may be read on the way, so there must be no way.
    ThisMachine,
    Anywhere,
}

/// Longer ones are refused by many servers.
const MAX_URL: usize = 2048;

/// Columns of what a user wrote that an error repeats.
const SHOWN: usize = 80;

/// Where clouds keep their machines' credentials, beyond the link-local ones.
const METADATA: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)), IpAddr::V6(Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254))];

/// A URL that deliveries can be sent to, and how far they may go; the error says what to write instead.
pub fn check_url(url: &str, insecure: bool) -> Result<(Uri, Reach), String> {
    let shown = fit(&visible(url), SHOWN);
    if url.len() > MAX_URL {
        return Err(format!("that URL is too long: at most {MAX_URL} bytes"));
    }
    let uri: Uri = url.parse().map_err(|_| format!("{shown:?} is not a URL: write https://HOST/PATH"))?;
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err(format!("{shown:?} is not a whole URL: write https://HOST/PATH"));
    };
    let is_plain = match scheme {
        "https" => false,
        "http" => true,
        other => return Err(format!("deliveries go over https or http, not {other}: write https://HOST/PATH")),
    };
    // kept out of the sentence: it is a password
    if authority.as_str().contains('@') {
        return Err("a user or password in a URL is not sent: leave it out, deliveries are signed instead".into());
    }
    let host = authority.host();
    if host.is_empty() {
        return Err(format!("{shown:?} names no host: write https://HOST/PATH"));
    }
    let reach = if is_plain && !insecure { Reach::ThisMachine } else { Reach::Anywhere };
    match literal(host) {
        Some(address) => check_address(address, reach)?,
        None if reach == Reach::ThisMachine && !host.eq_ignore_ascii_case("localhost") => return Err(plain(host)),
        None => {}
    }
    Ok((uri, reach))
}

/// Whether a connection may go to this address.
pub fn check_address(address: IpAddr, reach: Reach) -> Result<(), String> {
    if is_never(address) {
        return Err(format!("deliveries are never sent to {address}, which is no address of a webhook: give another URL"));
    }
    if reach == Reach::ThisMachine && !address.to_canonical().is_loopback() {
        return Err(plain(&address.to_string()));
    }
    Ok(())
}

fn plain(host: &str) -> String {
    format!("plain http to {} could be read on the way: use https, or add it with --insecure", fit(&visible(host), SHOWN))
}

/// The address, if the host is written as one.
fn literal(host: &str) -> Option<IpAddr> {
    match host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
        // a zone only says by which interface
        Some(inner) => inner.split('%').next()?.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => host.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
    }
}

/// Addresses at which nobody receives webhooks, but something else can be reached.
fn is_never(address: IpAddr) -> bool {
    if METADATA.contains(&address.to_canonical()) {
        return true;
    }
    match address {
        IpAddr::V4(address) => is_never_v4(address),
        IpAddr::V6(address) => {
            // :: and ::1 are not an IPv4 address in disguise
            (address.is_unspecified() || address.is_multicast() || address.is_unicast_link_local())
                || (!address.is_loopback() && inner_v4(address).is_some_and(|inner| is_never(IpAddr::V4(inner))))
        }
    }
}

fn is_never_v4(address: Ipv4Addr) -> bool {
    // all of 0.0.0.0/8 means "this network", and is let through to this machine by some systems
    address.octets()[0] == 0 || address.is_link_local() || address.is_multicast() || address.is_broadcast()
}

/// The IPv4 address that something on the way may make of an IPv6 one.
fn inner_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    let joined = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match segments {
        // mapped ::ffff:a.b.c.d, and the older compatible ::a.b.c.d
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] => Some(joined(high, low)),
        // NAT64
        [0x0064, 0xff9b, 0, 0, 0, 0, high, low] => Some(joined(high, low)),
        // 6to4
        [0x2002, high, low, ..] => Some(joined(high, low)),
        // Teredo, where it is turned over
        [0x2001, 0, _, _, _, _, high, low] => Some(joined(!high, !low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        for (url, insecure, reach) in [
            ("https://example.com/hook", false, Reach::Anywhere),
            ("https://example.com:8443/hook?x=1", false, Reach::Anywhere),
            ("HTTPS://10.0.0.7/", false, Reach::Anywhere),
            ("https://[2001:db8::1]/", false, Reach::Anywhere),
            ("http://localhost:3000/hook", false, Reach::ThisMachine),
            ("http://LocalHost/", false, Reach::ThisMachine),
            ("http://127.0.0.1:3000/hook", false, Reach::ThisMachine),
            ("http://127.9.9.9/", false, Reach::ThisMachine),
            ("http://[::1]:3000/", false, Reach::ThisMachine),
            ("http://[::ffff:127.0.0.1]/", false, Reach::ThisMachine),
            ("http://example.com/", true, Reach::Anywhere),
            ("http://192.168.1.5/", true, Reach::Anywhere),
        ] {
            assert_eq!(check_url(url, insecure).map(|(_, reach)| reach), Ok(reach), "{url}");
        }
    }

    #[test]
    fn urls_that_are_refused() {
        let long = format!("https://example.com/{}", "x".repeat(3000));
        for (url, insecure, word) in [
            ("", false, "not a"),
            ("/hook", false, "not a"),
            ("example.com", false, "not a"),
            ("example.com/hook", false, "not a"),
            ("https://", false, "not a"),
            ("https:///hook", false, "not a"),
            ("https://exa mple.com", false, "not a"),
            ("https://example.com/\x1b[2J", false, "not a"),
            ("ftp://example.com/", false, "ftp"),
            ("file:///etc/passwd", false, ""),
            ("gopher://127.0.0.1/", true, "gopher"),
            ("https://user:secret@example.com/", false, "password"),
            ("https://user@example.com/", true, "password"),
            ("http://127.0.0.1@example.com/", false, "password"),
            ("http://example.com/", false, "--insecure"),
            ("http://192.168.1.5/", false, "--insecure"),
            ("http://localhost.example.com/", false, "--insecure"),
            // forms that the system's resolver would take for addresses
            ("http://2130706433/", false, "--insecure"),
            ("http://0x7f.1/", false, "--insecure"),
            ("http://0177.0.0.1/", false, "--insecure"),
            ("http://169.254.169.254/latest/meta-data", true, "never"),
            ("https://169.254.0.1/", false, "never"),
            ("https://0.0.0.0/", false, "never"),
            ("https://0.1.2.3/", false, "never"),
            ("https://255.255.255.255/", false, "never"),
            ("https://224.0.0.1/", false, "never"),
            ("https://100.100.100.200/", false, "never"),
            ("https://[::]/", false, "never"),
            ("https://[fe80::1]/", false, "never"),
            ("https://[febf::1]/", false, "never"),
            ("https://[ff02::1]/", false, "never"),
            ("https://[fd00:ec2::254]/", false, "never"),
            ("https://[::ffff:169.254.169.254]/", false, "never"),
            ("https://[::a9fe:a9fe]/", false, "never"),
            ("https://[64:ff9b::a9fe:a9fe]/", false, "never"),
            ("https://[2002:a9fe:a9fe::1]/", false, "never"),
            ("https://[2001:0:1:2:3:4:5601:5601]/", false, "never"),
            ("https://[::ffff:0.0.0.0]/", false, "never"),
            (&long, false, "too long"),
        ] {
            let error = check_url(url, insecure).expect_err(url);
            assert!(error.contains(word) && !error.contains("secret@") && !error.contains('\x1b'), "{url}: {error}");
        }
    }

    #[test]
    fn plain_http_stays_on_this_machine_whatever_a_name_leads_to() {
        for (address, stays) in [
            ("127.0.0.1", true),
            ("127.255.0.1", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("10.0.0.1", false),
            ("93.184.216.34", false),
            ("2001:db8::1", false),
            ("::127.0.0.1", false),
            ("64:ff9b::7f00:1", false),
        ] {
            let address: IpAddr = address.parse().expect(address);
            assert_eq!(check_address(address, Reach::ThisMachine).is_ok(), stays, "{address}");
            assert!(check_address(address, Reach::Anywhere).is_ok(), "{address}");
        }
    }
}
