//! Where clients stand that count what they type: each byte of such a stream reaches the program once, however often it is
//! sent. The holder keeps this, since it outlives daemons. Pure.

/// Streams that are remembered: those that typed last. Whoever is forgotten here has not typed for long.
const MOST: usize = 64;

/// Pairs of a stream and how many of its bytes were taken, the latest last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Streams(Vec<(u64, u64)>);

impl Streams {
    pub fn new(known: Vec<(u64, u64)>) -> Self {
        Self(known)
    }

    pub fn known(&self) -> Vec<(u64, u64)> {
        self.0.clone()
    }

    /// How many bytes of a stream were taken.
    pub fn taken(&self, stream: u64) -> u64 {
        self.0.iter().find(|(one, _)| *one == stream).map_or(0, |(_, taken)| *taken)
    }

    /// Of bytes that begin at a place of a stream, those that were not taken before; from now on they are.
    pub fn take<'a>(&mut self, stream: u64, at: u64, bytes: &'a [u8]) -> &'a [u8] {
        let before = self.taken(stream);
        let end = at.saturating_add(bytes.len() as u64);
        self.0.retain(|(one, _)| *one != stream);
        if self.0.len() >= MOST {
            self.0.remove(0);
        }
        self.0.push((stream, before.max(end)));
        let again = usize::try_from(before.saturating_sub(at)).unwrap_or(usize::MAX).min(bytes.len());
        bytes.get(again..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_taken_once() {
        let mut streams = Streams::default();
        assert_eq!(streams.take(7, 0, b"ls -l"), b"ls -l");
        assert_eq!(streams.take(7, 0, b"ls -l\r"), b"\r", "sent again, with more");
        assert_eq!(streams.take(7, 3, b"-l"), b"");
        assert_eq!(streams.taken(7), 6);
        assert_eq!(streams.take(7, 9, b""), b"", "what was dropped on the way is not awaited");
        assert_eq!(streams.take(7, 8, b"xy"), b"y");
        assert_eq!(streams.take(8, 0, b"other"), b"other");
        assert_eq!((streams.taken(7), streams.taken(8), streams.taken(9)), (10, 5, 0));
        for stream in 100..100 + MOST as u64 {
            streams.take(stream, 0, b"x");
        }
        assert_eq!((streams.known().len(), streams.taken(7)), (MOST, 0), "the oldest are forgotten");
    }
}
