/* Stands between a process and the C library, for every write below one folder, whoever makes it: Python, Rust or C++.
 *
 * Loaded by LD_PRELOAD. It does nothing before faults_arm() names the folder and what is to happen: the process is
 * killed at the n-th event, or when a file of a certain name is renamed or linked into its place, the disk is full once so
 * many bytes were written, or every write is refused.
 * An event is a file opened for writing, written, cut, synced, renamed, linked, removed, or a folder made.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { COUNT = 1, KILL_BEFORE, KILL_AFTER, FULL, READ_ONLY, KILL_BEFORE_NAME, KILL_AFTER_NAME };
#define FILES 65536
#define KINDS 4000000
#define NAMES 4000000

static char root[4096];
static size_t root_length;
static atomic_int mode;
static long at;
static char name_of_commit[4096];
static atomic_long events, bytes, named;
static char watched[FILES];
static char kinds[KINDS];
static char names[NAMES];

#define REAL(name) ({ static __typeof__(name) *real; if (!real) real = dlsym(RTLD_NEXT, #name); real; })

void faults_arm(const char *folder, int what, long when, const char *name) {
    root_length = strlen(folder);
    memcpy(root, folder, root_length + 1);
    at = when;
    strncpy(name_of_commit, name, sizeof name_of_commit - 1);
    atomic_store(&events, 0);
    atomic_store(&bytes, 0);
    atomic_store(&named, 0);
    atomic_store(&mode, what);
}
long faults_events(void) { return atomic_load(&events); }
long faults_bytes(void) { return atomic_load(&bytes); }
const char *faults_kinds(void) { return kinds; }
/* A line for each file that was renamed or linked into its place, as its path below the folder. */
const char *faults_names(void) { return names; }

static int inside(int folder, const char *path) {
    if (!atomic_load(&mode) || !path) return 0;
    if (path[0] != '/') return folder >= 0 && folder < FILES && watched[folder];
    return !strncmp(path, root, root_length) && (path[root_length] == '/' || !path[root_length]);
}
static int is_watched(int file) { return atomic_load(&mode) && file >= 0 && file < FILES && watched[file]; }

/* Counts an event. 0: it may happen; -1: it is refused. */
static int event(char kind) {
    int what = atomic_load(&mode);
    if (what == READ_ONLY) { errno = EROFS; return -1; }
    long number = atomic_fetch_add(&events, 1) + 1;
    if (number < KINDS) kinds[number - 1] = kind;
    if (what == KILL_BEFORE && number == at) kill(getpid(), SIGKILL);
    return 0;
}
/* Called after an event. The number may have been passed by another thread: from `at` on is late enough. */
static void done(void) {
    if (atomic_load(&mode) == KILL_AFTER && atomic_load(&events) >= at) {
        int kept = errno;
        kill(getpid(), SIGKILL);
        errno = kept;
    }
}
/* Called before and after a file takes its place: notes its name, and kills the process where it is the chosen one. */
static void placed(const char *path, int killing) {
    if (path[0] == '/') path += root_length + 1;
    if (killing == KILL_BEFORE_NAME) {
        size_t size = strlen(path);
        long from = atomic_fetch_add(&named, (long)size + 1);
        if (from + (long)size + 1 < NAMES) {
            memcpy(names + from, path, size);
            names[from + (long)size] = '\n';
        }
    }
    if (atomic_load(&mode) == killing && !strcmp(path, name_of_commit)) kill(getpid(), SIGKILL);
}
/* How many of `wanted` bytes there is room for; -1 where there is none. */
static ssize_t room(size_t wanted) {
    long before = atomic_fetch_add(&bytes, (long)wanted);
    if (atomic_load(&mode) != FULL) return (ssize_t)wanted;
    if (before >= at) { errno = ENOSPC; return -1; }
    long left = at - before;
    return (ssize_t)(wanted < (size_t)left ? wanted : (size_t)left);
}

static int opened(int file, int folder, const char *path) {
    if (file >= 0 && file < FILES) watched[file] = (char)inside(folder, path);
    return file;
}
#define OPEN(name, folder, before, ...)                                                   \
    int name(__VA_ARGS__, int flags, ...) {                                               \
        mode_t rights = 0;                                                                \
        if (flags & (O_CREAT | O_TMPFILE)) {                                              \
            va_list more; va_start(more, flags); rights = va_arg(more, mode_t); va_end(more); \
        }                                                                                 \
        int writes = (flags & (O_WRONLY | O_RDWR | O_CREAT)) && inside(folder, path);     \
        if (writes && event('o')) return -1;                                              \
        int file = opened(REAL(name)(before path, flags, rights), folder, path);          \
        if (writes) done();                                                               \
        return file;                                                                      \
    }
OPEN(open, -1, , const char *path)
OPEN(open64, -1, , const char *path)
#define COMMA ,
OPEN(openat, folder, folder COMMA, int folder, const char *path)
OPEN(openat64, folder, folder COMMA, int folder, const char *path)

int close(int file) {
    if (file >= 0 && file < FILES) watched[file] = 0;
    return REAL(close)(file);
}

#define WRITE(name, more_given, more)                                                     \
    ssize_t name(int file, const void *data, size_t size more_given) {                    \
        if (!is_watched(file)) return REAL(name)(file, data, size more);                  \
        if (event('w')) return -1;                                                        \
        ssize_t fits = room(size);                                                        \
        ssize_t written = fits < 0 ? -1 : REAL(name)(file, data, (size_t)fits more);      \
        done();                                                                           \
        return written;                                                                   \
    }
WRITE(write, , )
WRITE(pwrite, COMMA off_t where, COMMA where)
WRITE(pwrite64, COMMA off64_t where, COMMA where)

#define WRITEV(name, more_given, more)                                                    \
    ssize_t name(int file, const struct iovec *parts, int count more_given) {             \
        if (!is_watched(file)) return REAL(name)(file, parts, count more);                \
        if (event('w')) return -1;                                                        \
        size_t size = 0;                                                                  \
        for (int i = 0; i < count; i++) size += parts[i].iov_len;                         \
        ssize_t fits = room(size);                                                        \
        if (fits >= 0 && (size_t)fits < size) { errno = ENOSPC; fits = -1; }              \
        ssize_t written = fits < 0 ? -1 : REAL(name)(file, parts, count more);            \
        done();                                                                           \
        return written;                                                                   \
    }
WRITEV(writev, , )
WRITEV(pwritev, COMMA off_t where, COMMA where)
WRITEV(pwritev64, COMMA off64_t where, COMMA where)

ssize_t copy_file_range(int from, off64_t *a, int to, off64_t *b, size_t size, unsigned flags) {
    if (!is_watched(to)) return REAL(copy_file_range)(from, a, to, b, size, flags);
    /* Those who ask for it go on with plain writes. */
    errno = ENOSYS;
    return -1;
}
ssize_t sendfile64(int to, int from, off64_t *offset, size_t size);
ssize_t sendfile(int to, int from, off_t *offset, size_t size);
#define SENDFILE(name, kind)                                                              \
    ssize_t name(int to, int from, kind *offset, size_t size) {                           \
        if (!is_watched(to)) return REAL(name)(to, from, offset, size);                   \
        if (event('w')) return -1;                                                        \
        ssize_t fits = room(size < 1048576 ? size : 1048576);                             \
        ssize_t written = fits < 0 ? -1 : REAL(name)(to, from, offset, (size_t)fits);     \
        done();                                                                           \
        return written;                                                                   \
    }
SENDFILE(sendfile, off_t)
SENDFILE(sendfile64, off64_t)

#define OF_FILE(name, kind, given, ...)                                                   \
    int name given {                                                                      \
        if (!is_watched(file)) return REAL(name)(__VA_ARGS__);                            \
        if (event(kind)) return -1;                                                       \
        int result = REAL(name)(__VA_ARGS__);                                             \
        done();                                                                           \
        return result;                                                                    \
    }
OF_FILE(fsync, 's', (int file), file)
OF_FILE(fdatasync, 's', (int file), file)
OF_FILE(ftruncate, 't', (int file, off_t size), file, size)
OF_FILE(ftruncate64, 't', (int file, off64_t size), file, size)

#define OF_NAMES(name, kind, condition, given, ...)                                       \
    int name given {                                                                      \
        if (!(condition)) return REAL(name)(__VA_ARGS__);                                 \
        if (event(kind)) return -1;                                                       \
        int result = REAL(name)(__VA_ARGS__);                                             \
        done();                                                                           \
        return result;                                                                    \
    }
#define OF_PLACES(name, kind, folder, given, ...)                                         \
    int name given {                                                                      \
        if (!inside(folder, to)) return REAL(name)(__VA_ARGS__);                          \
        if (event(kind)) return -1;                                                       \
        placed(to, KILL_BEFORE_NAME);                                                     \
        int result = REAL(name)(__VA_ARGS__);                                             \
        int kept = errno;                                                                 \
        placed(to, KILL_AFTER_NAME);                                                      \
        errno = kept;                                                                     \
        done();                                                                           \
        return result;                                                                    \
    }
OF_PLACES(rename, 'r', -1, (const char *from, const char *to), from, to)
OF_PLACES(renameat, 'r', t, (int f, const char *from, int t, const char *to), f, from, t, to)
OF_PLACES(renameat2, 'r', t, (int f, const char *from, int t, const char *to, unsigned flags), f, from, t, to, flags)
OF_PLACES(link, 'l', -1, (const char *from, const char *to), from, to)
OF_PLACES(linkat, 'l', t, (int f, const char *from, int t, const char *to, int flags), f, from, t, to, flags)
OF_PLACES(symlink, 'l', -1, (const char *from, const char *to), from, to)
OF_NAMES(unlink, 'u', inside(-1, path), (const char *path), path)
OF_NAMES(unlinkat, 'u', inside(folder, path), (int folder, const char *path, int flags), folder, path, flags)
OF_NAMES(rmdir, 'u', inside(-1, path), (const char *path), path)
OF_NAMES(mkdir, 'm', inside(-1, path), (const char *path, mode_t rights), path, rights)
OF_NAMES(mkdirat, 'm', inside(folder, path), (int folder, const char *path, mode_t rights), folder, path, rights)
