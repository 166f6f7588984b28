//! One attempt to make one delivery: blocking, bounded in time and in what is read. Knows no queue and no database.

use std::io::Read;
use std::net::SocketAddr;
use std::time::Duration;

use shared::text::{fit, visible};
use ureq::config::Config;
use ureq::http::{HeaderMap, StatusCode, Uri};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Error};

use super::address::{self, Reach};
use super::sign::sign;

/// What is sent, where, and with whose secret; not to be printed.
pub struct Message {
    pub url: String,
    pub insecure: bool,
    pub secret: String,
    /// The same in every attempt.
    pub id: String,
    pub body: String,
}

/// How an attempt went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Delivered {
        answer: u16,
    },
    /// The endpoint wants nothing any more.
    Gone {
        answer: u16,
        error: String,
    },
    Failed {
        answer: Option<u16>,
        error: String,
        /// How long the endpoint wants to be left alone.
        retry_after: Option<Duration>,
    },
}

impl Outcome {
    pub fn failed(error: impl Into<String>) -> Self {
        Self::Failed { answer: None, error: error.into(), retry_after: None }
    }
}

/// An answer is only read to be polite and to quote its beginning.
const MAX_ANSWER: u64 = 64 << 10;

/// Columns of an answer that an error quotes.
const QUOTED: usize = 160;

pub fn send(message: &Message, timeout: Duration) -> Outcome {
    let (uri, reach) = match address::check_url(&message.url, message.insecure) {
        Ok(checked) => checked,
        Err(error) => return Outcome::failed(error),
    };
    let timestamp = jiff::Timestamp::now().as_second();
    let signature = match sign(&message.secret, &message.id, timestamp, &message.body) {
        Ok(signature) => signature,
        Err(error) => return Outcome::failed(error),
    };
    let answered = agent(timeout, reach)
        .post(&uri)
        .header("content-type", "application/json")
        .header("webhook-id", &message.id)
        .header("webhook-timestamp", timestamp.to_string())
        .header("webhook-signature", signature)
        .send(&message.body);
    match answered {
        Ok(mut answer) => {
            let mut text = Vec::new();
            // the status has been said: whatever goes wrong after it changes nothing
            let _ = answer.body_mut().as_reader().take(MAX_ANSWER).read_to_end(&mut text);
            judge(answer.status(), answer.headers(), &String::from_utf8_lossy(&text))
        }
        Err(error) => Outcome::failed(in_words(error, &uri, timeout)),
    }
}

/// A new one for each attempt: nothing is kept open between two, and a name is looked up anew.
fn agent(timeout: Duration, reach: Reach) -> Agent {
    let config = Config::builder()
        .timeout_global(Some(timeout))
        .http_status_as_error(false)
        .max_redirects(0)
        // what the daemon was started with says nothing about where deliveries may pass
        .proxy(None)
        .max_idle_connections(0)
        // whom this machine trusts, so that a company's own authority needs no setting of ours
        .tls_config(TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build())
        .user_agent(format!("sessions-tui/{}", shared::VERSION))
        .build();
    Agent::with_parts(config, DefaultConnector::new(), CheckedResolver { reach })
}

/// Looks a name up once and lets the connection go only to addresses that were checked, so that a name that leads elsewhere
/// a moment later changes nothing.
#[derive(Debug)]
struct CheckedResolver {
    reach: Reach,
}

impl Resolver for CheckedResolver {
    fn resolve(&self, uri: &Uri, config: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let found = DefaultResolver::default().resolve(uri, config, timeout)?;
        // one bad address among good ones is a trick, or soon will be
        for address in found.iter().map(SocketAddr::ip) {
            address::check_address(address, self.reach).map_err(|error| Error::Other(error.into()))?;
        }
        Ok(found)
    }
}

fn judge(status: StatusCode, headers: &HeaderMap, text: &str) -> Outcome {
    let answer = status.as_u16();
    if status.is_success() {
        return Outcome::Delivered { answer };
    }
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if status.is_redirection() {
        let to = header("location").map(|to| format!(" to {}", fit(&visible(to), QUOTED))).unwrap_or_default();
        let error = format!("answered {status}, a redirect{to}, and redirects are not followed: add the URL it leads to instead");
        return Outcome::Failed { answer: Some(answer), error, retry_after: None };
    }
    let mut error = format!("answered {status}");
    let quoted = fit(&visible(text.trim()), QUOTED);
    if !quoted.is_empty() {
        error = format!("{error}: {quoted}");
    }
    match status {
        StatusCode::GONE => Outcome::Gone { answer, error },
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            let seconds = header("retry-after").and_then(|value| value.trim().parse::<u32>().ok());
            Outcome::Failed { answer: Some(answer), error, retry_after: seconds.map(|seconds| Duration::from_secs(seconds.into())) }
        }
        _ => Outcome::Failed { answer: Some(answer), error, retry_after: None },
    }
}

fn in_words(error: Error, uri: &Uri, timeout: Duration) -> String {
    match error {
        Error::Timeout(_) => format!("no whole answer within {timeout:?}"),
        Error::HostNotFound => format!("there is no address for {}", visible(uri.host().unwrap_or_default())),
        Error::Io(error) => fit(&visible(&error.to_string()), QUOTED),
        // what our own resolver refused
        Error::Other(error) => error.to_string(),
        other => fit(&visible(&other.to_string()), QUOTED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(status: u16, headers: &[(&'static str, &str)], text: &str) -> Outcome {
        let headers = headers.iter().map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value"))).collect();
        judge(StatusCode::from_u16(status).expect("a status"), &headers, text)
    }

    #[test]
    fn answers() {
        for status in [200, 201, 202, 204, 299] {
            assert_eq!(judged(status, &[], "whatever"), Outcome::Delivered { answer: status });
        }
        assert_eq!(judged(410, &[], ""), Outcome::Gone { answer: 410, error: "answered 410 Gone".into() });
        for (status, headers, asked) in [
            (500, &[("retry-after", "7")][..], None),
            (429, &[("retry-after", " 7 ")], Some(7)),
            (503, &[("retry-after", "0")], Some(0)),
            (503, &[("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT")], None),
            (429, &[("retry-after", "-1")], None),
            (429, &[], None),
            (304, &[], None),
            (404, &[], None),
        ] {
            let Outcome::Failed { answer, retry_after, .. } = judged(status, headers, "") else { panic!("{status}") };
            assert_eq!((answer, retry_after), (Some(status), asked.map(Duration::from_secs)), "{status} {headers:?}");
        }
    }

    #[test]
    fn what_strangers_say_is_quoted_safely_and_shortly() {
        let Outcome::Failed { error, .. } = judged(500, &[], &format!("\x1b[2Jno\n{}", "x".repeat(9999))) else { panic!("failed") };
        assert!(error.starts_with("answered 500 Internal Server Error: ·[2Jno·xxx") && error.chars().count() < 250, "{error}");
        let Outcome::Failed { error, .. } = judged(302, &[("location", "http://169.254.169.254/")], "") else { panic!("failed") };
        assert!(error.contains("not followed") && error.contains("169.254"), "{error}");
    }

    #[test]
    fn a_name_that_leads_where_nothing_may_go_is_refused_at_the_attempt() {
        let message = Message {
            // what the system's resolver makes of it is 169.254.169.254
            url: "https://2852039166/".into(),
            insecure: false,
            secret: super::super::sign::new_secret().expect("random"),
            id: "msg_1".into(),
            body: "{}".into(),
        };
        let outcome = send(&message, Duration::from_secs(10));
        let Outcome::Failed { answer: None, error, .. } = outcome else { panic!("{outcome:?}") };
        assert!(error.contains("never sent to 169.254.169.254"), "{error}");
    }
}
