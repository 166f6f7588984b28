//! Why a state is thought: every piece of evidence that is there, what it says by itself, and what would change it.

use jiff::Timestamp;
use shared::attention::{Attention, Clue, Needs};

use super::{Evidence, HIDDEN_LINE, Moment, NOT_SINCE_TYPED, Sign, Watched, asks_for_approval, needs, progressing, reported};

const CHANGES_REPORT: &str = "its next report, the end of the program, or the next prompt of the shell";
const CHANGES_HOOK: &str = "its next hook, a report of its own, the next prompt of the shell; ten minutes of silence while it works";
const CHANGES_CALL: &str = "input, or a dismissal; of a bell also a look; a report or hook that says more";
const CHANGES_TITLE: &str = "another title; a hook or a report of the agent itself, which count more than a rule for its title";
const CHANGES_PROGRESS: &str = "the next progress, or the next prompt";
const CHANGES_SHELL: &str = "the shell's next mark";
const CHANGES_LINE: &str = "something is typed, or its terminal shows what is typed again";
const CHANGES_SCREEN: &str = "another screen; anything the agent says itself: a rule for its screen is the weakest evidence";
const CHANGES_FRONT: &str = "another program has the terminal";
const CHANGES_TYPED: &str = "it says anything";

impl Evidence {
    /// The strongest first; the one that decided is marked by the caller's own answer.
    pub fn explain(&self, watched: Watched, moment: Moment) -> Vec<Clue> {
        let decided = self.needs(watched, moment);
        let mut clues = Vec::new();
        let mut add = |source: &str, weight: u8, found: Needs, changes: &str, ignored: Option<&str>| {
            let Needs { state, since, why } = found;
            let decides = ignored.is_none()
                && decided.as_ref().is_some_and(|decided| (decided.state, decided.since, &decided.why) == (state, since, &why));
            let ignored = ignored.map(str::to_owned);
            clues.push(Clue {
                source: source.to_owned(),
                weight,
                state,
                at: since,
                text: why,
                changes: changes.to_owned(),
                ignored,
                decides,
            });
        };
        for (since, report, app) in self.reports.all() {
            add("OSC 7501", 90, reported(since, report, app, watched), CHANGES_REPORT, None);
        }
        if let Some(hook) = &self.hook {
            let ignored = self
                .believed_hook(moment)
                .is_none()
                .then_some("it is not believed any more: nothing has come of it, or something says otherwise");
            add("hook", 80, hook.needs(watched), CHANGES_HOOK, ignored);
        }
        let seen = |at: Timestamp| watched.has_seen(at).then_some("somebody has seen it");
        let dismissed = |at: Timestamp| {
            let is_shown = watched == Watched::Now;
            is_shown.then_some("a client has control and shows it").or(self.is_dismissed(at).then_some("it was dismissed"))
        };
        if let Some((at, text)) = &self.notification {
            let state = if asks_for_approval(text) { Attention::WaitingApproval } else { Attention::WaitingAnswer };
            add("notification", 60, needs(state, *at, text), CHANGES_CALL, dismissed(*at));
        }
        if let Some(at) = self.bell {
            add("bell", 60, needs(Attention::WaitingAnswer, at, "the bell rang"), CHANGES_CALL, seen(at));
        }
        if let Some(sign) = self.title.as_ref().filter(|sign| !sign.is_weak) {
            add("title", 50, self.signed(sign, watched), CHANGES_TITLE, self.why_ignored(sign));
        }
        if let Some((since, progress)) = self.progress {
            add("OSC 9;4", 50, progressing(since, progress), CHANGES_PROGRESS, None);
        }
        if let Some(found) = self.at_prompt() {
            add("OSC 133", 40, found, CHANGES_SHELL, None);
        }
        if let Some(at) = self.hidden_line {
            add("terminal", 35, needs(Attention::WaitingAnswer, at, HIDDEN_LINE), CHANGES_LINE, None);
        }
        if let Some(sign) = &self.screen {
            let ignored = self.why_ignored(sign).or((sign.asks() && self.is_screen_answered).then_some("input has arrived since"));
            add("screen", 25, self.signed(sign, watched), CHANGES_SCREEN, ignored);
        }
        if let Some(sign) = self.title.as_ref().filter(|sign| sign.is_weak) {
            add("title", 22, self.signed(sign, watched), CHANGES_TITLE, self.why_ignored(sign));
        }
        if let Some(found) = self.in_command() {
            add("OSC 133", 20, found, CHANGES_SHELL, None);
        }
        if let Some(found) = self.in_front() {
            add("process", 10, found, CHANGES_FRONT, None);
        }
        if let Some(at) = self.answered {
            add("typed", 5, needs(Attention::Unknown, at, NOT_SINCE_TYPED), CHANGES_TYPED, None);
        }
        clues
    }

    fn why_ignored(&self, sign: &Sign) -> Option<&'static str> {
        (sign.asks() && self.is_dismissed(sign.at)).then_some("it was dismissed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::HookState;
    use crate::attention::Hooked;
    use shared::screen::{Event, Located};

    #[test]
    fn everything_that_is_known_is_told_and_one_piece_decides() {
        let at = |second| Timestamp::from_second(second).expect("a time");
        let said = |event| [Located { start: 0, end: 0, event }];
        let mut evidence = Evidence::default();
        let moment = Moment { now: at(10), quiet_since: Some(at(9)) };
        assert_eq!(evidence.explain(Watched::Now, moment), []);
        evidence.hear(&said(Event::Prompt { mark: 'C', rest: String::new() }), at(1));
        evidence.hear(&said(Event::Bell), at(2));
        evidence.hooked(Hooked { agent: "Codex".into(), state: HookState::State(Attention::Working), text: None, at: at(3) });
        let told = |watched| {
            let clues = evidence.explain(watched, moment);
            clues.into_iter().map(|clue| (clue.source, clue.decides, clue.ignored.is_some())).collect::<Vec<_>>()
        };
        let expected = |seen| vec![("hook".to_owned(), true, false), ("bell".into(), false, seen), ("OSC 133".into(), false, false)];
        assert_eq!(told(Watched::Since(None)), expected(false));
        assert_eq!(told(Watched::Now), expected(true));
        evidence.hear(&said(Event::Status("state=blocked:app=codex:kind=permission".into())), at(4));
        let first = evidence.explain(Watched::Now, moment).into_iter().next().expect("one");
        assert_eq!((first.source.as_str(), first.state, first.decides), ("OSC 7501", Attention::WaitingApproval, true));
    }
}
