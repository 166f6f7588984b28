//! Names of keys into the bytes a terminal sends for them. Pure.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

pub fn parse(name: &str) -> Result<Bytes, String> {
    bytes(name).map(Bytes).ok_or_else(|| format!("{name:?} is not a key: `sessions-tui send --help` lists them"))
}

fn bytes(name: &str) -> Option<Vec<u8>> {
    let mut chars = name.chars();
    if let (Some(c), None) = (chars.next(), chars.next()) {
        return Some(c.to_string().into_bytes());
    }
    let lower = name.to_lowercase();
    if let Some(rest) = lower.strip_prefix("ctrl-").or_else(|| lower.strip_prefix("c-")) {
        return match rest {
            "space" | "@" => Some(vec![0]),
            "[" => Some(vec![0x1b]),
            "\\" => Some(vec![0x1c]),
            "]" => Some(vec![0x1d]),
            "^" => Some(vec![0x1e]),
            "_" | "/" => Some(vec![0x1f]),
            _ => {
                let mut letters = rest.bytes();
                letters.next().filter(|b| b.is_ascii_lowercase() && letters.next().is_none()).map(|b| vec![b & 0x1f])
            }
        };
    }
    if lower.starts_with("alt-") || lower.starts_with("m-") {
        let rest = name.split_once('-')?.1;
        return Some([vec![0x1b], bytes(rest)?].concat());
    }
    let sequence: &[u8] = match lower.as_str() {
        "enter" | "return" => b"\r",
        "tab" => b"\t",
        "esc" | "escape" => b"\x1b",
        "space" => b" ",
        "backspace" => b"\x7f",
        "up" => b"\x1b[A",
        "down" => b"\x1b[B",
        "right" => b"\x1b[C",
        "left" => b"\x1b[D",
        "home" => b"\x1b[H",
        "end" => b"\x1b[F",
        "insert" => b"\x1b[2~",
        "delete" => b"\x1b[3~",
        "pageup" => b"\x1b[5~",
        "pagedown" => b"\x1b[6~",
        "f1" => b"\x1bOP",
        "f2" => b"\x1bOQ",
        "f3" => b"\x1bOR",
        "f4" => b"\x1bOS",
        "f5" => b"\x1b[15~",
        "f6" => b"\x1b[17~",
        "f7" => b"\x1b[18~",
        "f8" => b"\x1b[19~",
        "f9" => b"\x1b[20~",
        "f10" => b"\x1b[21~",
        "f11" => b"\x1b[23~",
        "f12" => b"\x1b[24~",
        _ => return None,
    };
    Some(sequence.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_bytes_terminals_send() {
        for (name, expected) in [
            ("enter", &b"\r"[..]),
            ("Ctrl-C", b"\x03"),
            ("C-b", b"\x02"),
            ("alt-x", b"\x1bx"),
            ("M-X", b"\x1bX"),
            ("alt-left", b"\x1b\x1b[D"),
            ("f5", b"\x1b[15~"),
            (":", b":"),
            ("ü", "ü".as_bytes()),
        ] {
            assert_eq!(parse(name).expect(name).0, expected, "{name}");
        }
        assert!(parse("hyper-q").is_err());
        assert!(parse("ctrl-").is_err());
        assert!(parse("").is_err());
    }
}
