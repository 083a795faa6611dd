//! One request for a part of a copy, as text, and its answer, as bytes: what a connection carries.

use super::start::Start;
use crate::error::StorageError;
use crate::ids::{Lsn, PageId};
use crate::store::Store;
use clearway_base::waits::wall_us;
use std::fmt;

/// A request. Every one may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Begins a copy; answered with a [`Start`].
    Begin,
    /// Pages of a lease: the first, how many, changed after which position; answered with whole pages.
    Pages(u64, PageId, u32, Lsn),
    /// Ends the copying of pages; answered with the copy's end u64 and the wall clock in microseconds since 1970 i64.
    End(u64),
    /// Log of a lease between two positions; answered with some of it or all.
    Log(u64, Lsn, Lsn),
    /// Ends the copy; answered with nothing.
    Leave(u64),
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Request::Begin => f.write_str("begin"),
            Request::Pages(lease, first, count, since) => write!(f, "pages {lease} {first} {count} {since}"),
            Request::End(lease) => write!(f, "end {lease}"),
            Request::Log(lease, from, to) => write!(f, "log {lease} {from} {to}"),
            Request::Leave(lease) => write!(f, "leave {lease}"),
        }
    }
}

impl Request {
    /// Reads a request; none if the text is not one.
    pub fn parse(text: &str) -> Option<Request> {
        let words: Vec<&str> = text.split(' ').collect();
        let number = |at: usize| words.get(at)?.parse::<u64>().ok();
        Some(match (words.first().copied()?, words.len()) {
            ("begin", 1) => Request::Begin,
            ("pages", 5) => {
                let (first, count) = (u32::try_from(number(2)?).ok()?, u32::try_from(number(3)?).ok()?);
                Request::Pages(number(1)?, PageId(first), count, Lsn(number(4)?))
            }
            ("end", 2) => Request::End(number(1)?),
            ("log", 4) => Request::Log(number(1)?, Lsn(number(2)?), Lsn(number(3)?)),
            ("leave", 2) => Request::Leave(number(1)?),
            _ => return None,
        })
    }
}

impl Store {
    /// Answers a request.
    ///
    /// # Errors
    /// What keeps it from being answered.
    pub async fn answer_copy(&self, request: Request) -> Result<Vec<u8>, StorageError> {
        Ok(match request {
            Request::Begin => Start::encode(&self.begin_copy().await?),
            Request::Pages(lease, first, count, since) => self.copy_pages(lease, first, count, since).await?,
            Request::End(lease) => {
                let end = self.end_copy(lease).await?;
                [end.0.to_le_bytes(), wall_us().to_le_bytes()].concat()
            }
            Request::Log(lease, from, to) => self.copy_log(lease, from, to).await?,
            Request::Leave(lease) => {
                self.leave_copy(lease);
                Vec::new()
            }
        })
    }
}
