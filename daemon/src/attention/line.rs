//! Whether a shell waits for a line: from the end of its prompt until one is entered. Pure.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// As its marks tell.
    Marked(bool),
    /// It does not mark the end of its prompts: as it looks from outside once it is quiet.
    Seen(bool),
}

impl Default for Line {
    fn default() -> Self {
        Self::Seen(false)
    }
}

impl Line {
    /// OSC 133: `B` ends a prompt. `A` and `D` come before one: more of it is on its way.
    pub fn mark(&mut self, mark: char) {
        match mark {
            'B' => *self = Self::Marked(true),
            _ => self.entered(),
        }
    }

    /// What becomes of it is told by what comes next.
    pub fn entered(&mut self) {
        let (Self::Marked(is_asked) | Self::Seen(is_asked)) = self;
        *is_asked = false;
    }

    pub fn look(&mut self, waits: bool) {
        if let Self::Seen(is_asked) = self {
            *is_asked = waits;
        }
    }

    pub fn is_asked_for(self) -> bool {
        let (Self::Marked(is_asked) | Self::Seen(is_asked)) = self;
        is_asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_asked_for_from_the_prompts_end_until_it_is_entered() {
        // `!` a line is entered, `s` its shell is in front, `p` a program is
        for (what, expected) in [
            ("", false),
            ("A", false),
            ("AB", true),
            ("AB!", false),
            ("AB!s", false),
            ("AB!C", false),
            ("AB!CsD", false),
            ("AB!CDAB", true),
            ("AB!AB", true),
            ("s", true),
            ("s!", false),
            ("s!p", false),
            ("s!ps", true),
            ("As", true),
        ] {
            let mut line = Line::default();
            for step in what.chars() {
                match step {
                    '!' => line.entered(),
                    's' => line.look(true),
                    'p' => line.look(false),
                    mark => line.mark(mark),
                }
            }
            assert_eq!(line.is_asked_for(), expected, "{what}");
        }
    }
}
