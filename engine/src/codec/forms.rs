//! Sort forms: for values whose stored bytes do not sort as the values do (intervals, arrays), the bytes that do.
//!
//! The engine does not know what such values mean. The layer above installs their forms, once for the process; it numbers them
//! (`Storage::Sorted`), and the numbers are kept in the catalog.

use std::sync::OnceLock;

/// Makes sort forms (KEY-4).
pub trait SortForms: Send + Sync {
    /// Whether there is a form of this number.
    fn has(&self, form: u8) -> bool;

    /// Appends the form of a stored value. It depends on the number and on the bytes alone: a key is computed again from its row when an
    /// entry is looked for, removed or checked. Bytes that are no value have a form, too.
    fn put(&self, form: u8, value: &[u8], out: &mut Vec<u8>);
}

static FORMS: OnceLock<&'static dyn SortForms> = OnceLock::new();

/// Makes forms known, for the whole process; others are not taken afterwards.
pub fn install(forms: &'static dyn SortForms) {
    let _ = FORMS.set(forms);
}

/// Whether keys can be sorted by the form of a number.
pub fn is_known(form: u8) -> bool {
    FORMS.get().is_some_and(|forms| forms.has(form))
}

/// Appends the form of a value. Where none is known no table has such a key (SHP-4), and statistics sort by the bytes themselves.
pub(super) fn put(form: u8, value: &[u8], out: &mut Vec<u8>) {
    match FORMS.get() {
        Some(forms) => forms.put(form, value, out),
        None => out.extend_from_slice(value),
    }
}
