//! COPY between a table and the client, in the text form and as csv.

use super::client::{Client, CopyFormat, CopyIn};
use super::session::{Prepared, Session};
use crate::error::{Result, SqlError, code};
use crate::exec::Cx;
use crate::syntax::ast::{Expr, ExprKind, Query, QueryBody, TableRef};
use crate::syntax::stmt::{Copy, CopyEnd, CopySource, Insert, OptionValue, Statement};
use crate::types::text::{self, Conversion};
use crate::types::{Datum, SqlType};
use std::sync::Arc;

/// Rows of COPY FROM that are inserted by one statement.
const BATCH_ROWS: usize = 500;

struct Form {
    csv: bool,
    delimiter: u8,
    null: String,
    header: bool,
    quote: u8,
    escape: u8,
}

fn form(c: &Copy) -> Result<Form> {
    let mut csv = false;
    let (mut delimiter, mut null, mut header, mut quote, mut escape) = (None, None, false, b'"', None);
    for o in &c.options {
        let word = o.as_str().map(str::to_ascii_lowercase);
        let byte = || match o.as_str().map(str::as_bytes) {
            Some([b]) => Ok(*b),
            _ => Err(SqlError::new(
                code::FEATURE_NOT_SUPPORTED,
                format!("COPY {} must be a single one-byte character", o.name),
            )),
        };
        match (o.name.as_str(), word.as_deref()) {
            ("format", Some("text")) => {}
            ("format", Some("csv")) | ("csv", _) => csv = true,
            ("format", Some("binary")) | ("binary", _) => return Err(SqlError::unsupported("COPY in binary").at(o.pos)),
            ("delimiter" | "delimiters", _) => delimiter = Some(byte()?),
            ("null", _) => null = o.as_str().map(str::to_owned),
            ("header", _) => {
                header = match &o.value {
                    Some(OptionValue::Word(w)) if w == "match" => {
                        return Err(SqlError::unsupported("HEADER MATCH").at(o.pos));
                    }
                    _ => o.as_bool().unwrap_or(true),
                }
            }
            ("quote", _) => quote = byte()?,
            ("escape", _) => escape = Some(byte()?),
            // Rows are settled by the engine itself: there is nothing to freeze.
            ("freeze", _) => {}
            ("encoding", Some("utf8" | "utf-8")) => {}
            _ => return Err(SqlError::unsupported(format!("COPY option {}", o.name)).at(o.pos)),
        }
    }
    Ok(Form {
        csv,
        delimiter: delimiter.unwrap_or(if csv { b',' } else { b'\t' }),
        null: null.unwrap_or_else(|| if csv { String::new() } else { "\\N".to_owned() }),
        header,
        quote,
        escape: escape.unwrap_or(quote),
    })
}

/// COPY.
pub async fn copy(
    session: &mut Session,
    prepared: &Arc<Prepared>,
    c: &Copy,
    client: &mut dyn Client,
) -> Result<String> {
    if !matches!(c.end, CopyEnd::Client) {
        return Err(SqlError::unsupported("COPY with a file or program of the server"));
    }
    if c.filter.is_some() {
        return Err(SqlError::unsupported("COPY ... WHERE"));
    }
    let form = form(c)?;
    if c.from {
        copy_from(session, prepared, c, &form, client).await
    } else {
        copy_to(session, prepared, c, &form, client).await
    }
}

/// The INSERT that a COPY amounts to: one row of parameters.
fn as_insert(c: &Copy, session: &Session) -> Result<(Insert, usize)> {
    let CopySource::Table(name, columns) = &c.source else {
        return Err(SqlError::new(code::SYNTAX_ERROR, "COPY FROM needs a table"));
    };
    let (oid, catalog) = super::utility::relation_oid(&session.core, name)?;
    let all = catalog.relation(oid).map_or(0, |r| r.columns.iter().filter(|c| !c.is_dropped()).count());
    let count = if columns.is_empty() { all } else { columns.len() };
    let row = (0..count).map(|i| Expr { kind: Box::new(ExprKind::Param(i as u32 + 1)), pos: 0, height: 1 }).collect();
    let query = Query {
        with: None,
        body: QueryBody::Values(vec![row]),
        order_by: Vec::new(),
        limit: None,
        offset: None,
        locking: Vec::new(),
        height: 1,
        pos: 0,
    };
    let insert = Insert {
        with: None,
        table: TableRef { name: name.clone(), only: false, alias: None },
        columns: columns.clone(),
        overriding_system: Some(true),
        source: Some(Box::new(query)),
        on_conflict: None,
        returning: Vec::new(),
    };
    Ok((insert, count))
}

async fn copy_from(
    session: &mut Session,
    prepared: &Arc<Prepared>,
    c: &Copy,
    form: &Form,
    client: &mut dyn Client,
) -> Result<String> {
    let (insert, columns) = as_insert(c, session)?;
    let statement = Statement::Insert(Box::new(insert));
    let row_insert = session.prepare_statement(statement.clone(), prepared.text.clone(), &[])?;
    session.core.engine.take().wait_reply().await.map_err(crate::context::errors::from_engine)?;
    client.copy_in(CopyFormat { binary: false, columns });
    let mut reader = Lines { pending: Vec::new(), form, skip_header: form.header, line: 0, ended: false };
    let types: Vec<SqlType> = row_insert.types.iter().map(|t| SqlType::new(*t)).collect();
    let (mut count, mut rows) = (0u64, Vec::new());
    let core = session.core.clone();
    let statement = Arc::new(statement);
    loop {
        match client.copy_next().await.map_err(|_| SqlError::new("08006", "connection to client lost"))? {
            CopyIn::Data(data) => reader.pending.extend_from_slice(&data),
            CopyIn::Done => break,
            CopyIn::Failed(why) => return Err(SqlError::new("57014", format!("COPY from stdin failed: {why}"))),
        }
        let catalog = core.catalog();
        let names = core.names(&catalog);
        let format = core.settings.lock().format.clone();
        loop {
            let full = {
                let conversion = Conversion { format: &format, now: 0, names: &names };
                reader.take(&types, columns, &conversion, &mut rows)?
            };
            if !full {
                break;
            }
            count += insert_rows(session, &row_insert, &statement, &mut rows).await?;
        }
        core.backend.interrupt.check()?;
    }
    reader.finish();
    let catalog = core.catalog();
    let names = core.names(&catalog);
    let format = core.settings.lock().format.clone();
    loop {
        let full = {
            let conversion = Conversion { format: &format, now: 0, names: &names };
            reader.take(&types, columns, &conversion, &mut rows)?
        };
        count += insert_rows(session, &row_insert, &statement, &mut rows).await?;
        if !full {
            return Ok(format!("COPY {count}"));
        }
    }
}

/// Inserts rows that have been read, one execution of the prepared row each, in one snapshot.
async fn insert_rows(
    session: &mut Session,
    row_insert: &Prepared,
    statement: &Arc<Statement>,
    rows: &mut Vec<Vec<Datum>>,
) -> Result<u64> {
    let mut count = 0;
    for row in rows.drain(..) {
        let execution = session.start(row_insert, statement, row.into()).await?;
        count += execution.count;
    }
    Ok(count)
}

/// Cuts what the client sends into rows.
struct Lines<'f> {
    pending: Vec<u8>,
    form: &'f Form,
    skip_header: bool,
    line: u64,
    ended: bool,
}

impl Lines<'_> {
    fn finish(&mut self) {
        if !self.pending.is_empty() && self.pending.last() != Some(&b'\n') {
            self.pending.push(b'\n');
        }
    }

    /// Takes rows until there is no whole line left (false) or a batch is full (true).
    fn take(
        &mut self,
        types: &[SqlType],
        columns: usize,
        conversion: &Conversion<'_>,
        rows: &mut Vec<Vec<Datum>>,
    ) -> Result<bool> {
        let mut from = 0;
        let mut full = false;
        while let Some(end) = self.line_end(from) {
            let mut line = &self.pending[from..end];
            from = end + 1;
            self.line += 1;
            if line.last() == Some(&b'\r') {
                line = &line[..line.len() - 1];
            }
            if std::mem::take(&mut self.skip_header) || self.ended {
                continue;
            }
            if line == b"\\." {
                self.ended = true;
                continue;
            }
            let line = std::str::from_utf8(line).map_err(|_| {
                SqlError::new(code::CHARACTER_NOT_IN_REPERTOIRE, "invalid byte sequence for encoding \"UTF8\"")
            })?;
            let fields = if self.form.csv { csv_fields(line, self.form) } else { text_fields(line, self.form) }?;
            if fields.len() > columns {
                return Err(SqlError::new("22P04", "extra data after last expected column"));
            }
            if fields.len() < columns {
                return Err(SqlError::new("22P04", "missing data for a column").detail(format!(
                    "Line {} has {} of {columns} columns.",
                    self.line,
                    fields.len()
                )));
            }
            let mut row = Vec::with_capacity(columns);
            for (field, ty) in fields.iter().zip(types) {
                row.push(match field {
                    None => Datum::Null,
                    Some(s) => text::input(*ty, s, conversion)?,
                });
            }
            rows.push(row);
            if rows.len() >= BATCH_ROWS {
                full = true;
                break;
            }
        }
        self.pending.drain(..from);
        Ok(full)
    }

    /// The end of the line that begins at `from`; in csv a quoted field may hold line ends.
    fn line_end(&self, from: usize) -> Option<usize> {
        let bytes = self.pending.get(from..)?;
        if !self.form.csv {
            return bytes.iter().position(|b| *b == b'\n').map(|i| from + i);
        }
        let mut quoted = false;
        bytes
            .iter()
            .position(|b| {
                quoted ^= *b == self.form.quote;
                *b == b'\n' && !quoted
            })
            .map(|i| from + i)
    }
}

fn text_fields(line: &str, form: &Form) -> Result<Vec<Option<String>>> {
    let mut out = Vec::new();
    for raw in line.split(char::from(form.delimiter)) {
        if raw == form.null {
            out.push(None);
            continue;
        }
        if !raw.contains('\\') {
            out.push(Some(raw.to_owned()));
            continue;
        }
        let mut field = String::with_capacity(raw.len());
        let mut chars = raw.chars();
        while let Some(c) = chars.next() {
            if c != '\\' {
                field.push(c);
                continue;
            }
            field.push(match chars.next() {
                Some('b') => '\u{8}',
                Some('f') => '\u{c}',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some('v') => '\u{b}',
                Some(c @ ('0'..='7' | 'x')) => {
                    return Err(SqlError::unsupported(format!("the escape \\{c} in COPY")));
                }
                Some(c) => c,
                None => '\\',
            });
        }
        out.push(Some(field));
    }
    Ok(out)
}

fn csv_fields(line: &str, form: &Form) -> Result<Vec<Option<String>>> {
    let (quote, escape, delimiter) = (char::from(form.quote), char::from(form.escape), char::from(form.delimiter));
    let mut out = Vec::new();
    let (mut field, mut quoted, mut was_quoted) = (String::new(), false, false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        if quoted {
            if c == escape && chars.peek().is_some_and(|n| *n == quote || *n == escape) {
                field.extend(chars.next());
            } else if c == quote {
                quoted = false;
            } else {
                field.push(c);
            }
        } else if c == quote {
            (quoted, was_quoted) = (true, true);
        } else if c == delimiter {
            let done = std::mem::take(&mut field);
            out.push(if !was_quoted && done == form.null { None } else { Some(done) });
            was_quoted = false;
        } else {
            field.push(c);
        }
    }
    if quoted {
        return Err(SqlError::new("22P04", "unterminated CSV quoted field"));
    }
    out.push(if !was_quoted && field == form.null { None } else { Some(field) });
    Ok(out)
}

async fn copy_to(
    session: &mut Session,
    prepared: &Arc<Prepared>,
    c: &Copy,
    form: &Form,
    client: &mut dyn Client,
) -> Result<String> {
    let statement = match &c.source {
        CopySource::Query(s) => (**s).clone(),
        CopySource::Table(name, columns) => {
            let mut select = String::from("SELECT ");
            if columns.is_empty() {
                select.push('*');
            }
            let list: Vec<String> = columns.iter().map(|(n, _)| crate::context::names::quote(n)).collect();
            select.push_str(&list.join(", "));
            let parts: Vec<String> = name.parts.iter().map(|p| crate::context::names::quote(p)).collect();
            select.push_str(&format!(" FROM {}", parts.join(".")));
            crate::syntax::parse(&select)?.pop().map(|p| p.statement).ok_or_else(|| SqlError::internal("no SELECT"))?
        }
    };
    let inner = session.prepare_statement(statement.clone(), prepared.text.clone(), &[])?;
    let mut execution = session.start(&inner, &statement, Arc::from([])).await?;
    let core = session.core.clone();
    let columns = inner.columns.clone().unwrap_or_default();
    let rows = execution.collect(&core).await?;
    core.engine.take().wait_reply().await.map_err(crate::context::errors::from_engine)?;
    client.copy_out(CopyFormat { binary: false, columns: columns.len() });
    if form.header {
        let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
        client.copy_data(format!("{}\n", names.join(&char::from(form.delimiter).to_string())).as_bytes());
    }
    for row in &rows {
        let line = execution.with_run(&core, |run| {
            let cx = Cx { run, outer: &[] };
            let mut line = String::new();
            for (i, (v, c)) in row.iter().zip(&columns).enumerate() {
                if i > 0 {
                    line.push(char::from(form.delimiter));
                }
                if v.is_null() {
                    line.push_str(&form.null);
                } else {
                    let shown = cx.shown(v, c.ty);
                    put(&shown, form, &mut line);
                }
            }
            line.push('\n');
            line
        });
        client.copy_data(line.as_bytes());
        if client.is_full() {
            client.drain().await.map_err(|_| SqlError::new("08006", "connection to client lost"))?;
        }
    }
    client.copy_out_done();
    Ok(format!("COPY {}", rows.len()))
}

fn put(s: &str, form: &Form, out: &mut String) {
    let (quote, delimiter) = (char::from(form.quote), char::from(form.delimiter));
    if form.csv {
        let needs = s == form.null || s.contains([quote, delimiter, '\n', '\r']);
        if needs {
            out.push(quote);
            for c in s.chars() {
                if c == quote {
                    out.push(char::from(form.escape));
                }
                out.push(c);
            }
            out.push(quote);
        } else {
            out.push_str(s);
        }
        return;
    }
    for c in s.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\u{b}' => out.push_str("\\v"),
            c if c == delimiter => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
}
