//! Those who wait for something in a terminal: text on its screen, a prompt of its shell.

use std::time::Duration;

use regex::Regex;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Runtime;

/// A shell that does not mark its prompts is looked at when it has been quiet for this long, if somebody waits.
const LOOK_AFTER: Duration = Duration::from_millis(200);

#[derive(Default)]
pub(super) struct Waiters {
    text: Vec<(Regex, oneshot::Sender<()>)>,
    prompt: Vec<oneshot::Sender<()>>,
    /// Then it is seen from outside whether its shell waits.
    pub(super) look_at: Option<Instant>,
}

impl Waiters {
    /// Whether nobody needs the screen.
    pub(super) fn has_no_text(&self) -> bool {
        self.text.is_empty()
    }

    pub(super) fn look_soon(&mut self) {
        self.prompt.retain(|found| !found.is_closed());
        self.look_at = (!self.prompt.is_empty()).then(|| Instant::now() + LOOK_AFTER);
    }
}

impl Runtime {
    pub(super) async fn wait_for_text(&mut self, pattern: Regex, found: oneshot::Sender<()>) {
        self.waiters.text.push((pattern, found));
        self.check_text().await;
    }

    pub(super) async fn check_text(&mut self) {
        if self.waiters.text.is_empty() {
            return;
        }
        let at = self.consumed;
        let screen = self.picture.catch_up(at).await;
        let text: Vec<String> = (0..screen.size().rows).map(|row| screen.row_text(row)).collect();
        let text = text.join("\n");
        for (pattern, found) in std::mem::take(&mut self.waiters.text) {
            if pattern.is_match(&text) {
                let _ = found.send(());
            } else if !found.is_closed() {
                self.waiters.text.push((pattern, found));
            }
        }
    }

    pub(super) fn wait_for_prompt(&mut self, found: oneshot::Sender<()>) {
        self.waiters.prompt.push(found);
        self.check_prompt();
        self.waiters.look_soon();
    }

    pub(super) fn check_prompt(&mut self) {
        if !self.waiters.prompt.is_empty() && self.facts.evidence(|evidence| evidence.is_asked_for_a_line()) {
            for found in self.waiters.prompt.drain(..) {
                let _ = found.send(());
            }
        }
    }
}
