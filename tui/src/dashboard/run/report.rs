//! A panic gives the terminal back and leaves a report.

use std::backtrace::Backtrace;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use shared::paths::Paths;

/// Set before the window is opened: the window's own hook gives the terminal back first.
pub fn on_panic(paths: &Paths) {
    let folder = paths.dashboard().parent().map(Path::to_owned).unwrap_or_default();
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let report = write(&folder, &panic.to_string(), &Backtrace::force_capture().to_string());
        before(panic);
        match report {
            Ok(path) => eprintln!(
                "\nsessions-tui has a fault, and this window had to close; your sessions go on.\nWhat is known of it is in {}",
                path.display()
            ),
            Err(error) => eprintln!(
                "\nsessions-tui has a fault, and this window had to close; your sessions go on. No report could be written: {error}"
            ),
        }
    }));
}

fn write(folder: &Path, panic: &str, backtrace: &str) -> std::io::Result<PathBuf> {
    let now = jiff::Timestamp::now();
    let path = folder.join(format!("fault-{}-{}.txt", now.as_second(), std::process::id()));
    let mut file = std::fs::File::options().write(true).create_new(true).mode(0o600).open(&path)?;
    let terminal = std::env::var("TERM").unwrap_or_default();
    write!(
        file,
        "sessions-tui {} on {} {}, {now}, TERM={terminal}\n\n{panic}\n\n{backtrace}\n",
        shared::VERSION,
        std::env::consts::OS,
        std::env::consts::ARCH
    )?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_says_what_and_where() {
        let folder = std::env::temp_dir().join(format!("sessions-report-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = write(&folder, "index out of bounds", "0: main").expect("writes");
        let text = std::fs::read_to_string(&path).expect("reads");
        assert!(text.contains("index out of bounds") && text.contains(shared::VERSION) && text.contains("0: main"), "{text}");
        assert!(write(Path::new("/nowhere"), "", "").is_err());
        std::fs::remove_dir_all(&folder).expect("removes");
    }
}
