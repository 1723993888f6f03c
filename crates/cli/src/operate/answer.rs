//! Owns how an answer is printed: a table for people, JSON for programs, from the same cells. Text from
//! the database is shown without control characters, so that no job can write to an operator's terminal.

use comfy_table::{ContentArrangement, Table, presets};
use leasehold::{Cursor, Result};
use serde_json::{Map, Value, json};

/// What a command has to say.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Rows with the same columns, and where the next page begins.
    Rows { columns: &'static [&'static str], rows: Vec<Vec<Value>>, next: Option<Cursor> },
    /// Names and values of one thing.
    Facts(Vec<(&'static str, Value)>),
    /// Several parts, each with its name.
    Parts(Vec<(&'static str, Self)>),
    /// Several things of one sort.
    Several(&'static str, Vec<Self>),
}

impl Answer {
    pub(crate) fn facts(facts: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        Self::Facts(facts.into_iter().collect())
    }

    /// Prints it to standard output.
    ///
    /// # Errors
    /// `Unavailable` where standard output takes nothing.
    pub(crate) fn print(&self, as_json: bool) -> Result<()> {
        let text = if as_json { format!("{:#}\n", self.json()) } else { self.text() };
        crate::failure::print(text.as_bytes())
    }

    fn json(&self) -> Value {
        match self {
            Self::Rows { columns, rows, next } => {
                let row = |row: &Vec<Value>| -> Value {
                    let cells = columns.iter().zip(row);
                    cells
                        .map(|(name, value)| ((*name).to_owned(), value.clone()))
                        .collect::<Map<_, _>>()
                        .into()
                };
                let next = next.map(|cursor| cursor.to_string());
                json!({ "rows": rows.iter().map(row).collect::<Vec<_>>(), "next": next })
            }
            Self::Facts(facts) => {
                let pairs = facts.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
                pairs.collect::<Map<_, _>>().into()
            }
            Self::Parts(parts) => {
                let pairs = parts.iter().map(|(name, part)| ((*name).to_owned(), part.json()));
                pairs.collect::<Map<_, _>>().into()
            }
            Self::Several(name, all) => {
                let all: Vec<Value> = all.iter().map(Self::json).collect();
                Map::from_iter([((*name).to_owned(), all.into())]).into()
            }
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Rows { rows, .. } if rows.is_empty() => "nothing\n".to_owned(),
            Self::Rows { columns, rows, next } => {
                let mut table = table();
                table.set_header(columns.iter().map(|name| name.replace('_', " ")));
                for row in rows {
                    table.add_row(row.iter().map(shown));
                }
                let more = next.map(|cursor| format!("more: --after {cursor}\n"));
                format!("{table}\n{}", more.unwrap_or_default())
            }
            Self::Facts(facts) => {
                let mut table = table();
                for (name, value) in facts {
                    table.add_row([name.replace('_', " "), shown(value)]);
                }
                format!("{table}\n")
            }
            Self::Several(_, all) => all.iter().map(Self::text).collect::<Vec<_>>().join("\n"),
            Self::Parts(parts) => {
                let texts = parts.iter().map(|(name, part)| format!("{name}\n{}", part.text()));
                texts.collect::<Vec<_>>().join("\n")
            }
        }
    }
}

fn table() -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Dynamic);
    table
}

/// Shows a value to a person.
fn shown(value: &Value) -> String {
    let text = match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join("\n"),
        other => other.to_string(),
    };
    let visible = |c: char| if c.is_control() && c != '\n' { '\u{fffd}' } else { c };
    text.chars().map(visible).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_and_json_hold_the_same_and_no_control_characters() {
        let rows = vec![vec![json!("a\u{1b}[31m"), json!(3)], vec![Value::Null, json!(true)]];
        let answer = Answer::Rows { columns: &["name", "how_many"], rows, next: None };
        let text = answer.text();
        assert!(
            text.contains("how many") && text.contains('-') && !text.contains('\u{1b}'),
            "{text}"
        );
        assert_eq!(answer.json()["rows"][0]["how_many"], 3);
        let empty = Answer::Rows { columns: &["name"], rows: vec![], next: None };
        assert_eq!(empty.text(), "nothing\n");
    }
}
