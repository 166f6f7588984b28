//! What the reader of TOML says, in words of people who write settings and not of those who wrote the reader.

/// "unknown field `a`, expected one of `b`, `c`" as a sentence that says what was meant.
pub(super) fn in_words(message: &str) -> String {
    let first = message.lines().next().unwrap_or("this cannot be read");
    let unknown = ["unknown field `", "unknown variant `"].into_iter().find_map(|lead| first.strip_prefix(lead));
    if let Some((word, rest)) = unknown.and_then(|rest| rest.split_once('`')) {
        let known: Vec<&str> = rest.split('`').skip(1).step_by(2).collect();
        return format!("{word:?} is not known here: {}", did_you_mean(word, known.iter().copied()));
    }
    let mismatch = ["invalid type: ", "invalid value: "].into_iter().find_map(|lead| first.strip_prefix(lead));
    if let Some((there, wanted)) = mismatch.and_then(|rest| rest.rsplit_once(", expected ")) {
        return format!("{} cannot be here: write {}", value(there), kind(wanted));
    }
    match first {
        "wanted string or table" => "this cannot be here: write text".to_owned(),
        other => other.to_owned(),
    }
}

/// "integer `3`" and its like.
fn value(there: &str) -> String {
    let quoted = |lead: &str| there.strip_prefix(lead).map(|rest| rest.trim_matches('`'));
    if let Some(number) = quoted("integer ").or_else(|| quoted("floating point ")) {
        return format!("the number {number}");
    }
    if let Some(word) = quoted("boolean ") {
        return word.to_owned();
    }
    match there.strip_prefix("string ") {
        Some(text) => format!("the text {text}"),
        None if there == "sequence" => "a list".to_owned(),
        None if there == "map" => "a table".to_owned(),
        None => there.to_owned(),
    }
}

fn kind(wanted: &str) -> &str {
    match wanted {
        "a string" | "string" => "text",
        "a boolean" => "true or false",
        "u64" | "usize" => "a number from 0 on",
        "u32" => "a number from 0 to 4294967295",
        "u16" => "a number from 0 to 65535",
        "a sequence" => "a list",
        "a map" => "a table",
        other if other.starts_with("struct ") => "a table",
        other => other,
    }
}

/// What a word that is not known may have stood for, or what there is.
pub fn did_you_mean<'w>(word: &str, known: impl Iterator<Item = &'w str>) -> String {
    let known: Vec<&str> = known.collect();
    match nearest(word, known.iter().copied()) {
        Some(name) => format!("did you mean {name:?}?"),
        _ if known.is_empty() => "nothing can be set".to_owned(),
        _ => format!("it can be {}", known.join(", ")),
    }
}

/// The known name that is most like a word, if one is near enough: up to a third of the letters, but at least two, may differ.
pub fn nearest<'w>(word: &str, known: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let allowed = (word.chars().count() / 3).max(2);
    known
        // a name of two letters is two changes away from every other
        .filter(|name| name.chars().count() > allowed)
        .map(|name| (distance(name, word), name))
        .filter(|(letters, _)| *letters <= allowed)
        .min()
        .map(|(_, name)| name)
}

/// How many letters differ.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut before = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = before + usize::from(x != *y);
            before = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(before + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guess_is_made_only_if_it_is_near() {
        let known = ["kill", "rename", "remove"];
        assert_eq!(did_you_mean("kil", known.into_iter()), "did you mean \"kill\"?");
        assert_eq!(did_you_mean("explode", known.into_iter()), "it can be kill, rename, remove");
    }
}
