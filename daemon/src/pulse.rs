//! What the processes of sessions use, and which command is in the foreground of a terminal: one pass over /proc for all
//! who are asked about. Only looks; elsewhere than on Linux there is nothing to look at.

use std::collections::{HashMap, HashSet};
use std::io::Read;

use shared::text::{fit, shell_words, visible};

use crate::holder::{has_role, pids};

/// Columns of a command line: more than any list shows.
const MAX_COMMAND: usize = 200;

/// Whose processes are asked about.
#[derive(Clone, Copy, Debug)]
pub struct Rooted {
    /// Everything below it counts, but not itself: what loses its parent comes back to it.
    pub holder: u32,
    pub program: u32,
}

/// What a tree of processes has come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub cpu_ms: u64,
    pub memory: u64,
    pub processes: u32,
    pub foreground: Option<String>,
}

/// A line of /proc/PID/stat, as far as it is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Process {
    parent: u32,
    group: u32,
    /// The process group in the foreground of its terminal.
    foreground: Option<u32>,
    ticks: u64,
    pages: u64,
    name: String,
}

/// The usage of each, in the order asked; `None` where it cannot be known.
pub fn measure(asked: &[Rooted]) -> Vec<Option<Usage>> {
    if !cfg!(target_os = "linux") || asked.is_empty() {
        return vec![None; asked.len()];
    }
    let processes = read_all();
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for (pid, process) in &processes {
        children.entry(process.parent).or_default().push(*pid);
    }
    asked
        .iter()
        .map(|rooted| {
            let tree = below(rooted.holder, &children, has_role);
            let mut usage = sum(&tree, &processes, rustix::param::clock_ticks_per_second(), rustix::param::page_size() as u64);
            let leader = foreground(rooted.program, &processes);
            usage.foreground =
                leader.and_then(|pid| Some(command_line(&read(pid, "cmdline").unwrap_or_default(), &processes.get(&pid)?.name)));
            Some(usage)
        })
        .collect()
}

fn read_all() -> HashMap<u32, Process> {
    pids().into_iter().filter_map(|pid| Some((pid, parse(&String::from_utf8_lossy(&read(pid, "stat")?))?))).collect()
}

fn read(pid: u32, what: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    // a command line can have megabytes; nobody reads that far
    std::fs::File::open(format!("/proc/{pid}/{what}")).ok()?.take(4096).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The name is in parentheses and may hold anything. A zombie uses nothing any more.
fn parse(stat: &str) -> Option<Process> {
    let (before, after) = stat.rsplit_once(") ")?;
    let name = before.split_once('(')?.1.to_owned();
    // from the state, which is field 3
    let fields: Vec<&str> = after.split_ascii_whitespace().collect();
    if fields.first() == Some(&"Z") {
        return None;
    }
    let number = |index: usize| fields.get(index).and_then(|field| field.parse::<i64>().ok());
    let count = |index: usize| number(index).and_then(|value| u64::try_from(value).ok());
    Some(Process {
        parent: u32::try_from(number(1)?).ok()?,
        group: u32::try_from(number(2)?).ok()?,
        foreground: u32::try_from(number(5)?).ok().filter(|group| *group > 0),
        ticks: count(11)? + count(12)?,
        pages: count(21)?,
        name,
    })
}

/// Everything below `root`; what `is_apart` is left out, with all below it.
fn below(root: u32, children: &HashMap<u32, Vec<u32>>, is_apart: impl Fn(u32) -> bool) -> Vec<u32> {
    let mut found = Vec::new();
    let mut seen = HashSet::from([root]);
    let mut open = vec![root];
    while let Some(pid) = open.pop() {
        for child in children.get(&pid).into_iter().flatten() {
            if seen.insert(*child) && !is_apart(*child) {
                found.push(*child);
                open.push(*child);
            }
        }
    }
    found
}

fn sum(tree: &[u32], processes: &HashMap<u32, Process>, ticks_per_second: u64, page: u64) -> Usage {
    let mut usage = Usage::default();
    for process in tree.iter().filter_map(|pid| processes.get(pid)) {
        usage.cpu_ms += process.ticks * 1000 / ticks_per_second.max(1);
        usage.memory += process.pages * page;
        usage.processes += 1;
    }
    usage
}

/// Who speaks for the foreground of the program's terminal: the leader of that group, or, if it has ended, the oldest of it.
fn foreground(program: u32, processes: &HashMap<u32, Process>) -> Option<u32> {
    let group = processes.get(&program)?.foreground?;
    if processes.contains_key(&group) {
        return Some(group);
    }
    processes.iter().filter(|(_, process)| process.group == group).map(|(pid, _)| *pid).min()
}

/// A command line on one line as a person would type it, safe to show; a process without one has only its name.
fn command_line(arguments: &[u8], name: &str) -> String {
    let text = String::from_utf8_lossy(arguments);
    let text = text.trim_end_matches('\0');
    let words: Vec<String> = text.split('\0').map(str::to_owned).collect();
    let line = match &words[..] {
        _ if text.trim().is_empty() => visible(name),
        // a program that has written its own title there, as servers do
        [title] => visible(title),
        words => shell_words(words),
    };
    fit(&line, MAX_COMMAND)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str =
        "4242 (a) b (c) S 17 4242 4242 34816 4300 4194304 9 0 0 0 250 50 7 7 20 0 1 0 5000 12345 300 18446744073709551615 1 1";

    #[test]
    fn a_line_of_stat_is_understood() {
        let expected = Process { parent: 17, group: 4242, foreground: Some(4300), ticks: 300, pages: 300, name: "a) b (c".into() };
        assert_eq!(parse(STAT), Some(expected));
        assert_eq!(parse(&STAT.replace(") S 17", ") Z 17")), None, "a zombie");
        assert_eq!(parse(&STAT.replace(" 4300 ", " -1 ")).map(|process| process.foreground), Some(None), "no terminal");
        for torn in ["", "1", "1 (x", "1 (x) S", "1 (x) S 1 1 1"] {
            assert_eq!(parse(torn), None, "{torn:?}");
        }
    }

    fn process(parent: u32, group: u32, foreground: Option<u32>) -> Process {
        Process { parent, group, foreground, ticks: 10, pages: 2, name: "x".into() }
    }

    #[test]
    fn a_tree_is_everything_below_but_what_is_apart() {
        let children = HashMap::from([(1, vec![2, 3]), (2, vec![4]), (3, vec![5]), (5, vec![1])]);
        let mut tree = below(1, &children, |pid| pid == 3);
        tree.sort_unstable();
        assert_eq!(tree, [2, 4]);
        let processes = HashMap::from([(2, process(1, 2, None)), (4, process(2, 4, None))]);
        assert_eq!(sum(&tree, &processes, 100, 4096), Usage { cpu_ms: 200, memory: 4 * 4096, processes: 2, foreground: None });
    }

    #[test]
    fn the_foreground_is_its_leader_or_who_is_left() {
        let shell = |foreground| (10, process(1, 10, Some(foreground)));
        assert_eq!(foreground(10, &HashMap::from([shell(10)])), Some(10));
        assert_eq!(foreground(10, &HashMap::from([shell(20), (20, process(10, 20, Some(20)))])), Some(20));
        assert_eq!(foreground(10, &HashMap::from([shell(20), (22, process(10, 20, None)), (21, process(10, 20, None))])), Some(21));
        assert_eq!(foreground(10, &HashMap::from([shell(20)])), None);
        assert_eq!(foreground(11, &HashMap::from([shell(10)])), None);
    }

    #[test]
    fn command_lines_are_one_safe_line() {
        for (arguments, expected) in [
            (&b"npm\0run\0dev\0"[..], "npm run dev"),
            (b"", "kworker"),
            (b"\0\0", "kworker"),
            (b"sh\0-c\0i=0; sleep 1\0", "sh -c 'i=0; sleep 1'"),
            (b"server: worker of me\0\0\0\0", "server: worker of me"),
            (b"vi\0a\nb\x1b[31m\0", "vi 'a·b·[31m'"),
            (b"\xff\xfe\0", "\u{fffd}\u{fffd}"),
        ] {
            assert_eq!(command_line(arguments, "kworker"), expected);
        }
        assert_eq!(shared::text::columns(&command_line("世".repeat(500).as_bytes(), "x")), 199);
    }
}
