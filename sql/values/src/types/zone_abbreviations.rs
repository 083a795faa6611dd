//! The abbreviations of time zones that dates and times may name: those of PostgreSQL's set "Default".

/// What an abbreviation stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Abbreviation {
    /// Seconds east of Greenwich, and whether it is daylight saving time.
    Fixed(i32, bool),
    /// What the zone of this name meant by it at the time in question: the abbreviation has had several offsets.
    Of(&'static str),
}

use Abbreviation::{Fixed, Of};

/// Sorted by name.
#[rustfmt::skip]
pub(super) static ABBREVIATIONS: &[(&str, Abbreviation)] = &[
    ("acdt", Fixed(37800, true)), ("acsst", Fixed(37800, true)), ("acst", Fixed(34200, false)),
    ("act", Fixed(-18000, false)), ("acwst", Fixed(31500, false)), ("adt", Fixed(-10800, true)),
    ("aedt", Fixed(39600, true)), ("aesst", Fixed(39600, true)), ("aest", Fixed(36000, false)),
    ("aft", Fixed(16200, false)), ("akdt", Fixed(-28800, true)), ("akst", Fixed(-32400, false)),
    ("almst", Fixed(25200, true)), ("almt", Fixed(21600, false)), ("amst", Of("Asia/Yerevan")),
    ("amt", Fixed(-14400, false)), ("anast", Of("Asia/Anadyr")), ("anat", Of("Asia/Anadyr")),
    ("arst", Of("America/Argentina/Buenos_Aires")), ("art", Of("America/Argentina/Buenos_Aires")),
    ("ast", Fixed(-14400, false)), ("awsst", Fixed(32400, true)), ("awst", Fixed(28800, false)),
    ("azost", Fixed(0, true)), ("azot", Fixed(-3600, false)), ("azst", Of("Asia/Baku")), ("azt", Of("Asia/Baku")),
    ("bdst", Fixed(7200, true)), ("bdt", Fixed(21600, false)), ("bnt", Fixed(28800, false)),
    ("bort", Fixed(28800, false)), ("bot", Fixed(-14400, false)), ("bra", Fixed(-10800, false)),
    ("brst", Fixed(-7200, true)), ("brt", Fixed(-10800, false)), ("bst", Fixed(3600, true)),
    ("btt", Fixed(21600, false)), ("cadt", Fixed(37800, true)), ("cast", Fixed(34200, false)),
    ("cct", Fixed(28800, false)), ("cdt", Fixed(-18000, true)), ("cest", Fixed(7200, true)),
    ("cet", Fixed(3600, false)), ("cetdst", Fixed(7200, true)), ("chadt", Fixed(49500, true)),
    ("chast", Fixed(45900, false)), ("chut", Fixed(36000, false)), ("ckt", Of("Pacific/Rarotonga")),
    ("clst", Fixed(-10800, true)), ("clt", Of("America/Santiago")), ("cot", Fixed(-18000, false)),
    ("cst", Fixed(-21600, false)), ("cxt", Fixed(25200, false)), ("davt", Of("Antarctica/Davis")),
    ("ddut", Fixed(36000, false)), ("easst", Of("Pacific/Easter")), ("east", Of("Pacific/Easter")),
    ("eat", Fixed(10800, false)), ("edt", Fixed(-14400, true)), ("eest", Fixed(10800, true)),
    ("eet", Fixed(7200, false)), ("eetdst", Fixed(10800, true)), ("egst", Fixed(0, true)),
    ("egt", Fixed(-3600, false)), ("est", Fixed(-18000, false)), ("fet", Fixed(10800, false)),
    ("fjst", Fixed(46800, true)), ("fjt", Fixed(43200, false)), ("fkst", Of("Atlantic/Stanley")),
    ("fkt", Of("Atlantic/Stanley")), ("fnst", Fixed(-3600, true)), ("fnt", Fixed(-7200, false)),
    ("galt", Fixed(-21600, false)), ("gamt", Fixed(-32400, false)), ("gest", Of("Asia/Tbilisi")),
    ("get", Of("Asia/Tbilisi")), ("gft", Fixed(-10800, false)), ("gilt", Fixed(43200, false)),
    ("gmt", Fixed(0, false)), ("gyt", Of("America/Guyana")), ("hkt", Fixed(28800, false)),
    ("hst", Fixed(-36000, false)), ("ict", Fixed(25200, false)), ("idt", Fixed(10800, true)),
    ("iot", Of("Indian/Chagos")), ("irkst", Of("Asia/Irkutsk")), ("irkt", Of("Asia/Irkutsk")),
    ("irt", Fixed(12600, false)), ("ist", Fixed(7200, false)), ("jayt", Fixed(32400, false)),
    ("jst", Fixed(32400, false)), ("kdt", Fixed(36000, true)), ("kgst", Fixed(21600, true)),
    ("kgt", Of("Asia/Bishkek")), ("kost", Of("Pacific/Kosrae")), ("krast", Of("Asia/Krasnoyarsk")),
    ("krat", Of("Asia/Krasnoyarsk")), ("kst", Fixed(32400, false)), ("lhdt", Of("Australia/Lord_Howe")),
    ("lhst", Fixed(37800, false)), ("ligt", Fixed(36000, false)), ("lint", Of("Pacific/Kiritimati")),
    ("lkt", Of("Asia/Colombo")), ("magst", Of("Asia/Magadan")), ("magt", Of("Asia/Magadan")),
    ("mart", Fixed(-34200, false)), ("mawt", Of("Antarctica/Mawson")), ("mdt", Fixed(-21600, true)),
    ("mest", Fixed(7200, true)), ("mesz", Fixed(7200, true)), ("met", Fixed(3600, false)),
    ("metdst", Fixed(7200, true)), ("mez", Fixed(3600, false)), ("mht", Fixed(43200, false)),
    ("mmt", Fixed(23400, false)), ("mpt", Fixed(36000, false)), ("msd", Fixed(14400, true)),
    ("msk", Of("Europe/Moscow")), ("mst", Fixed(-25200, false)), ("must", Fixed(18000, true)),
    ("mut", Fixed(14400, false)), ("mvt", Fixed(18000, false)), ("myt", Fixed(28800, false)),
    ("ndt", Fixed(-9000, true)), ("nft", Fixed(-12600, false)), ("novst", Of("Asia/Novosibirsk")),
    ("novt", Of("Asia/Novosibirsk")), ("npt", Fixed(20700, false)), ("nst", Fixed(-12600, false)),
    ("nut", Of("Pacific/Niue")), ("nzdt", Fixed(46800, true)), ("nzst", Fixed(43200, false)),
    ("nzt", Fixed(43200, false)), ("omsst", Of("Asia/Omsk")), ("omst", Of("Asia/Omsk")), ("pdt", Fixed(-25200, true)),
    ("pet", Fixed(-18000, false)), ("petst", Of("Asia/Kamchatka")), ("pett", Of("Asia/Kamchatka")),
    ("pgt", Fixed(36000, false)), ("pht", Fixed(28800, false)), ("pkst", Fixed(21600, true)),
    ("pkt", Fixed(18000, false)), ("pmdt", Fixed(-7200, true)), ("pmst", Fixed(-10800, false)),
    ("pont", Fixed(39600, false)), ("pst", Fixed(-28800, false)), ("pwt", Fixed(32400, false)),
    ("pyst", Fixed(-10800, true)), ("pyt", Of("America/Asuncion")), ("ret", Fixed(14400, false)),
    ("sadt", Fixed(37800, true)), ("sast", Fixed(7200, false)), ("sct", Fixed(14400, false)),
    ("sgt", Of("Asia/Singapore")), ("taht", Fixed(-36000, false)), ("tft", Fixed(18000, false)),
    ("tjt", Fixed(18000, false)), ("tkt", Of("Pacific/Fakaofo")), ("tmt", Of("Asia/Ashgabat")),
    ("tot", Fixed(46800, false)), ("trut", Fixed(36000, false)), ("tvt", Fixed(43200, false)),
    ("uct", Fixed(0, false)), ("ulast", Fixed(32400, true)), ("ulat", Of("Asia/Ulaanbaatar")),
    ("ut", Fixed(0, false)), ("utc", Fixed(0, false)), ("uyst", Fixed(-7200, true)), ("uyt", Fixed(-10800, false)),
    ("uzst", Fixed(21600, true)), ("uzt", Fixed(18000, false)), ("vet", Of("America/Caracas")),
    ("vlast", Of("Asia/Vladivostok")), ("vlat", Of("Asia/Vladivostok")), ("volt", Of("Europe/Volgograd")),
    ("vut", Fixed(39600, false)), ("wadt", Fixed(28800, true)), ("wakt", Fixed(43200, false)),
    ("wast", Fixed(25200, false)), ("wat", Fixed(3600, false)), ("wdt", Fixed(32400, true)), ("wet", Fixed(0, false)),
    ("wetdst", Fixed(3600, true)), ("wft", Fixed(43200, false)), ("wgst", Fixed(-7200, true)),
    ("wgt", Fixed(-10800, false)), ("xjt", Fixed(21600, false)), ("yakst", Of("Asia/Yakutsk")),
    ("yakt", Of("Asia/Yakutsk")), ("yapt", Fixed(36000, false)), ("yekst", Fixed(21600, true)),
    ("yekt", Of("Asia/Yekaterinburg")), ("z", Fixed(0, false)), ("zulu", Fixed(0, false)),
];

/// The abbreviation of this name, in lower case.
pub(super) fn abbreviation(name: &str) -> Option<Abbreviation> {
    ABBREVIATIONS.binary_search_by_key(&name, |(n, _)| n).ok().map(|at| ABBREVIATIONS[at].1)
}
