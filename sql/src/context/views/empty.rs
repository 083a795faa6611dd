//! Catalogs that stand empty, because what they list does not exist here: policies, publications, triggers, functions written by users
//! and so on. Clients join them; the columns are PostgreSQL 15's (expressions and access lists as text).

use super::SystemView;
use crate::types::{Oid, oid};

use oid::{BOOL, BYTEA, CHAR, FLOAT4, INT2, INT2VECTOR, INT4, NAME, OID, OIDVECTOR, REGPROC, TEXT, TEXT_ARRAY};

/// "char"[].
const CHAR_ARRAY: Oid = 1002;
/// oid[].
const OID_ARRAY: Oid = 1028;

const fn empty(oid: Oid, name: &'static str, columns: &'static [(&'static str, Oid)]) -> SystemView {
    SystemView { oid, schema: "pg_catalog", name, columns }
}

/// The views of this module.
#[rustfmt::skip]
pub static VIEWS: &[SystemView] = &[
    empty(3256, "pg_policy", &[
        ("oid", OID), ("polname", NAME), ("polrelid", OID), ("polcmd", CHAR), ("polpermissive", BOOL), ("polroles", OID_ARRAY),
        ("polqual", TEXT), ("polwithcheck", TEXT),
    ]),
    empty(3381, "pg_statistic_ext", &[
        ("oid", OID), ("stxrelid", OID), ("stxname", NAME), ("stxnamespace", OID), ("stxowner", OID), ("stxstattarget", INT4),
        ("stxkeys", INT2VECTOR), ("stxkind", CHAR_ARRAY), ("stxexprs", TEXT),
    ]),
    empty(6104, "pg_publication", &[
        ("oid", OID), ("pubname", NAME), ("pubowner", OID), ("puballtables", BOOL), ("pubinsert", BOOL), ("pubupdate", BOOL),
        ("pubdelete", BOOL), ("pubtruncate", BOOL), ("pubviaroot", BOOL),
    ]),
    empty(6106, "pg_publication_rel", &[
        ("oid", OID), ("prpubid", OID), ("prrelid", OID), ("prqual", TEXT), ("prattrs", INT2VECTOR),
    ]),
    empty(6237, "pg_publication_namespace", &[("oid", OID), ("pnpubid", OID), ("pnnspid", OID)]),
    empty(1255, "pg_proc", &[
        ("oid", OID), ("proname", NAME), ("pronamespace", OID), ("proowner", OID), ("prolang", OID), ("procost", FLOAT4),
        ("prorows", FLOAT4), ("provariadic", OID), ("prosupport", REGPROC), ("prokind", CHAR), ("prosecdef", BOOL),
        ("proleakproof", BOOL), ("proisstrict", BOOL), ("proretset", BOOL), ("provolatile", CHAR), ("proparallel", CHAR),
        ("pronargs", INT2), ("pronargdefaults", INT2), ("prorettype", OID), ("proargtypes", OIDVECTOR),
        ("proallargtypes", OID_ARRAY), ("proargmodes", CHAR_ARRAY), ("proargnames", TEXT_ARRAY), ("proargdefaults", TEXT),
        ("protrftypes", OID_ARRAY), ("prosrc", TEXT), ("probin", TEXT), ("prosqlbody", TEXT), ("proconfig", TEXT_ARRAY),
        ("proacl", TEXT_ARRAY),
    ]),
    empty(3079, "pg_extension", &[
        ("oid", OID), ("extname", NAME), ("extowner", OID), ("extnamespace", OID), ("extrelocatable", BOOL),
        ("extversion", TEXT), ("extconfig", OID_ARRAY), ("extcondition", TEXT_ARRAY),
    ]),
    empty(3466, "pg_event_trigger", &[
        ("oid", OID), ("evtname", NAME), ("evtevent", NAME), ("evtowner", OID), ("evtfoid", OID), ("evtenabled", CHAR),
        ("evttags", TEXT_ARRAY),
    ]),
    empty(2620, "pg_trigger", &[
        ("oid", OID), ("tgrelid", OID), ("tgparentid", OID), ("tgname", NAME), ("tgfoid", OID), ("tgtype", INT2),
        ("tgenabled", CHAR), ("tgisinternal", BOOL), ("tgconstrrelid", OID), ("tgconstrindid", OID), ("tgconstraint", OID),
        ("tgdeferrable", BOOL), ("tginitdeferred", BOOL), ("tgnargs", INT2), ("tgattr", INT2VECTOR), ("tgargs", BYTEA),
        ("tgqual", TEXT), ("tgoldtable", NAME), ("tgnewtable", NAME),
    ]),
    empty(2618, "pg_rewrite", &[
        ("oid", OID), ("rulename", NAME), ("ev_class", OID), ("ev_type", CHAR), ("ev_enabled", CHAR), ("is_instead", BOOL),
        ("ev_qual", TEXT), ("ev_action", TEXT),
    ]),
    empty(2612, "pg_language", &[
        ("oid", OID), ("lanname", NAME), ("lanowner", OID), ("lanispl", BOOL), ("lanpltrusted", BOOL), ("lanplcallfoid", OID),
        ("laninline", OID), ("lanvalidator", OID), ("lanacl", TEXT_ARRAY),
    ]),
    empty(1417, "pg_foreign_server", &[
        ("oid", OID), ("srvname", NAME), ("srvowner", OID), ("srvfdw", OID), ("srvtype", TEXT), ("srvversion", TEXT),
        ("srvacl", TEXT_ARRAY), ("srvoptions", TEXT_ARRAY),
    ]),
    empty(3118, "pg_foreign_table", &[("ftrelid", OID), ("ftserver", OID), ("ftoptions", TEXT_ARRAY)]),
    empty(2328, "pg_foreign_data_wrapper", &[
        ("oid", OID), ("fdwname", NAME), ("fdwowner", OID), ("fdwhandler", OID), ("fdwvalidator", OID), ("fdwacl", TEXT_ARRAY),
        ("fdwoptions", TEXT_ARRAY),
    ]),
    empty(1418, "pg_user_mapping", &[("oid", OID), ("umuser", OID), ("umserver", OID), ("umoptions", TEXT_ARRAY)]),
    empty(6100, "pg_subscription", &[
        ("oid", OID), ("subdbid", OID), ("subskiplsn", TEXT), ("subname", NAME), ("subowner", OID), ("subenabled", BOOL),
        ("subbinary", BOOL), ("substream", BOOL), ("subtwophasestate", CHAR), ("subdisableonerr", BOOL), ("subconninfo", TEXT),
        ("subslotname", NAME), ("subsynccommit", TEXT), ("subpublications", TEXT_ARRAY),
    ]),
    empty(2617, "pg_operator", &[
        ("oid", OID), ("oprname", NAME), ("oprnamespace", OID), ("oprowner", OID), ("oprkind", CHAR), ("oprcanmerge", BOOL),
        ("oprcanhash", BOOL), ("oprleft", OID), ("oprright", OID), ("oprresult", OID), ("oprcom", OID), ("oprnegate", OID),
        ("oprcode", REGPROC), ("oprrest", REGPROC), ("oprjoin", REGPROC),
    ]),
    empty(2616, "pg_opclass", &[
        ("oid", OID), ("opcmethod", OID), ("opcname", NAME), ("opcnamespace", OID), ("opcowner", OID), ("opcfamily", OID),
        ("opcintype", OID), ("opcdefault", BOOL), ("opckeytype", OID),
    ]),
    empty(2753, "pg_opfamily", &[("oid", OID), ("opfmethod", OID), ("opfname", NAME), ("opfnamespace", OID), ("opfowner", OID)]),
    empty(2602, "pg_amop", &[
        ("oid", OID), ("amopfamily", OID), ("amoplefttype", OID), ("amoprighttype", OID), ("amopstrategy", INT2),
        ("amoppurpose", CHAR), ("amopopr", OID), ("amopmethod", OID), ("amopsortfamily", OID),
    ]),
    empty(2603, "pg_amproc", &[
        ("oid", OID), ("amprocfamily", OID), ("amproclefttype", OID), ("amprocrighttype", OID), ("amprocnum", INT2),
        ("amproc", REGPROC),
    ]),
    empty(2605, "pg_cast", &[
        ("oid", OID), ("castsource", OID), ("casttarget", OID), ("castfunc", OID), ("castcontext", CHAR), ("castmethod", CHAR),
    ]),
    empty(2607, "pg_conversion", &[
        ("oid", OID), ("conname", NAME), ("connamespace", OID), ("conowner", OID), ("conforencoding", INT4),
        ("contoencoding", INT4), ("conproc", REGPROC), ("condefault", BOOL),
    ]),
    empty(2600, "pg_aggregate", &[
        ("aggfnoid", REGPROC), ("aggkind", CHAR), ("aggnumdirectargs", INT2), ("aggtransfn", REGPROC), ("aggfinalfn", REGPROC),
        ("aggcombinefn", REGPROC), ("aggserialfn", REGPROC), ("aggdeserialfn", REGPROC), ("aggmtransfn", REGPROC),
        ("aggminvtransfn", REGPROC), ("aggmfinalfn", REGPROC), ("aggfinalextra", BOOL), ("aggmfinalextra", BOOL),
        ("aggfinalmodify", CHAR), ("aggmfinalmodify", CHAR), ("aggsortop", OID), ("aggtranstype", OID), ("aggtransspace", INT4),
        ("aggmtranstype", OID), ("aggmtransspace", INT4), ("agginitval", TEXT), ("aggminitval", TEXT),
    ]),
    empty(3602, "pg_ts_config", &[("oid", OID), ("cfgname", NAME), ("cfgnamespace", OID), ("cfgowner", OID), ("cfgparser", OID)]),
    empty(3600, "pg_ts_dict", &[
        ("oid", OID), ("dictname", NAME), ("dictnamespace", OID), ("dictowner", OID), ("dicttemplate", OID),
        ("dictinitoption", TEXT),
    ]),
    empty(3601, "pg_ts_parser", &[
        ("oid", OID), ("prsname", NAME), ("prsnamespace", OID), ("prsstart", REGPROC), ("prstoken", REGPROC),
        ("prsend", REGPROC), ("prsheadline", REGPROC), ("prslextype", REGPROC),
    ]),
    empty(3764, "pg_ts_template", &[
        ("oid", OID), ("tmplname", NAME), ("tmplnamespace", OID), ("tmplinit", REGPROC), ("tmpllexize", REGPROC),
    ]),
    empty(3501, "pg_enum", &[("oid", OID), ("enumtypid", OID), ("enumsortorder", FLOAT4), ("enumlabel", NAME)]),
    empty(3541, "pg_range", &[
        ("rngtypid", OID), ("rngsubtype", OID), ("rngmultitypid", OID), ("rngcollation", OID), ("rngsubopc", OID),
        ("rngcanonical", REGPROC), ("rngsubdiff", REGPROC),
    ]),
    empty(2396, "pg_shdescription", &[("objoid", OID), ("classoid", OID), ("description", TEXT)]),
    empty(2995, "pg_largeobject_metadata", &[("oid", OID), ("lomowner", OID), ("lomacl", TEXT_ARRAY)]),
    empty(2611, "pg_inherits", &[("inhrelid", OID), ("inhparent", OID), ("inhseqno", INT4), ("inhdetachpending", BOOL)]),
    empty(3350, "pg_partitioned_table", &[("partrelid", OID), ("partstrat", CHAR), ("partnatts", INT2)]),
    empty(2609, "pg_description", &[("objoid", OID), ("classoid", OID), ("objsubid", INT4), ("description", TEXT)]),
];
