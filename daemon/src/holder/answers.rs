//! The framing of a driver's answers: pure, bytes in, answers out. Code that runs in an interpreter can write to the driver's
//! descriptor too, so an answer counts only with the nonce that the holder sent with the exec.

/// Kind, space, ten digits, newline.
const HEADER: usize = 13;

/// Hexadecimal digits.
pub const NONCE: usize = 16;

/// An answer is one frame of the recording at most; a longer one is garbage.
const MAX_ANSWER: usize = 1 << 20;

pub type Nonce = [u8; NONCE];

/// An answer of a driver.
#[derive(Debug, PartialEq)]
pub enum Answer {
    Hello(Vec<u8>),
    Result(Vec<u8>),
    State(Vec<u8>),
    Names(Vec<u8>),
    /// Its code has left something running in the driver's own process.
    Background,
    /// It prints into the new pipes now, or could not open them.
    Switched(bool),
    Unknown,
    /// A driver without nonces wrote garbage: nothing after it can be trusted.
    Nonsense,
}

/// Who may answer.
#[derive(Debug, PartialEq)]
enum Mode {
    /// Drivers of earlier versions: every frame counts.
    Plain,
    /// Before its hello a driver has run no code, and knows no nonce.
    BeforeHello,
    Nonces,
}

#[derive(Debug)]
pub struct Answers {
    mode: Mode,
    arrived: Vec<u8>,
    current: Nonce,
    /// What follows a result (the environment) may arrive after the next exec was sent.
    previous: Nonce,
}

impl Answers {
    pub fn new(has_nonces: bool) -> Self {
        let (current, previous) = (new_nonce(), new_nonce());
        Self { mode: if has_nonces { Mode::BeforeHello } else { Mode::Plain }, arrived: Vec::new(), current, previous }
    }

    /// The nonce to send with a request; none to a driver that knows none.
    pub fn nonce(&self) -> Option<Nonce> {
        (self.mode != Mode::Plain).then_some(self.current)
    }

    /// Makes the nonce of the next exec: a result that comes with an earlier one is ignored.
    pub fn rotate(&mut self) {
        self.previous = std::mem::replace(&mut self.current, new_nonce());
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.arrived.extend_from_slice(bytes);
    }

    pub fn clear(&mut self) {
        self.arrived = Vec::new();
    }

    /// Takes the next complete answer.
    pub fn take(&mut self) -> Option<Answer> {
        if self.mode == Mode::Nonces { self.take_with_nonce() } else { self.take_plain() }
    }

    fn take_plain(&mut self) -> Option<Answer> {
        let header = self.arrived.get(..HEADER)?;
        let Some((kind, length)) = parse_header(header) else {
            self.clear();
            return Some(Answer::Nonsense);
        };
        let payload = self.arrived.get(HEADER..HEADER + length)?.to_vec();
        self.arrived.drain(..HEADER + length);
        let answer = answer_of(kind, payload);
        if self.mode == Mode::BeforeHello && matches!(answer, Answer::Hello(_)) {
            self.mode = Mode::Nonces;
        }
        Some(answer)
    }

    /// Skips whatever does not begin with a nonce of ours.
    fn take_with_nonce(&mut self) -> Option<Answer> {
        loop {
            let is_ours = |window: &[u8]| window == self.current || window == self.previous;
            let Some(at) = self.arrived.windows(NONCE).position(is_ours) else {
                // the last bytes may be the beginning of a nonce
                self.arrived.drain(..self.arrived.len().saturating_sub(NONCE - 1));
                return None;
            };
            self.arrived.drain(..at);
            let header = self.arrived.get(NONCE..NONCE + 1 + HEADER)?;
            let parsed = header.strip_prefix(b" ").and_then(parse_header);
            let Some((kind, length)) = parsed else {
                self.arrived.drain(..NONCE);
                continue;
            };
            let begin = NONCE + 1 + HEADER;
            let payload = self.arrived.get(begin..begin + length)?.to_vec();
            let is_current = self.arrived.starts_with(&self.current);
            self.arrived.drain(..begin + length);
            match answer_of(kind, payload) {
                Answer::Result(_) if !is_current => {}
                answer => return Some(answer),
            }
        }
    }
}

/// The kind and the length of the payload.
fn parse_header(header: &[u8]) -> Option<(u8, usize)> {
    let [kind, b' ', digits @ .., b'\n'] = header else { return None };
    let is_number = digits.iter().all(u8::is_ascii_digit);
    let length = std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse::<usize>().ok()?;
    (length <= MAX_ANSWER).then_some((*kind, length))
}

fn answer_of(kind: u8, payload: Vec<u8>) -> Answer {
    match kind {
        b'h' => Answer::Hello(payload),
        b'r' => Answer::Result(payload),
        b's' => Answer::State(payload),
        b'n' => Answer::Names(payload),
        b'b' => Answer::Background,
        b'o' => Answer::Switched(payload == b"1"),
        _ => Answer::Unknown,
    }
}

/// Without a source of randomness nonces are merely different from each other.
fn new_nonce() -> Nonce {
    static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    let number = getrandom::u64().unwrap_or_else(|_| COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
    let mut nonce = [0; NONCE];
    for (place, digit) in nonce.iter_mut().zip(format!("{number:016x}").bytes()) {
        *place = digit;
    }
    nonce
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(nonce: Nonce, kind: char, payload: &str) -> Vec<u8> {
        let nonce = std::str::from_utf8(&nonce).expect("digits");
        format!("{nonce} {kind} {:010}\n{payload}", payload.len()).into_bytes()
    }

    fn after_hello() -> Answers {
        let mut answers = Answers::new(true);
        answers.push(b"s 0000000001\nxh 0000000002\n{}");
        assert_eq!(answers.take(), Some(Answer::State(b"x".to_vec())));
        assert_eq!(answers.take(), Some(Answer::Hello(b"{}".to_vec())));
        answers
    }

    #[test]
    fn a_driver_without_nonces_is_understood() {
        let mut answers = Answers::new(false);
        assert_eq!(answers.nonce(), None);
        answers.push(b"r 0000000004\n{\"e");
        assert_eq!(answers.take(), None);
        answers.push(b"\"}r");
        assert_eq!(answers.take(), Some(Answer::Result(b"{\"e\"".to_vec())));
        answers.push(b"garbage of a broken driver");
        assert_eq!(answers.take(), Some(Answer::Nonsense));
    }

    #[test]
    fn forged_and_stale_results_are_skipped() {
        let mut answers = after_hello();
        let old = answers.current;
        answers.rotate();
        answers.push(b"r 0000000010\n{\"exit\":0}r 0009999999\n");
        answers.push(&framed(old, 'r', "stale"));
        answers.push(&framed(old, 's', "late state"));
        answers.push(&framed(answers.current, 'r', "true"));
        assert_eq!(answers.take(), Some(Answer::State(b"late state".to_vec())));
        assert_eq!(answers.take(), Some(Answer::Result(b"true".to_vec())));
        assert_eq!(answers.take(), None);
    }

    #[test]
    fn answers_are_found_however_they_are_cut() {
        let mut answers = after_hello();
        answers.rotate();
        let mut bytes = answers.current.to_vec();
        bytes.extend_from_slice(b" r 00000x0001\n");
        bytes.extend_from_slice(&framed(answers.current, 'r', "true"));
        let mut found = Vec::new();
        for byte in bytes {
            answers.push(&[byte]);
            found.extend(answers.take());
        }
        assert_eq!(found, [Answer::Result(b"true".to_vec())]);
    }
}
