//! JSON as lines that fold. Pure.

use std::collections::HashSet;

use serde_json::Value;
use shared::text::visible;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub depth: usize,
    /// Where in the value: what folding remembers.
    pub path: String,
    pub key: String,
    /// What is shown behind the key.
    pub value: String,
    pub folds: Fold,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// A single value.
    Leaf,
    Open,
    Closed,
}

/// Rows of one value, at most: a context may be large.
const MOST_ROWS: usize = 5000;

pub fn rows(value: &Value, closed: &HashSet<String>) -> Vec<Row> {
    let mut rows = Vec::new();
    children(value, 0, "", closed, &mut rows);
    rows
}

fn children(value: &Value, depth: usize, path: &str, closed: &HashSet<String>, rows: &mut Vec<Row>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                row(key, value, depth, path, closed, rows);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                row(&index.to_string(), value, depth, path, closed, rows);
            }
        }
        _ => {}
    }
}

fn row(key: &str, value: &Value, depth: usize, path: &str, closed: &HashSet<String>, rows: &mut Vec<Row>) {
    if rows.len() >= MOST_ROWS {
        return;
    }
    let path = format!("{path}/{key}");
    let (text, folds) = match value {
        Value::Object(map) if map.is_empty() => ("{}".to_owned(), Fold::Leaf),
        Value::Array(items) if items.is_empty() => ("[]".to_owned(), Fold::Leaf),
        Value::Object(map) => (format!("{{{}}}", map.len()), fold(&path, closed)),
        Value::Array(items) => (format!("[{}]", items.len()), fold(&path, closed)),
        Value::String(text) => (format!("{:?}", visible(text)), Fold::Leaf),
        other => (other.to_string(), Fold::Leaf),
    };
    rows.push(Row { depth, path: path.clone(), key: visible(key), value: text, folds });
    if folds == Fold::Open {
        children(value, depth + 1, &path, closed, rows);
    }
}

fn fold(path: &str, closed: &HashSet<String>) -> Fold {
    if closed.contains(path) { Fold::Closed } else { Fold::Open }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_fold() {
        let value = json!({"next": {"step": "test\x1b[31m", "n": 3}, "done": [true, null], "none": {}});
        let all = rows(&value, &HashSet::new());
        let shown: Vec<String> = all.iter().map(|row| format!("{}{} {}", " ".repeat(row.depth), row.key, row.value)).collect();
        assert_eq!(shown, ["next {2}", " step \"test·[31m\"", " n 3", "done [2]", " 0 true", " 1 null", "none {}"]);
        let folded = rows(&value, &HashSet::from(["/next".to_owned()]));
        assert_eq!(folded.len(), 5);
        assert_eq!(folded[0].folds, Fold::Closed);
        assert!(rows(&json!(null), &HashSet::new()).is_empty());
    }
}
