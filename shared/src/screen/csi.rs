//! A control sequence and its parameters, read only when asked for.
//! It must not copy: most sequences are looked at once and forgotten.

/// A control sequence, its parameter bytes still as they came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Csi<'a> {
    /// One of `<=>?`, or 0.
    pub prefix: u8,
    /// Digits, `;` and `:` only.
    pub params: &'a [u8],
    pub intermediates: &'a [u8],
    pub last: u8,
}

impl<'a> Csi<'a> {
    /// Splits `ESC [ … final`.
    pub(super) fn parse(sequence: &'a [u8]) -> Csi<'a> {
        let (&last, body) = sequence[2..].split_last().expect("a finished control sequence has a final byte");
        let (prefix, body) = match body.first() {
            Some(&first @ b'<'..=b'?') => (first, &body[1..]),
            _ => (0, body),
        };
        // Intermediates are rare and at the end.
        let mut split = body.len();
        while split > 0 && body[split - 1] < b'0' {
            split -= 1;
        }
        Csi { prefix, params: &body[..split], intermediates: &body[split..], last }
    }

    /// Each parameter with its subparameters.
    pub fn groups(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.params.split(|&byte| byte == b';')
    }

    /// The parameters without subparameters; an absent one is 0.
    pub fn numbers(&self) -> impl Iterator<Item = u16> + use<'a> {
        self.groups().map(|group| number(group.split(|&byte| byte == b':').next().unwrap_or_default()))
    }

    /// Parameter `index`, where absent or 0 means `default`.
    pub fn number_or(&self, index: usize, default: u16) -> u16 {
        match self.numbers().nth(index) {
            None | Some(0) => default,
            Some(value) => value,
        }
    }
}

/// Decimal digits to a number; too large ones stay at the limit.
pub fn number(digits: &[u8]) -> u16 {
    digits.iter().fold(0u16, |value, &digit| value.saturating_mul(10).saturating_add(u16::from(digit.wrapping_sub(b'0').min(9))))
}
