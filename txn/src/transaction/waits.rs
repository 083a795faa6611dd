//! Waits of a transaction for others that are changing a key.

use clearway_storage::ids::{Lsn, TreeId};

use super::Transaction;
use super::first_place::{FirstPlace, InsertWaits};
use crate::error::TxnError;
use crate::lockmgr::Implicit;

impl Transaction {
    /// Waits for a transaction that is changing the key of a row that is to be inserted; `replaced`: the commit of the row which stood there before, if it has only replaced that.
    /// True: that row refuses the insert (TXN-16).
    pub(super) async fn wait_to_insert(
        &mut self,
        at: (TreeId, &[u8]),
        waits: &mut InsertWaits,
        (writer, replaced): (Implicit, Option<Lsn>),
    ) -> Result<bool, TxnError> {
        match replaced {
            Some(commit) if waits.waited => {
                self.depends_on(commit);
                return Ok(true);
            }
            Some(_) => self.wait_for(writer).await?,
            None => self.wait_at(at, &mut waits.place, writer).await?, // TXN-14
        }
        waits.waited = true;
        Ok(false)
    }

    /// Waits for the end of a transaction that is changing a key, at the first place there. Without that place it waits for it, and if another session had it, for nothing else: the
    /// caller looks at the key again (TXN-14). The caller gives the place up before it waits for anything else (TXN-15).
    ///
    /// # Errors
    /// `Deadlock`.
    pub async fn wait_at(
        &mut self,
        (tree, key): (TreeId, &[u8]),
        place: &mut Option<FirstPlace>,
        writer: Implicit,
    ) -> Result<(), TxnError> {
        if place.is_none() {
            let (taken, waited) = FirstPlace::take(self.all.locks().clone(), self.owner.clone(), (tree, key)).await?;
            *place = Some(taken);
            if waited {
                return Ok(());
            }
        }
        self.wait_for(writer).await
    }
}
