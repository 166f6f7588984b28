//! Webhooks: told once it is true, signed, in order, retried, never lost, and never in anybody's way.

use std::collections::HashSet;

use serde_json::Value;

use crate::support::http::{self, Reply, Server};
use crate::support::{Root, wait_until};

/// Retries that a test need not wait for.
const QUICK: &str = "[webhooks]\nfirst_retry = \"50ms\"\nmax_retry = \"100ms\"\n";

fn root(config: &str) -> Root {
    let root = Root::new();
    root.config(config);
    root
}

/// Adds a webhook; gives it with its secret.
#[track_caller]
fn add(root: &Root, url: &str, more: &[&str]) -> Value {
    let mut args = vec!["webhook", "add", url, "--json"];
    args.extend_from_slice(more);
    root.json(&args)
}

#[track_caller]
fn listed(root: &Root, url: &str) -> Value {
    let webhooks = root.json(&["webhook", "ls", "--json"]);
    let found = webhooks.as_array().expect("a list").iter().find(|webhook| webhook["url"] == url);
    found.unwrap_or_else(|| panic!("{url} in {webhooks}")).clone()
}

#[track_caller]
fn log(root: &Root, url: &str) -> Vec<Value> {
    root.json(&["webhook", "log", url, "--limit", "1000", "--json"]).as_array().expect("a list").clone()
}

/// Runs a session from its start to its end.
#[track_caller]
fn run_session(root: &Root, name: &str) {
    root.start_script(name, "exit 0");
    root.run(&["wait", name, "--for", "exit", "--timeout", "20s"]).ok();
}

fn ids(received: &[http::Received]) -> Vec<String> {
    received.iter().map(|request| request.header("webhook-id").to_owned()).collect()
}

#[test]
fn a_delivery_is_signed_and_says_what_happened() {
    let root = root(QUICK);
    let server = Server::start(|_| Reply::Status(204));
    let webhook = add(&root, &server.url(), &["--event", "start,exit,complete"]);
    let secret = webhook["secret"].as_str().expect("a secret");
    assert!(secret.starts_with("whsec_"), "{webhook}");
    let args = ["new", "-d", "-n", "api", "--task", "try it", "--mode", "test", "--user", "mo", "--", "bash", "-c", "exit 0"];
    root.run(&args).ok();
    let received = server.wait(3);
    assert_eq!(server.words(), ["start of api", "exit of api", "complete of api"]);
    for request in &received {
        request.check_signature(secret);
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/hook"));
        assert_eq!(request.header("content-type"), "application/json");
        assert!(request.header("user-agent").starts_with("sessions-tui/"), "{request:?}");
        assert!(request.header("webhook-id").starts_with("msg_"), "{request:?}");
        let sent_at: i64 = request.header("webhook-timestamp").parse().expect("seconds");
        assert!((now() - sent_at).abs() < 60, "{request:?}");
    }
    assert_eq!(ids(&received).into_iter().collect::<HashSet<_>>().len(), 3, "an id of its own for each");
    let session = root.session("api");
    let (first, last) = (received[0].json(), received[2].json());
    assert_eq!((&first["session"]["id"], &first["session"]["status"]), (&session["id"], &Value::from("active")));
    assert_eq!(last["session"]["status"], "completed", "as it is after the event");
    for (key, value) in [("mode", "test"), ("task", "try it"), ("userId", "mo")] {
        assert_eq!(last["session"][key], value, "{last}");
    }
    assert!(last["session"].get("channelId").is_none(), "unknown is left out: {last}");
    let events = root.run(&["events", "api", "--json"]).ok();
    let told: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(last["timestamp"], told[2]["at"], "the time of the event, not of the attempt");
    assert_eq!(first["data"], told[0]["data"]);
    assert!(!received[0].body.contains(": "), "minified: {}", received[0].body);

    wait_until("all of it to be written down", || listed(&root, &server.url())["pending"] == 0);
    let listed = listed(&root, &server.url());
    assert_eq!((&listed["last"]["state"], &listed["last"]["answer"]), (&Value::from("delivered"), &Value::from(204)));
    assert!(listed.get("secret").is_none() && !root.run(&["webhook", "ls"]).ok().contains("whsec_"), "told only once: {listed}");
    let log = log(&root, &server.url());
    assert_eq!(
        log.iter().map(|delivery| delivery["event"].as_str().unwrap_or_default()).collect::<Vec<_>>(),
        ["complete", "exit", "start"]
    );
}

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    i64::try_from(since.as_secs()).expect("this century")
}

#[test]
fn a_filter_decides_who_hears_of_what() {
    let root = root(QUICK);
    let server = Server::start(|_| Reply::Status(200));
    let at = |path: &str| format!("http://{}/{path}", server.address());
    add(&root, &at("life"), &[]);
    add(&root, &at("all"), &["--event", "*", "--thread", "b"]);
    add(&root, &at("user"), &["--event", "start", "--user", "mo", "--mode", "test", "--channel", "general"]);
    let new = |name: &str, more: &[&str]| {
        let mut args = vec!["new", "-d", "-n", name];
        args.extend_from_slice(more);
        args.extend_from_slice(&["--", "bash", "-c", "exit 0"]);
        root.run(&args).ok();
        root.run(&["wait", name, "--for", "exit", "--timeout", "20s"]).ok();
    };
    new("a", &["--user", "mo", "--mode", "test"]);
    new("b", &["--user", "mo", "--mode", "test", "--channel", "general"]);
    wait_until("everything to be delivered", || {
        root.json(&["webhook", "ls", "--json"]).as_array().expect("a list").iter().all(|webhook| webhook["pending"] == 0)
    });
    let told = |path: &str| -> Vec<String> {
        server.received().iter().filter(|request| request.path == format!("/{path}")).map(http::Received::words).collect()
    };
    assert_eq!(told("life"), ["start of a", "complete of a", "start of b", "complete of b"], "the life of a session, if nothing is said");
    assert_eq!(told("all"), ["start of b", "exit of b", "complete of b"]);
    assert_eq!(told("user"), ["start of b"]);
}

#[test]
fn what_fails_is_tried_again_in_order_with_the_same_id() {
    let root = root(QUICK);
    let mut failures = 3;
    let server = Server::start(move |_| {
        failures -= 1;
        if failures >= 0 { Reply::with(500, "", "not \x1b[2Jtoday") } else { Reply::Status(200) }
    });
    let webhook = add(&root, &server.url(), &["--event", "*"]);
    run_session(&root, "api");
    let received = server.wait(6);
    assert_eq!(
        server.words(),
        ["start of api", "start of api", "start of api", "start of api", "exit of api", "complete of api"],
        "nothing overtakes what is tried again"
    );
    let ids = ids(&received);
    assert!(ids[..4].iter().all(|id| *id == ids[0]) && ids[4] != ids[0], "{ids:?}");
    for request in &received {
        request.check_signature(webhook["secret"].as_str().expect("a secret"));
    }
    wait_until("all of it to be written down", || listed(&root, &server.url())["pending"] == 0);
    let first = log(&root, &server.url()).pop().expect("a delivery");
    assert_eq!((first["attempts"].as_u64(), first["answer"].as_u64(), &first["state"]), (Some(4), Some(200), &Value::from("delivered")));
    assert!(first["error"].is_null(), "{first}");
}

#[test]
fn an_endpoint_that_was_down_gets_everything_once_it_is_up() {
    let root = root(QUICK);
    let address = http::closed_port();
    let url = http::url(address);
    add(&root, &url, &[]);
    run_session(&root, "one");
    wait_until("an attempt", || listed(&root, &url)["last"]["attempts"].as_u64() >= Some(2));
    let waiting = listed(&root, &url);
    assert_eq!(waiting["pending"], 2);
    assert!(waiting["last"]["error"].as_str().expect("a reason").to_lowercase().contains("refused"), "{waiting}");
    assert!(root.run(&["webhook", "ls"]).ok().to_lowercase().contains("refused"));
    let server = Server::start_at(address, |_| Reply::Status(200));
    server.wait(2);
    assert_eq!(server.words(), ["start of one", "complete of one"]);
}

#[test]
fn promise_5_nothing_that_was_queued_is_lost_with_the_daemon() {
    const ROUNDS: usize = 4;
    let root = root(QUICK);
    let address = http::closed_port();
    add(&root, &http::url(address), &[]);
    for round in 0..ROUNDS {
        root.start(&format!("s{round}"), &["sleep", "1000"]);
        root.kill_daemon();
        root.run(&["kill", &format!("s{round}")]).ok();
        root.kill_daemon();
    }
    let expected: Vec<String> = (0..ROUNDS).flat_map(|round| [format!("start of s{round}"), format!("complete of s{round}")]).collect();
    let server = Server::start_at(address, |_| Reply::Status(200));
    assert!(server.received().is_empty());
    // the next daemon goes on by itself, and one that dies in the middle of it loses nothing either
    root.run(&["daemon", "start"]).ok();
    server.wait(1);
    root.kill_daemon_at_once();
    root.run(&["daemon", "start"]).ok();
    let distinct = || {
        let mut seen = HashSet::new();
        let received = server.received();
        let words: Vec<String> =
            received.iter().filter(|request| seen.insert(request.header("webhook-id").to_owned())).map(http::Received::words).collect();
        words
    };
    wait_until("all of them", || distinct().len() == expected.len());
    assert_eq!(distinct(), expected, "in order, each at least once");
    wait_until("nothing to wait", || listed(&root, &http::url(address))["pending"] == 0);
}

#[test]
fn a_long_queue_survives_many_kills() {
    const QUEUED: usize = 1000;
    const KILLS: usize = 10;
    let root = root(QUICK);
    let server = Server::start(|_| Reply::Status(200));
    let webhook = add(&root, &server.url(), &[]);
    root.run(&["daemon", "stop"]).ok();
    let database = rusqlite::Connection::open(root.join("state/sessions.db")).expect("opens");
    database
        .execute(
            "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?2)
             INSERT INTO deliveries (id, webhook_id, event, body, state, created_at, queued_at, next_attempt_at)
             SELECT 'msg_' || n, ?1, 'start', '{}', 'pending', 0, 9e15, 0 FROM n",
            (webhook["id"].as_str(), i64::try_from(QUEUED).expect("a small number")),
        )
        .expect("inserts");
    drop(database);
    for kill in 1..=KILLS {
        root.run(&["daemon", "start"]).ok();
        server.wait(kill * QUEUED / (KILLS + 2));
        root.kill_daemon_at_once();
    }
    root.run(&["daemon", "start"]).ok();
    wait_until("nothing to wait", || listed(&root, &server.url())["pending"] == 0);
    let mut seen = HashSet::new();
    let order: Vec<String> = ids(&server.received()).into_iter().filter(|id| seen.insert(id.clone())).collect();
    let expected: Vec<String> = (1..=QUEUED).map(|number| format!("msg_{number}")).collect();
    assert_eq!(order, expected, "each at least once, in order");
    assert!(server.received().len() <= QUEUED + KILLS, "and again only what a kill interrupted");
}

#[test]
fn an_endpoint_that_never_answers_delays_nobody() {
    // longer than the test may take: whoever waited for it would be noticed
    let root = root("[webhooks]\ntimeout = \"60s\"\n");
    let hanging = Server::start(|_| Reply::Hang);
    let server = Server::start(|_| Reply::Status(200));
    add(&root, &hanging.url(), &[]);
    add(&root, &server.url(), &[]);
    for name in ["one", "two", "three"] {
        run_session(&root, name);
    }
    server.wait(6);
    assert_eq!(server.words().last().map(String::as_str), Some("complete of three"));
    hanging.wait(1);
    assert_eq!(hanging.words(), ["start of one"], "one at a time");
    assert_eq!(listed(&root, &hanging.url())["pending"], 6);
}

#[test]
fn answers_that_are_slow_endless_or_missing_end() {
    let root = root("[webhooks]\ntimeout = \"300ms\"\nfirst_retry = \"50ms\"\nmax_retry = \"50ms\"\n");
    let mut replies = [Reply::Hang, Reply::Endless(500), Reply::Endless(200)].into_iter();
    let server = Server::start(move |_| replies.next().unwrap_or(Reply::Status(200)));
    add(&root, &server.url(), &["--event", "start"]);
    root.start("api", &["sleep", "1000"]);
    server.wait(3);
    wait_until("the last to count as delivered", || log(&root, &server.url())[0]["state"] == "delivered");
    // a timeout, a failure, and a success of which only the beginning is read; more of them on a machine that is very busy
    assert!(log(&root, &server.url())[0]["attempts"].as_u64() >= Some(3));
    assert_eq!(ids(&server.received()).into_iter().collect::<HashSet<_>>().len(), 1);
}

#[test]
fn redirects_are_not_followed() {
    let root = root(QUICK);
    let target = Server::start(|_| Reply::Status(200));
    let location = format!("location: {}\r\n", target.url());
    let mut statuses = [301, 302, 303, 307, 308].into_iter();
    let server = Server::start(move |_| match statuses.next() {
        Some(status) => Reply::with(status, &location, ""),
        None => Reply::Status(200),
    });
    add(&root, &server.url(), &["--event", "start"]);
    let redirecting = Server::start({
        let location = format!("location: {}\r\n", target.url());
        move |_| Reply::with(302, &location, "")
    });
    add(&root, &redirecting.url(), &["--event", "never"]);
    root.start("api", &["sleep", "1000"]);
    server.wait(6);
    let sentence = root.run(&["webhook", "test", &redirecting.url()]).refused(1);
    assert!(sentence.contains("302") && sentence.contains("not followed") && sentence.contains(&target.url()), "{sentence}");
    assert!(target.received().is_empty(), "{:?}", target.received());
}

#[test]
fn gone_disables_until_it_is_enabled_again() {
    let root = root(QUICK);
    let server = Server::start(|_| Reply::Status(410));
    add(&root, &server.url(), &["--event", "*"]);
    run_session(&root, "one");
    wait_until("it to be disabled", || listed(&root, &server.url())["disabled"].is_string());
    let disabled = listed(&root, &server.url());
    assert!(disabled["disabled"].as_str().expect("a reason").contains("410"), "{disabled}");
    assert_eq!(disabled["pending"], 0);
    assert!(log(&root, &server.url()).iter().all(|delivery| delivery["state"] == "expired" && delivery["error"].is_string()));
    assert!(root.run(&["webhook", "ls"]).ok().contains("disabled"));
    let before = server.received().len();
    run_session(&root, "two");
    assert_eq!(listed(&root, &server.url())["pending"], 0, "nothing is queued for it");
    server.answer(|_| Reply::Status(200));
    assert!(root.json(&["webhook", "enable", &server.url(), "--json"])["disabled"].is_null());
    run_session(&root, "three");
    server.wait(before + 3);
    assert_eq!(server.words()[before..], ["start of three", "exit of three", "complete of three"]);
}

#[test]
fn an_endpoint_that_asks_for_time_gets_it() {
    let root = root("[webhooks]\nfirst_retry = \"50ms\"\nmax_retry = \"2h\"\n");
    let server = Server::start(|_| Reply::with(429, "retry-after: 3600\r\n", "slow down"));
    add(&root, &server.url(), &["--event", "start"]);
    root.start("api", &["sleep", "1000"]);
    wait_until("the attempt to be written down", || listed(&root, &server.url())["last"]["answer"] == 429);
    let database = rusqlite::Connection::open(root.join("state/sessions.db")).expect("opens");
    let wait: i64 = database.query_row("SELECT next_attempt_at - queued_at FROM deliveries", [], |row| row.get(0)).expect("one delivery");
    assert!((3_600_000_000..4_000_000_000).contains(&wait), "an hour from the attempt, in microseconds: {wait}");
    assert_eq!(server.received().len(), 1);
    // bounded by the settings
    drop(database);
    let quick = root_with_retry_after();
    quick.1.wait(2);
}

/// An endpoint that asks for an hour once, where nothing waits longer than a moment.
fn root_with_retry_after() -> (Root, Server) {
    let root = root(QUICK);
    let mut asked = false;
    let server =
        Server::start(
            move |_| {
                if std::mem::replace(&mut asked, true) { Reply::Status(200) } else { Reply::with(503, "retry-after: 3600\r\n", "") }
            },
        );
    add(&root, &server.url(), &["--event", "start"]);
    root.start("api", &["sleep", "1000"]);
    (root, server)
}

#[test]
fn what_is_too_old_is_given_up_and_the_next_goes_on() {
    let root = root("[webhooks]\nfirst_retry = \"20ms\"\nmax_retry = \"20ms\"\nmax_age = \"300ms\"\n");
    let server = Server::start(|request| Reply::Status(if request.words() == "start of bad" { 500 } else { 200 }));
    add(&root, &server.url(), &["--event", "start"]);
    root.start("bad", &["sleep", "1000"]);
    wait_until("it to be given up", || log(&root, &server.url())[0]["state"] == "expired");
    let given_up = log(&root, &server.url()).remove(0);
    assert!(given_up["attempts"].as_u64() >= Some(1) && given_up["answer"] == 500, "{given_up}");
    assert!(given_up["error"].as_str().expect("a reason").contains("too old: answered 500"), "{given_up}");
    root.start("good", &["sleep", "1000"]);
    wait_until("the next", || log(&root, &server.url())[0]["state"] == "delivered");
    assert!(root.run(&["webhook", "log", &server.url()]).ok().contains("given up"), "for people too");
}

#[test]
fn a_full_queue_drops_what_is_new_and_counts_it() {
    let root = root("");
    let url = http::url(http::closed_port());
    let id = add(&root, &url, &["--event", "start"])["id"].as_str().expect("an id").to_owned();
    let database = rusqlite::Connection::open(root.join("state/sessions.db")).expect("opens");
    database.busy_timeout(crate::support::PATIENCE).expect("a time limit");
    database
        .execute(
            "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 9999)
             INSERT INTO deliveries (id, webhook_id, event, body, state, created_at, queued_at, next_attempt_at)
             SELECT 'msg_' || n, ?1, 'start', '{}', 'pending', 0, 9e15, 9e15 FROM n",
            [&id],
        )
        .expect("inserts");
    drop(database);
    for name in ["last", "beyond", "further"] {
        root.start(name, &["sleep", "1000"]);
    }
    let full = listed(&root, &url);
    assert_eq!((full["pending"].as_u64(), full["dropped"].as_u64()), (Some(10_000), Some(2)));
    assert!(root.run(&["webhook", "ls"]).ok().contains("+2 dropped"));
    assert!(root.run(&["webhook", "rm", &url]).ok().contains("10000 deliveries"));
}

#[test]
fn the_log_is_bounded() {
    let root = root(QUICK);
    let server = Server::start(|_| Reply::Status(200));
    let id = add(&root, &server.url(), &["--event", "start"])["id"].as_str().expect("an id").to_owned();
    let database = rusqlite::Connection::open(root.join("state/sessions.db")).expect("opens");
    database.busy_timeout(crate::support::PATIENCE).expect("a time limit");
    database
        .execute(
            "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1500)
             INSERT INTO deliveries (id, webhook_id, event, body, state, created_at, queued_at, next_attempt_at)
             SELECT 'msg_' || n, ?1, 'start', '', 'delivered', 0, 0, 0 FROM n",
            [&id],
        )
        .expect("inserts");
    root.start("api", &["sleep", "1000"]);
    server.wait(1);
    let kept = || {
        let sql = "SELECT count(*), count(*) FILTER (WHERE body <> '') FROM deliveries WHERE state <> 'pending'";
        database.query_row(sql, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))).expect("counts")
    };
    wait_until("the oldest to go", || kept() == (1000, 0));
    assert_eq!(root.json(&["webhook", "log", &id, "--json"]).as_array().map(Vec::len), Some(50));
}

#[test]
fn a_test_is_a_real_delivery_and_says_how_it_went() {
    let root = root(QUICK);
    let server = Server::start(|_| Reply::Status(200));
    let webhook = add(&root, &server.url(), &[]);
    let id = webhook["id"].as_str().expect("an id");
    assert!(root.run(&["webhook", "test", &id[..30]]).ok().contains("answered 200"));
    let request = server.wait(1).remove(0);
    request.check_signature(webhook["secret"].as_str().expect("a secret"));
    let body = request.json();
    assert_eq!((&body["event"], &body["session"]), (&Value::from("test"), &Value::Null), "{body}");
    assert!(body["data"]["message"].is_string(), "{body}");
    server.answer(|_| Reply::with(418, "", "short and stout"));
    let failed = root.run(&["webhook", "test", id, "--json"]);
    let delivery: Value = serde_json::from_str(&failed.stdout).expect("JSON");
    assert_eq!((&delivery["answer"], &delivery["state"]), (&Value::from(418), &Value::from("expired")));
    assert!(failed.refused(1).contains("short and stout"));
    assert_eq!(log(&root, id).iter().map(|delivery| delivery["answer"].as_u64()).collect::<Vec<_>>(), [Some(418), Some(200)]);
    assert_eq!(listed(&root, &server.url())["last"]["answer"], 418);
    assert_eq!(server.received().len(), 2, "a test is not tried again");
}

#[test]
fn what_cannot_be_told_is_refused_with_a_sentence() {
    let root = root("");
    for (args, word) in [
        (&["ftp://example.com/"][..], "ftp"),
        (&["example.com"], "https://HOST/PATH"),
        (&["http://example.com/"], "--insecure"),
        (&["http://192.168.0.1/"], "--insecure"),
        (&["http://2130706433/"], "--insecure"),
        (&["https://mo:pass@example.com/"], "password"),
        (&["http://169.254.169.254/", "--insecure"], "never"),
        (&["https://[::ffff:169.254.169.254]/"], "never"),
        (&["https://0.0.0.0/"], "never"),
        (&["https://example.com/", "--secret", "hunter2"], "whsec_"),
        (&["https://example.com/", "--event", ""], "event"),
        (&["https://example.com/", "--event", "two words"], "event"),
        (&["https://example.com/", "--user", ""], "user"),
    ] {
        let mut all = vec!["webhook", "add"];
        all.extend_from_slice(args);
        let sentence = root.run(&all).refused(2);
        assert!(sentence.contains(word), "{args:?}: {sentence}");
        assert!(!sentence.contains("hunter2") && !sentence.contains("mo:pass"), "{sentence}");
    }
    assert_eq!(root.json(&["webhook", "ls", "--json"]), Value::Array(Vec::new()), "nothing was added");
    let empty = root.run(&["webhook", "ls"]);
    assert!(empty.code == 0 && empty.stderr.contains("webhook add"), "{empty:?}");
    for command in ["rm", "enable", "test", "log"] {
        assert!(root.run(&["webhook", command, "nothing"]).refused(3).contains("webhook ls"), "{command}");
    }
    // a name that leads to where nothing may go is found out when it is tried
    root.run(&["webhook", "add", "https://2852039166/"]).ok();
    assert!(root.run(&["webhook", "test", "https://2852039166/"]).refused(1).contains("169.254.169.254"));
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    assert!(root.run(&["webhook", "add", "https://example.com/", "--secret", secret]).ok().contains(secret));
    root.run(&["webhook", "add", "http://example.com/", "--insecure"]).ok();
    assert!(root.run(&["webhook", "log", "https://example.com/"]).stderr.contains("webhook test"), "an empty log says what to do");
    let twice = root.run(&["webhook", "rm", "0"]).refused(3);
    assert!(twice.contains("https://example.com/") && twice.contains("more of its id"), "{twice}");
    assert_eq!(root.json(&["webhook", "rm", "https://example.com/", "--json"])["url"], "https://example.com/");
}

#[test]
fn b8_hanging_endpoints_do_not_delay_a_good_one() {
    let root = root("[webhooks]\nfirst_retry = \"50ms\"\nmax_retry = \"100ms\"\ntimeout = \"60s\"\n");
    let hanging = Server::start(|_| Reply::Hang);
    let good = Server::start(|_| Reply::Status(204));
    for number in 0..20 {
        add(&root, &format!("http://{}/{number}", hanging.address()), &["--event", "start"]);
    }
    add(&root, &good.url(), &["--event", "start"]);
    let began = std::time::Instant::now();
    run_session(&root, "api");
    good.wait(1);
    // far below the timeout that the others wait for
    assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
}
