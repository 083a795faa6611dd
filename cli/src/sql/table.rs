//! Draws results as psql does.

/// The result of a query.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The names of its columns.
    pub columns: Vec<String>,
    /// Its rows; `None` is NULL, which is drawn as nothing.
    pub rows: Vec<Vec<Option<String>>>,
}

impl Table {
    /// Heading, rule, rows, count of rows; numbers stand at the right.
    pub fn draw(&self) -> String {
        let columns: Vec<Column> = (0..self.columns.len()).map(|at| self.column(at)).collect();
        let heading: Vec<String> = columns.iter().zip(&self.columns).map(|(c, name)| c.centred(name)).collect();
        let rules: Vec<String> = columns.iter().map(|column| "-".repeat(column.width + 2)).collect();
        let mut text = format!("{}\n{}\n", heading.join("|").trim_end(), rules.join("+"));
        for row in &self.rows {
            let cells: Vec<String> =
                columns.iter().zip(row).map(|(column, value)| column.cell(value.as_deref().unwrap_or(""))).collect();
            text.push_str(cells.join("|").trim_end());
            text.push('\n');
        }
        let count = self.rows.len();
        text + &format!("({count} row{})\n", if count == 1 { "" } else { "s" })
    }

    /// A line for each value, below a heading for each row.
    pub fn draw_expanded(&self) -> String {
        if self.rows.is_empty() {
            return "(0 rows)\n".to_owned();
        }
        let names = self.columns.iter().map(|name| width(name)).max().unwrap_or(0);
        let values = self.rows.iter().flatten().flatten().map(|value| width(&one_line(value))).max().unwrap_or(0);
        let rule: Vec<char> = format!("{}+{}", "-".repeat(names + 1), "-".repeat(values + 1)).chars().collect();
        let mut text = String::new();
        for (at, row) in self.rows.iter().enumerate() {
            let heading = format!("-[ RECORD {} ]", at + 1);
            text.extend(heading.chars().chain(rule.iter().copied().skip(heading.len())).chain(['\n']));
            for (name, value) in self.columns.iter().zip(row) {
                let room = " ".repeat(names.saturating_sub(width(name)));
                let line = format!("{name}{room} | {}", one_line(value.as_deref().unwrap_or("")));
                text.push_str(line.trim_end());
                text.push('\n');
            }
        }
        text
    }

    fn column(&self, at: usize) -> Column {
        let values = || self.rows.iter().filter_map(|row| row.get(at)?.as_deref());
        let widths = values().map(|value| width(&one_line(value))).chain([width(&self.columns[at])]);
        let numbers = values().next().is_some() && values().all(|value| value.parse::<f64>().is_ok());
        Column { width: widths.max().unwrap_or(0), numbers }
    }
}

/// How a column is laid out.
struct Column {
    width: usize,
    numbers: bool,
}

impl Column {
    fn centred(&self, name: &str) -> String {
        let room = self.width.saturating_sub(width(name));
        format!(" {}{name}{} ", " ".repeat(room / 2), " ".repeat(room - room / 2))
    }

    fn cell(&self, value: &str) -> String {
        let value = one_line(value);
        let room = " ".repeat(self.width.saturating_sub(width(&value)));
        if self.numbers { format!(" {room}{value} ") } else { format!(" {value}{room} ") }
    }
}

/// A value that holds a line feed stays on its line, with a sign for each.
fn one_line(value: &str) -> String {
    value.replace('\n', "↵")
}

fn width(text: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_looks_as_psqls() {
        let row = |a: Option<&str>, b: &str| vec![a.map(str::to_owned), Some(b.to_owned())];
        let table = Table {
            columns: vec!["id".into(), "owner".into()],
            rows: vec![row(Some("1"), "Ada"), row(Some("-20"), "Grace\nH."), row(None, "")],
        };
        let drawn = " id  |  owner\n-----+----------\n   1 | Ada\n -20 | Grace↵H.\n     |\n(3 rows)\n";
        assert_eq!(table.draw(), drawn);
        assert_eq!(Table { columns: vec!["a".into()], rows: vec![] }.draw(), " a\n---\n(0 rows)\n");
    }

    /// Recorded from psql 15.
    #[test]
    fn the_expanded_form_looks_as_psqls() {
        let row = |a: &str, b: &str, c: &str| [a, b, c].map(|cell| Some(cell.to_owned())).to_vec();
        let names = |names: [&str; 3]| names.map(str::to_owned).to_vec();
        let table = Table { columns: names(["a", "bcd", "longer_name"]), rows: vec![row("1", "abc", "y")] };
        let drawn = "-[ RECORD 1 ]----\na           | 1\nbcd         | abc\nlonger_name | y\n";
        assert_eq!(table.draw_expanded(), drawn);
        let long = "a_name_that_is_longer";
        let table = Table { columns: names([long, "日本", "c"]), rows: vec![row("1", "x", "y"), row("", "", "")] };
        let drawn = "-[ RECORD 1 ]---------+--\na_name_that_is_longer | 1\n日本                  | x\nc                     | y\n\
                     -[ RECORD 2 ]---------+--\na_name_that_is_longer |\n日本                  |\nc                     |\n";
        assert_eq!(table.draw_expanded(), drawn);
        assert_eq!(Table { columns: vec!["a".into()], rows: vec![] }.draw_expanded(), "(0 rows)\n");
    }
}
