#ifndef CTIDINGS_SQLITE_SHIM_H
#define CTIDINGS_SQLITE_SHIM_H
#if !__has_include(<sqlite3.h>)
#error "Tidings needs SQLite 3: install the Debian package libsqlite3-dev"
#else
#include <sqlite3.h>

// SQLITE_TRANSIENT is a cast macro. SQLite copies the bytes before the call returns.
static inline int tidings_sqlite_bind_text(sqlite3_stmt *_Nonnull statement, int index, const char *_Nonnull text, int count) {
    return sqlite3_bind_text(statement, index, text, count, SQLITE_TRANSIENT);
}
static inline int tidings_sqlite_bind_blob(sqlite3_stmt *_Nonnull statement, int index, const void *_Nullable bytes, int count) {
    return count == 0 ? sqlite3_bind_zeroblob(statement, index, 0)
                      : sqlite3_bind_blob(statement, index, bytes, count, SQLITE_TRANSIENT);
}
#endif
#endif
