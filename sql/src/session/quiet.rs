//! A client that is not sent a row description: with the extended protocol Describe has sent it.

use super::client::{Client, ClientFuture, Column, CopyFormat, CopyIn};
use crate::error::SqlError;
use crate::types::Oid;

/// Passes everything on but `row_description`.
pub struct Quiet<'a>(pub &'a mut dyn Client);

impl Client for Quiet<'_> {
    fn row_description(&mut self, _: &[Column<'_>]) {}
    fn no_data(&mut self) {
        self.0.no_data();
    }
    fn parameter_description(&mut self, types: &[Oid]) {
        self.0.parameter_description(types);
    }
    fn row(&mut self, fields: usize, write: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {
        self.0.row(fields, write);
    }
    fn command_complete(&mut self, tag: &str) {
        self.0.command_complete(tag);
    }
    fn empty_query(&mut self) {
        self.0.empty_query();
    }
    fn portal_suspended(&mut self) {
        self.0.portal_suspended();
    }
    fn notice_now(&mut self, severity: &'static str, message: &SqlError) {
        self.0.notice_now(severity, message);
    }

    fn notice(&mut self, severity: &'static str, message: &SqlError) {
        self.0.notice(severity, message);
    }
    fn parameter_status(&mut self, name: &str, value: &str) {
        self.0.parameter_status(name, value);
    }
    fn copy_out(&mut self, format: CopyFormat) {
        self.0.copy_out(format);
    }
    fn copy_data(&mut self, data: &[u8]) {
        self.0.copy_data(data);
    }
    fn copy_out_done(&mut self) {
        self.0.copy_out_done();
    }
    fn copy_in(&mut self, format: CopyFormat) {
        self.0.copy_in(format);
    }
    fn copy_next(&mut self) -> ClientFuture<'_, CopyIn> {
        self.0.copy_next()
    }
    fn is_full(&self) -> bool {
        self.0.is_full()
    }
    fn drain(&mut self) -> ClientFuture<'_, ()> {
        self.0.drain()
    }
}
