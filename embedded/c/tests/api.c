/* Each check prints its line when it fails; the last line is `N passed, N failed`. */
#define _DEFAULT_SOURCE /* usleep */
#include <clearway.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int passed, failed;

#define CHECK(condition)                                              \
    do {                                                              \
        if (condition) {                                              \
            passed++;                                                 \
        } else {                                                      \
            failed++;                                                 \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);    \
        }                                                             \
    } while (0)

static int count_rows(void *arg, int columns, char **values, char **names) {
    int *rows = arg;
    (void)values;
    CHECK(columns == 2 && strcmp(names[0], "a") == 0);
    return ++*rows == 3;
}

static void values_and_rows(void) {
    clearway *db;
    clearway_stmt *stmt;
    int rows = 0;

    CHECK(clearway_open(":memory:", &db) == CLEARWAY_OK);
    CHECK(clearway_exec(db, "CREATE TABLE t (a bigint, b text, c bytea, d float8, e date)", NULL, NULL) == CLEARWAY_OK);
    CHECK(clearway_prepare(db, "INSERT INTO t VALUES (?, ?, ?, ?, ?)", &stmt) == CLEARWAY_OK);
    for (int i = 0; i < 1000; i++) {
        CHECK(clearway_bind_int64(stmt, 1, i) == CLEARWAY_OK);
        CHECK(clearway_bind_text(stmt, 2, "text and more", 4) == CLEARWAY_OK);
        CHECK(clearway_bind_blob(stmt, 3, "\0\1", 2) == CLEARWAY_OK);
        CHECK(clearway_bind_double(stmt, 4, 0.5) == CLEARWAY_OK);
        CHECK(clearway_bind_text(stmt, 5, "2024-02-29", -1) == CLEARWAY_OK);
        CHECK(clearway_step(stmt) == CLEARWAY_DONE);
        CHECK(clearway_changes(db) == 1);
        CHECK(clearway_reset(stmt) == CLEARWAY_OK);
    }
    CHECK(clearway_clear_bindings(stmt) == CLEARWAY_OK);
    CHECK(clearway_bind_null(stmt, 5) == CLEARWAY_OK);
    CHECK(clearway_bind_int64(stmt, 0, 1) == CLEARWAY_MISUSE && clearway_bind_int64(stmt, 1000000, 1) == CLEARWAY_MISUSE);
    CHECK(clearway_step(stmt) == CLEARWAY_DONE);
    CHECK(clearway_finalize(stmt) == CLEARWAY_OK);

    CHECK(clearway_prepare(db, "SELECT * FROM t ORDER BY a NULLS FIRST", &stmt) == CLEARWAY_OK);
    CHECK(clearway_column_int64(stmt, 0) == 0 && clearway_column_text(stmt, 0) == NULL);
    while (clearway_step(stmt) == CLEARWAY_ROW) {
        if (rows == 0) {
            CHECK(clearway_column_count(stmt) == 5 && strcmp(clearway_column_name(stmt, 4), "e") == 0);
            CHECK(clearway_column_type(stmt, 0) == CLEARWAY_NULL && clearway_column_text(stmt, 0) == NULL);
        } else {
            CHECK(clearway_column_type(stmt, 0) == CLEARWAY_INTEGER && clearway_column_int64(stmt, 0) == rows - 1);
            CHECK(clearway_column_type(stmt, 1) == CLEARWAY_TEXT && strcmp(clearway_column_text(stmt, 1), "text") == 0);
            CHECK(clearway_column_type(stmt, 2) == CLEARWAY_BLOB && clearway_column_bytes(stmt, 2) == 2);
            CHECK(memcmp(clearway_column_blob(stmt, 2), "\0\1", 2) == 0);
            CHECK(clearway_column_type(stmt, 3) == CLEARWAY_FLOAT && clearway_column_double(stmt, 3) == 0.5);
            CHECK(strcmp(clearway_column_text(stmt, 4), "2024-02-29") == 0);
            CHECK(clearway_column_type(stmt, 5) == CLEARWAY_NULL && clearway_column_text(stmt, -1) == NULL);
        }
        rows++;
    }
    CHECK(rows == 1001);
    CHECK(clearway_finalize(stmt) == CLEARWAY_OK);
    rows = 0;
    CHECK(clearway_exec(db, "SELECT a, b FROM t", count_rows, &rows) == CLEARWAY_OK && rows == 3);
    CHECK(clearway_close(db) == CLEARWAY_OK);
}

static void errors(void) {
    clearway *db;
    clearway_stmt *stmt;

    CHECK(clearway_open(":memory:", &db) == CLEARWAY_OK);
    CHECK(clearway_exec(db, "CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1)", NULL, NULL) == CLEARWAY_OK);
    CHECK(clearway_exec(db, "INSERT INTO t VALUES (1)", NULL, NULL) == CLEARWAY_CONSTRAINT);
    CHECK(strcmp(clearway_sqlstate(db), "23505") == 0 && strstr(clearway_errmsg(db), "t_pkey") != NULL);
    CHECK(clearway_exec(db, "SELEC", NULL, NULL) == CLEARWAY_ERROR && strcmp(clearway_sqlstate(db), "42601") == 0);
    CHECK(clearway_exec(db, "BEGIN", NULL, NULL) == CLEARWAY_OK && clearway_in_transaction(db) == 1);
    CHECK(clearway_exec(db, "ROLLBACK", NULL, NULL) == CLEARWAY_OK && clearway_in_transaction(db) == 0);
    CHECK(strcmp(clearway_sqlstate(db), "00000") == 0);
    CHECK(clearway_prepare(db, "SELECT 1 / (a - 1) FROM t", &stmt) == CLEARWAY_OK);
    CHECK(clearway_step(stmt) == CLEARWAY_ERROR && strcmp(clearway_sqlstate(db), "22012") == 0);
    CHECK(clearway_close(db) == CLEARWAY_OK);
    CHECK(clearway_open("/dev/null/nowhere", &db) == CLEARWAY_CANTOPEN && strlen(clearway_errmsg(db)) > 0);
    CHECK(clearway_exec(db, "SELECT 1", NULL, NULL) == CLEARWAY_MISUSE);
    CHECK(clearway_close(db) == CLEARWAY_OK);
}

static void misuse(void) {
    clearway *db, *other;
    clearway_stmt *stmt, *second;

    CHECK(clearway_open(NULL, &db) == CLEARWAY_MISUSE);
    clearway_close(db);
    CHECK(clearway_open(":memory:", NULL) == CLEARWAY_MISUSE);
    CHECK(clearway_close(NULL) == CLEARWAY_MISUSE && clearway_errmsg(NULL) == NULL);
    CHECK(clearway_finalize(NULL) == CLEARWAY_MISUSE && clearway_step(NULL) == CLEARWAY_MISUSE);
    CHECK(clearway_open(":memory:", &db) == CLEARWAY_OK);
    CHECK(clearway_exec(db, NULL, NULL, NULL) == CLEARWAY_MISUSE);
    CHECK(clearway_prepare(db, "SELECT 1", NULL) == CLEARWAY_MISUSE);
    CHECK(clearway_prepare(db, "SELECT generate_series(1, 2000)", &stmt) == CLEARWAY_OK);
    CHECK(clearway_step(stmt) == CLEARWAY_ROW);
    CHECK(clearway_bind_int64(stmt, 1, 1) == CLEARWAY_MISUSE);
    CHECK(clearway_prepare(db, "SELECT 2", &second) == CLEARWAY_OK);
    CHECK(clearway_step(second) == CLEARWAY_ROW && clearway_column_int64(second, 0) == 2);
    CHECK(clearway_finalize(second) == CLEARWAY_OK && clearway_finalize(second) == CLEARWAY_MISUSE);
    CHECK(clearway_step(second) == CLEARWAY_MISUSE);
    CHECK(clearway_open(":memory:", &other) == CLEARWAY_OK);
    CHECK(clearway_close(db) == CLEARWAY_OK && clearway_close(db) == CLEARWAY_MISUSE);
    CHECK(clearway_step(stmt) == CLEARWAY_MISUSE && clearway_finalize(stmt) == CLEARWAY_MISUSE);
    CHECK(clearway_exec(db, "SELECT 1", NULL, NULL) == CLEARWAY_MISUSE && clearway_interrupt(db) == CLEARWAY_MISUSE);
    CHECK(clearway_exec(other, "SELECT 1", NULL, NULL) == CLEARWAY_OK);
    CHECK(clearway_close(other) == CLEARWAY_OK);
}

static int code_of_sleeper;

static void *sleeper(void *db) {
    /* The other thread asks now and then, and has the connection while it does. */
    do {
        code_of_sleeper = clearway_exec(db, "SELECT pg_sleep(600)", NULL, NULL);
    } while (code_of_sleeper == CLEARWAY_MISUSE);
    return NULL;
}

static void threads(void) {
    clearway *db;
    pthread_t thread;
    int misused = 0, code;

    CHECK(clearway_open(":memory:", &db) == CLEARWAY_OK);
    pthread_create(&thread, NULL, sleeper, db);
    /* While the other thread is at work, the connection can't be used or closed, and can be interrupted. */
    while (misused < 3) {
        code = clearway_exec(db, "SELECT 1", NULL, NULL);
        misused += code == CLEARWAY_MISUSE;
        usleep(1000);
    }
    CHECK(clearway_close(db) == CLEARWAY_MISUSE);
    do {
        clearway_interrupt(db);
        usleep(1000);
    } while (clearway_exec(db, "SELECT 1", NULL, NULL) == CLEARWAY_MISUSE);
    pthread_join(thread, NULL);
    CHECK(code_of_sleeper == CLEARWAY_INTERRUPT);
    CHECK(clearway_close(db) == CLEARWAY_OK);
}

/* Another process, which works through this one. */
static int guest(const char *path) {
    clearway *db;
    int code = clearway_open(path, &db);
    if (code == CLEARWAY_OK) code = clearway_exec(db, "INSERT INTO t VALUES (6)", NULL, NULL);
    if (code != CLEARWAY_OK) fprintf(stderr, "the guest: %s\n", clearway_errmsg(db));
    clearway_close(db);
    return code;
}

static void directories(const char *program, const char *path) {
    clearway *one, *two;
    clearway_stmt *stmt;
    int status = -1;
    pid_t child;

    CHECK(clearway_open(path, &one) == CLEARWAY_OK && clearway_open(path, &two) == CLEARWAY_OK);
    CHECK(clearway_exec(one, "CREATE TABLE t (a int); INSERT INTO t VALUES (5)", NULL, NULL) == CLEARWAY_OK);
    CHECK(clearway_close(one) == CLEARWAY_OK);
    child = fork();
    if (child == 0) {
        execl(program, program, "--guest", path, (char *)NULL);
        _exit(127);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(clearway_prepare(two, "SELECT sum(a) FROM t", &stmt) == CLEARWAY_OK);
    CHECK(clearway_step(stmt) == CLEARWAY_ROW && clearway_column_int64(stmt, 0) == 11);
    CHECK(clearway_close(two) == CLEARWAY_OK);
    CHECK(clearway_open(path, &one) == CLEARWAY_OK);
    CHECK(clearway_exec(one, "DROP TABLE t", NULL, NULL) == CLEARWAY_OK && clearway_close(one) == CLEARWAY_OK);
}

#ifdef CLEARWAY_PLANTED
int clearway_planted_panic(void);
#endif

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "--guest") == 0) return guest(argv[2]);
    setvbuf(stdout, NULL, _IOLBF, 0);
    CHECK(strlen(clearway_version()) > 0);
    values_and_rows();
    errors();
    misuse();
    threads();
    directories(argv[0], argc > 1 ? argv[1] : "api-test");
#ifdef CLEARWAY_PLANTED
    CHECK(clearway_planted_panic() == CLEARWAY_ERROR); /* CAPI-2 */
#endif
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
