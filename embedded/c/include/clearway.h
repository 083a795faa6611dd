/* Clearway for C: a transactional SQL database inside the program, in the manner of sqlite3.h.
 *
 *     clearway *db;
 *     clearway_stmt *stmt;
 *     if (clearway_open("visits", &db) != CLEARWAY_OK) return 1;     // a directory, or ":memory:"
 *     clearway_exec(db, "CREATE TABLE t (a bigint, b text)", NULL, NULL);
 *     clearway_prepare(db, "INSERT INTO t VALUES (?, ?)", &stmt);
 *     clearway_bind_int64(stmt, 1, 7);
 *     clearway_bind_text(stmt, 2, "seven", -1);
 *     if (clearway_step(stmt) != CLEARWAY_DONE) fprintf(stderr, "%s\n", clearway_errmsg(db));
 *     clearway_finalize(stmt);
 *     clearway_close(db);
 *
 * The language is PostgreSQL's. A statement outside of BEGIN and COMMIT is a transaction by itself, and durable when the call has
 * returned. Connections of one process to one directory share the database; each thread that works at the same time as others opens its own.
 * Several processes may open one directory: the first one has it, the others work through that process, and take over when it ends (a call that
 * was under way then fails, clearway_sqlstate "08006"). No call ever answers that the database is busy or locked.
 *
 * Handles are checked: a handle that was closed or never given answers CLEARWAY_MISUSE (or 0, or NULL), and so does a connection at which another
 * thread is at work at the moment.
 */
#ifndef CLEARWAY_H
#define CLEARWAY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clearway clearway;           /* a connection */
typedef struct clearway_stmt clearway_stmt; /* a statement with its parameters and rows */

#define CLEARWAY_OK 0
#define CLEARWAY_ERROR 1       /* a statement failed: clearway_errmsg, clearway_sqlstate */
#define CLEARWAY_INTERRUPT 9   /* clearway_interrupt, a timeout or a cancel has stopped it */
#define CLEARWAY_RETRY 10      /* a conflict or a deadlock (40001, 40P01): run the transaction again from its beginning */
#define CLEARWAY_CANTOPEN 14   /* the directory can't be opened: clearway_errmsg says why */
#define CLEARWAY_CONSTRAINT 19 /* a constraint is violated (class 23) */
#define CLEARWAY_MISUSE 21     /* the handle is closed or in use, an argument is NULL, or an index is out of range */
#define CLEARWAY_ROW 100       /* clearway_step: there is a row */
#define CLEARWAY_DONE 101      /* clearway_step: there are no more */

#define CLEARWAY_INTEGER 1
#define CLEARWAY_FLOAT 2
#define CLEARWAY_TEXT 3 /* texts, and the text form of every other type */
#define CLEARWAY_BLOB 4
#define CLEARWAY_NULL 5

/* "0.1.0" */
const char *clearway_version(void);

/* Opens the directory `path`, or makes it; ":memory:" is a database in memory of its own. *db is a handle also after an error, so that
 * clearway_errmsg can tell; close it in any case. */
int clearway_open(const char *path, clearway **db);
/* Ends the connection: an open transaction is rolled back, its statements are finalized. The last one of a process closes the directory. */
int clearway_close(clearway *db);

/* What the last failed call on the connection said; valid until its next call. Never NULL for an open handle. */
const char *clearway_errmsg(clearway *db);
/* The SQLSTATE of that, five characters; "00000" if no statement failed. */
const char *clearway_sqlstate(clearway *db);
/* Rows that the last statement of the connection has changed. */
int64_t clearway_changes(clearway *db);
/* 1 inside BEGIN and COMMIT, 0 outside. */
int clearway_in_transaction(clearway *db);
/* Stops what the connection runs; may be called from any thread and from signal-handling threads. */
int clearway_interrupt(clearway *db);

/* Runs all statements of a text as one transaction, unless it begins one itself. `callback`, if given, is called for each row of the last
 * statement that returns rows, with values as texts (NULL for NULL); it ends the call by returning something else than 0. A callback may be
 * given only with a single statement. */
int clearway_exec(clearway *db, const char *sql, int (*callback)(void *arg, int columns, char **values, char **names), void *arg);

/* A statement; parameters are written ? or $1. It is parsed at the first step; its text is kept prepared with the connection. */
int clearway_prepare(clearway *db, const char *sql, clearway_stmt **stmt);
int clearway_finalize(clearway_stmt *stmt);

/* Parameters count from 1. Values are copied. A negative length means up to the terminating zero. Parameters that are not bound are NULL. */
int clearway_bind_null(clearway_stmt *stmt, int index);
int clearway_bind_int64(clearway_stmt *stmt, int index, int64_t value);
int clearway_bind_double(clearway_stmt *stmt, int index, double value);
int clearway_bind_text(clearway_stmt *stmt, int index, const char *value, int length);
int clearway_bind_blob(clearway_stmt *stmt, int index, const void *value, int length);
int clearway_clear_bindings(clearway_stmt *stmt);

/* The next row: CLEARWAY_ROW, CLEARWAY_DONE, or an error. The next statement of the connection ends a query that is being stepped through. */
int clearway_step(clearway_stmt *stmt);
/* The next step begins anew. */
int clearway_reset(clearway_stmt *stmt);

/* Columns count from 0. Texts and blobs are valid until the next step, reset or finalize. */
int clearway_column_count(clearway_stmt *stmt);
const char *clearway_column_name(clearway_stmt *stmt, int column);
int clearway_column_type(clearway_stmt *stmt, int column);
int64_t clearway_column_int64(clearway_stmt *stmt, int column);
double clearway_column_double(clearway_stmt *stmt, int column);
const char *clearway_column_text(clearway_stmt *stmt, int column);
const void *clearway_column_blob(clearway_stmt *stmt, int column);
/* Bytes of the text or the blob, without a terminating zero. */
int clearway_column_bytes(clearway_stmt *stmt, int column);

#ifdef __cplusplus
}
#endif
#endif
