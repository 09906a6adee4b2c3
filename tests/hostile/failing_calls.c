/* Loaded before Python: counts the calls to the system that change files, and lets one fail, or ends the process at it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static volatile long made, chosen = -1;
static int failure, ending, goes_on, left_alone = -1;

/* Counts from 0 again; call number `number` fails with this errno, or the process gets this signal at it (0: none).
   lasting: all calls after it fail too. */
void calls_begin(long number, int error, int signal_number, int lasting) {
    made = 0, failure = error, ending = signal_number, goes_on = lasting, chosen = number;
}

/* Writing to this file, to sockets, pipes and the like is not counted. */
void calls_leave(int file) { left_alone = file; }

/* How many calls there were; none fails from now on. */
long calls_end(void) { return chosen = -1, made; }

static int fails(int removes) { /* what removes a file does not fail: nothing could be cleared up then */
    if (chosen < 0) return 0;
    long now = __sync_fetch_and_add(&made, 1);
    if (goes_on ? now < chosen : now != chosen) return 0;
    if (ending) return kill(getpid(), ending), 0;
    return errno = failure, !removes;
}

static int is_file(int file) { /* nobody but a harness of a fleet says which not to count */
    struct stat state;
    return left_alone < 0 || (file != left_alone && !fstat(file, &state) && S_ISREG(state.st_mode));
}

#define CALL(removes, kind, name, parameters, arguments)                                                               \
    kind name parameters {                                                                                             \
        static kind(*real) parameters;                                                                                 \
        if (!real) *(void **)&real = dlsym(RTLD_NEXT, #name);                                                          \
        return fails(removes) ? -1 : real arguments;                                                                   \
    }

ssize_t write(int file, const void *data, size_t size) {
    static ssize_t (*real)(int, const void *, size_t);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "write");
    return is_file(file) && fails(0) ? -1 : real(file, data, size);
}

int open64(const char *path, int flags, ...) { /* counted where it is to write, and only by the fleet's harness */
    static int (*real)(const char *, int, mode_t);
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "open64");
    return left_alone >= 0 && flags & (O_WRONLY | O_RDWR) && strncmp(path, "/dev/", 5) && fails(0) ? -1
         : real(path, flags, mode);
}

int close(int file) { /* where NFS and FUSE write a file: if it fails, the descriptor is closed, and the file is empty */
    static int (*real)(int);
    struct stat state;
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "close");
    int written = chosen >= 0 && left_alone < 0 && !fstat(file, &state) && S_ISREG(state.st_mode) &&
                  (fcntl(file, F_GETFL) & O_ACCMODE) != O_RDONLY;
    int failed = written && fails(0), error = errno;
    if (failed && ftruncate(file, 0)) return -1;
    int result = real(file);
    return failed ? errno = error, -1 : result;
}

CALL(0, ssize_t, writev, (int file, const struct iovec *data, int count), (file, data, count))
CALL(0, ssize_t, pwrite64, (int file, const void *data, size_t size, off64_t at), (file, data, size, at))
CALL(0, int, fsync, (int file), (file))
CALL(0, int, truncate64, (const char *path, off_t size), (path, size))
CALL(0, int, ftruncate64, (int file, off64_t size), (file, size))
CALL(0, int, fchmod, (int file, mode_t mode), (file, mode))
CALL(0, int, rename, (const char *from, const char *to), (from, to))
CALL(0, int, link, (const char *from, const char *to), (from, to))
CALL(1, int, unlink, (const char *path), (path))
CALL(0, int, mkdir, (const char *path, mode_t mode), (path, mode))
CALL(1, int, rmdir, (const char *path), (path))
