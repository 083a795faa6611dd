//! What one backup consists of: lines of text, with a sum over them at the end.

use crate::error::{BackupError, Result};
use crate::object::{FORMAT_VERSION, sum};
use clearway_storage::ids::Lsn;

/// An object of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its SHA-256, hex.
    pub sum: String,
}

/// A backup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// Its name.
    pub id: String,
    /// The program that took it.
    pub version: String,
    /// The number of the database.
    pub database: u64,
    /// The epoch in which it was taken.
    pub epoch: u32,
    /// Where that epoch began.
    pub epoch_start: Lsn,
    /// The backup that it rests on; empty: it is a full one.
    pub parent: String,
    /// It has the pages that changed after this; 0: all.
    pub since: Lsn,
    /// Recovery reads the log from here.
    pub scan: Lsn,
    /// Pages have every change below.
    pub redo: Lsn,
    /// The copy is whole with the log up to here.
    pub end: Lsn,
    /// When it began, us since 1970.
    pub begun_us: i64,
    /// When `end` was durable.
    pub ended_us: i64,
    /// Pages that it holds.
    pub pages: u64,
    /// What it consists of.
    pub parts: Vec<Part>,
}

const TITLE: &str = "clearway backup ";

impl Manifest {
    /// Whether it has every page.
    pub fn is_full(&self) -> bool {
        self.parent.is_empty()
    }

    /// Bytes of its objects.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }

    /// The text.
    pub fn encode(&self) -> String {
        let mut text = format!("{TITLE}{FORMAT_VERSION}\n");
        let mut line = |name: &str, value: String| text.push_str(&format!("{name} {value}\n"));
        line("id", self.id.clone());
        line("version", self.version.clone());
        line("database", format!("{:016x}", self.database));
        line("epoch", self.epoch.to_string());
        line("epoch_start", self.epoch_start.to_string());
        if !self.is_full() {
            line("parent", self.parent.clone());
            line("since", self.since.to_string());
        }
        line("scan", self.scan.to_string());
        line("redo", self.redo.to_string());
        line("end", self.end.to_string());
        line("begun_us", self.begun_us.to_string());
        line("ended_us", self.ended_us.to_string());
        line("pages", self.pages.to_string());
        for part in &self.parts {
            line("object", format!("{} {} {}", part.name, part.bytes, part.sum));
        }
        let whole = sum(text.as_bytes());
        format!("{text}sum {whole}\n")
    }

    /// Reads a text back; `name` stands in errors.
    ///
    /// # Errors
    /// Damage, a newer version.
    pub fn decode(name: &str, bytes: &[u8]) -> Result<Manifest> {
        let damaged = |expected: &str, found: &str| BackupError::damaged(name, expected, found);
        let text = std::str::from_utf8(bytes).map_err(|_| damaged("text", "bytes that are none"))?;
        let version = text.strip_prefix(TITLE).and_then(|rest| rest.lines().next()?.parse::<u32>().ok());
        let version = version.ok_or_else(|| damaged("a manifest", "another text"))?;
        if version > FORMAT_VERSION {
            let expected = format!("format version {FORMAT_VERSION} or older");
            return Err(damaged(&expected, &format!("version {version}")));
        }
        let (body, stored) =
            text.trim_end_matches('\n').rsplit_once("\nsum ").ok_or_else(|| damaged("a sum", "none"))?;
        let body = format!("{body}\n");
        let found = sum(body.as_bytes());
        if found != stored || !text.ends_with('\n') {
            return Err(damaged(&format!("sum {stored}"), &found));
        }
        let mut manifest = Manifest::default();
        for line in body.lines().skip(1) {
            manifest.take(line).ok_or_else(|| damaged("a line of a manifest", line))?;
        }
        Ok(manifest)
    }

    fn take(&mut self, line: &str) -> Option<()> {
        let (name, value) = line.split_once(' ')?;
        match name {
            "id" => value.clone_into(&mut self.id),
            "version" => value.clone_into(&mut self.version),
            "database" => self.database = u64::from_str_radix(value, 16).ok()?,
            "epoch" => self.epoch = value.parse().ok()?,
            "epoch_start" => self.epoch_start = Lsn(value.parse().ok()?),
            "parent" => value.clone_into(&mut self.parent),
            "since" => self.since = Lsn(value.parse().ok()?),
            "scan" => self.scan = Lsn(value.parse().ok()?),
            "redo" => self.redo = Lsn(value.parse().ok()?),
            "end" => self.end = Lsn(value.parse().ok()?),
            "begun_us" => self.begun_us = value.parse().ok()?,
            "ended_us" => self.ended_us = value.parse().ok()?,
            "pages" => self.pages = value.parse().ok()?,
            "object" => {
                let mut words = value.split(' ');
                let (name, bytes, sum) = (words.next()?, words.next()?, words.next()?);
                self.parts.push(Part { name: name.to_owned(), bytes: bytes.parse().ok()?, sum: sum.to_owned() });
            }
            _ => return None,
        }
        Some(())
    }
}
