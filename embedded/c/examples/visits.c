/* Counts visits: cc -Wall -Wextra visits.c $(pkg-config --cflags --libs clearway) */
#include <clearway.h>
#include <stdio.h>

static int fail(clearway *db, const char *what) {
    fprintf(stderr, "%s: %s (SQLSTATE %s)\n", what, clearway_errmsg(db), clearway_sqlstate(db));
    clearway_close(db);
    return 1;
}

int main(int argc, char **argv) {
    clearway *db;
    clearway_stmt *stmt;
    const char *pages[] = {"/", "/about", "/"};

    if (clearway_open(argc > 1 ? argv[1] : ":memory:", &db) != CLEARWAY_OK) return fail(db, "open");
    if (clearway_exec(db, "CREATE TABLE IF NOT EXISTS visits (page text PRIMARY KEY, n bigint NOT NULL)", NULL, NULL) != CLEARWAY_OK)
        return fail(db, "create");
    clearway_prepare(db, "INSERT INTO visits VALUES (?, 1) ON CONFLICT (page) DO UPDATE SET n = visits.n + 1", &stmt);
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        clearway_bind_text(stmt, 1, pages[i], -1);
        if (clearway_step(stmt) != CLEARWAY_DONE) return fail(db, "insert");
        clearway_reset(stmt);
    }
    clearway_finalize(stmt);
    clearway_prepare(db, "SELECT page, n FROM visits ORDER BY page", &stmt);
    while (clearway_step(stmt) == CLEARWAY_ROW)
        printf("%s %lld\n", clearway_column_text(stmt, 0), (long long)clearway_column_int64(stmt, 1));
    clearway_finalize(stmt);
    return clearway_close(db) == CLEARWAY_OK ? 0 : 1;
}
