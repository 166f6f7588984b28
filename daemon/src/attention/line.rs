//! Whether a shell waits for a line: from the end of its prompt until one is entered. Pure.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// It marks the end of its prompts; one that does not is looked at from outside once it is quiet.
    is_marked: bool,
    is_asked: bool,
    /// A command of it runs: what is entered is for that.
    runs: bool,
    /// It marks where commands begin.
    tells_commands: bool,
    /// A line was entered before the prompt that will read it was shown.
    is_ahead: bool,
}

impl Line {
    /// OSC 133: `B` ends a prompt, `C` begins a command. `A` and `D` come before a prompt: more of it is on its way.
    pub fn mark(&mut self, mark: char) {
        if mark == 'B' {
            // a prompt that already has its line asks for none
            self.is_asked = !std::mem::take(&mut self.is_ahead);
            self.is_marked = true;
            self.runs = false;
        } else {
            self.is_asked = false;
            self.runs = mark == 'C';
            self.tells_commands |= self.runs;
            self.is_ahead &= !self.runs;
        }
    }

    /// What becomes of it is told by what comes next.
    pub fn entered(&mut self) {
        // where commands are not told, it may be for one
        self.is_ahead = !self.is_asked && !self.runs && (self.tells_commands || !self.is_marked);
        self.is_asked = false;
    }

    pub fn look(&mut self, waits: bool) {
        if !self.is_marked {
            self.is_asked = waits;
            self.is_ahead &= !waits;
        }
    }

    pub fn is_asked_for(self) -> bool {
        self.is_asked
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
            // typed ahead: the prompt that reads it does not count
            ("!AB", false),
            ("!ABCDAB", true),
            ("A!BCDAB", true),
            ("!ABAB", true),
            // for the program that runs, not for the shell
            ("AB!C!DAB", true),
            ("AB!!AB", true),
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
