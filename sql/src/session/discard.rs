//! DISCARD.

use super::defining::Sessions;
use super::session::Session;
use crate::context::errors::in_block;
use crate::error::Result;
use crate::syntax::stmt::Discard;
use clearway_ddl::temporary;

/// Runs it; the command tag.
pub(super) async fn discard(session: &mut Session, what: Discard) -> Result<&'static str> {
    let core = session.core.clone();
    Ok(match what {
        Discard::All => {
            if session.shares_transaction() {
                return Err(in_block("DISCARD ALL"));
            }
            session.deallocate(None)?;
            core.set("session_authorization", None, false)?;
            core.settings.lock().reset_all();
            let engine = core.engine.take();
            core.db.transactions().locks().release_session(engine.owner());
            drop(engine);
            *core.sequences.lock() = Default::default();
            temporary::drop_all(&core, &Sessions).await?;
            "DISCARD ALL"
        }
        Discard::Plans => "DISCARD PLANS",
        Discard::Sequences => {
            *core.sequences.lock() = Default::default();
            "DISCARD SEQUENCES"
        }
        Discard::Temp => {
            temporary::drop_all(&core, &Sessions).await?;
            "DISCARD TEMP"
        }
    })
}
