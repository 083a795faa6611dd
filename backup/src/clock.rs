//! Wall-clock times as text: microseconds since 1970 to `20261122T015231Z` and to `2026-11-22 01:52:31.000000+00`.

const DAY_US: i64 = 86_400_000_000;

/// Year, month and day of a day since 1970-01-01 (Howard Hinnant, "chrono-compatible low-level date algorithms").
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// The time as part of a name.
pub fn stamp(us: i64) -> String {
    let ((y, m, d), s) = (civil(us.div_euclid(DAY_US)), us.rem_euclid(DAY_US) / 1_000_000);
    format!("{y:04}{m:02}{d:02}T{:02}{:02}{:02}Z", s / 3600, s / 60 % 60, s % 60)
}

/// The time for people.
pub fn show(us: i64) -> String {
    let ((y, m, d), rest) = (civil(us.div_euclid(DAY_US)), us.rem_euclid(DAY_US));
    let s = rest / 1_000_000;
    format!("{y:04}-{m:02}-{d:02} {:02}:{:02}:{:02}.{:06}+00", s / 3600, s / 60 % 60, s % 60, rest % 1_000_000)
}

/// The day since 1970 on which a time falls, in UTC.
pub fn day(us: i64) -> i64 {
    us.div_euclid(DAY_US)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_in_utc() {
        assert_eq!(stamp(0), "19700101T000000Z");
        assert_eq!(stamp(951_826_153_000_000), "20000229T120913Z");
        assert_eq!(show(1_795_312_351_000_042), "2026-11-22 01:52:31.000042+00");
        assert_eq!(stamp(-1), "19691231T235959Z");
    }
}
