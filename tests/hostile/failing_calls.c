/* Loaded before Python: counts the calls to the system that change files, and lets one fail, or ends the process at it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static volatile long made, chosen = -1;
static int failure, ending;

/* Counts from 0 again; call number `number` fails with this errno, or the process gets this signal at it (0: none). */
void calls_begin(long number, int error, int signal_number) {
    made = 0, failure = error, ending = signal_number, chosen = number;
}

/* How many calls there were; none fails from now on. */
long calls_end(void) { return chosen = -1, made; }

static int fails(int removes) { /* what removes a file does not fail: nothing could be cleared up then */
    if (chosen < 0 || __sync_fetch_and_add(&made, 1) != chosen) return 0;
    if (ending) return kill(getpid(), ending), 0;
    return errno = failure, !removes;
}

#define CALL(removes, kind, name, parameters, arguments)                                                               \
    kind name parameters {                                                                                             \
        static kind(*real) parameters;                                                                                 \
        if (!real) *(void **)&real = dlsym(RTLD_NEXT, #name);                                                          \
        return fails(removes) ? -1 : real arguments;                                                                   \
    }

CALL(0, ssize_t, write, (int file, const void *data, size_t size), (file, data, size))
CALL(0, ssize_t, writev, (int file, const struct iovec *data, int count), (file, data, count))
CALL(0, ssize_t, pwrite64, (int file, const void *data, size_t size, off64_t at), (file, data, size, at))
CALL(0, int, fsync, (int file), (file))
CALL(0, int, ftruncate64, (int file, off64_t size), (file, size))
CALL(0, int, fchmod, (int file, mode_t mode), (file, mode))
CALL(0, int, rename, (const char *from, const char *to), (from, to))
CALL(0, int, link, (const char *from, const char *to), (from, to))
CALL(1, int, unlink, (const char *path), (path))
CALL(0, int, mkdir, (const char *path, mode_t mode), (path, mode))
CALL(1, int, rmdir, (const char *path), (path))
