//! Results drawn as psql draws them.

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

    fn column(&self, at: usize) -> Column {
        let values = || self.rows.iter().filter_map(|row| row.get(at)?.as_deref());
        let widths = values().map(width).chain([width(&self.columns[at])]);
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
        let room = " ".repeat(self.width.saturating_sub(width(value)));
        let value = one_line(value);
        if self.numbers { format!(" {room}{value} ") } else { format!(" {value}{room} ") }
    }
}

/// A value that holds a line feed stays on its line, with a sign for each.
fn one_line(value: &str) -> String {
    value.replace('\n', "↵")
}

fn width(text: &str) -> usize {
    text.chars().count()
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
}
