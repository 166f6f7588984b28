//! The newest hits of a recording, in the order they were recorded. A program that draws the same screen again and again
//! says the same lines: of those the latest is kept, with how often they came. Pure.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A hit that equals one of this many before it is the same one again: about a screenful.
const SCREENFUL: usize = 64;

pub struct Latest<T> {
    entries: VecDeque<Entry<T>>,
    most: usize,
}

struct Entry<T> {
    sum: u64,
    times: u64,
    hit: T,
}

impl<T> Latest<T> {
    pub fn new(most: usize) -> Self {
        Self { entries: VecDeque::new(), most }
    }

    /// Takes the next hit, which has this text.
    pub fn push(&mut self, text: &str, hit: T) {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let sum = hasher.finish();
        let near = self.entries.len().saturating_sub(SCREENFUL);
        let same = (near..self.entries.len()).rev().find(|at| self.entries[*at].sum == sum);
        let before = same.and_then(|at| self.entries.remove(at)).map_or(0, |entry| entry.times);
        self.entries.push_back(Entry { sum, times: before + 1, hit });
        if self.entries.len() > self.most {
            self.entries.pop_front();
        }
    }

    /// All of them, newest first, each with how often it came.
    pub fn newest_first(self) -> impl Iterator<Item = (T, u64)> {
        self.entries.into_iter().rev().map(|entry| (entry.hit, entry.times))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_again_is_one_hit() {
        let mut latest = Latest::new(3);
        for (number, text) in ["old", "gone", "a", "b", "a", "b", "a", "c"].into_iter().enumerate() {
            latest.push(text, number);
        }
        assert_eq!(latest.newest_first().collect::<Vec<_>>(), [(7, 1), (6, 3), (5, 2)]);
        let mut far = Latest::new(1000);
        for number in 0..200 {
            far.push(&(number % 100).to_string(), number);
        }
        assert_eq!(far.newest_first().count(), 200, "beyond a screenful it is another one");
    }
}
