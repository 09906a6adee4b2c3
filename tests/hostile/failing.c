/* Loaded before Python: counts requests for memory, and lets chosen ones fail: those of Python's allocators, or those
   that chosen libraries make to the system, known by the address to which they return.

   What those libraries hold is counted too. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SYSTEM(result, name, ...)                                                                                  \
    extern result __libc_##name(__VA_ARGS__);                                                                          \
    extern result __interceptor_##name(__VA_ARGS__) __attribute__((weak)); /* of the address sanitiser */
SYSTEM(void *, malloc, size_t)
SYSTEM(void *, calloc, size_t, size_t)
SYSTEM(void *, realloc, void *, size_t)
SYSTEM(void, free, void *)
#define system(name, ...) (__interceptor_##name ? __interceptor_##name(__VA_ARGS__) : __libc_##name(__VA_ARGS__))

enum { RANGES = 128, PLACES = 1 << 20 };
static struct { uintptr_t from, to; } ranges[RANGES];
static int n_ranges;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uintptr_t held[PLACES]; /* a hash table of the pieces that they hold: 1 is a place that was emptied */
static long holding, asked, first, last; /* of those asked for, the numbers from first up to last fail */
enum { NOBODY, PYTHON, LIBRARIES };
static int whose;

static int look_at(struct dl_phdr_info *info, size_t size, void *name) {
    (void)size;
    if (!strstr(info->dlpi_name, name)) return 0;
    for (int i = 0; i < info->dlpi_phnum && n_ranges < RANGES; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
            ranges[n_ranges].from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            ranges[n_ranges].to = ranges[n_ranges].from + info->dlpi_phdr[i].p_memsz;
            n_ranges++;
        }
    return 0;
}

/* From now on the libraries with that in their paths count too; how many pieces of code all of them are. */
int failing_watch(const char *name) {
    dl_iterate_phdr(look_at, (void *)name);
    return n_ranges;
}

/* Counts from 0 again; the requests numbered [from, to) fail. */
void failing_begin(int of, long from, long to) { first = from, last = to, asked = 0, whose = of; }

/* How many requests there were since failing_begin; none fails from now on. */
long failing_end(void) {
    whose = NOBODY;
    return asked;
}

long failing_held(void) { return holding; }

static int watched(const void *caller) { /* is it one of the libraries' requests? */
    uintptr_t at = (uintptr_t)caller;
    for (int i = 0; i < n_ranges; i++)
        if (at >= ranges[i].from && at < ranges[i].to) return 1;
    return 0;
}

/* Whether others are to blame for what comes of it. CPython (as of 3.11) loses the error to whose traceback it cannot
   add, for which it makes an object of a frame; it loses the list that repr is in the midst of and the one that list()
   copies, lets go of a bytearray before it is filled, and says RuntimeError for a lock. numpy and cramjam (which
   panics) do likewise. */
static int spared(void) {
    static const char *const names[] = {"PyTraceBack_Here", "Py_ReprEnter", "Py_ReprLeave", "PySequence_List",
                                        "PyByteArray_FromStringAndSize", "PyThread_allocate_lock"};
    void *callers[24];
    const char *name, *below = "";
    const int of = whose;
    whose = NOBODY;
    int n = backtrace(callers, 24), found = 0;
    for (int i = 0; i < n && !found; i++, below = name) {
        Dl_info info = {0};
        dladdr(callers[i], &info);
        name = info.dli_sname ? info.dli_sname : "";
        found = info.dli_fname && (strstr(info.dli_fname, "cramjam") || strstr(info.dli_fname, "/numpy/"));
        for (size_t j = 0; j < sizeof(names) / sizeof(*names); j++) found |= !strcmp(name, names[j]);
        found |= !strcmp(below, "_PyObject_GC_NewVar") && !*name; /* a frame is made in a function without a name */
    }
    whose = of;
    return found;
}

static int fails(int of) {
    if (whose != of) return 0;
    long number = __atomic_fetch_add(&asked, 1, __ATOMIC_RELAXED);
    return number >= first && number < last && !(of == PYTHON && spared());
}

static size_t place_of(uintptr_t at) { return (size_t)((at >> 4) * 0x9e3779b97f4a7c15u >> 44); }

static void *hold(void *data) {
    if (!data) return data;
    pthread_mutex_lock(&lock);
    size_t i = place_of((uintptr_t)data);
    while (held[i] > 1) i = (i + 1) % PLACES;
    held[i] = (uintptr_t)data;
    holding++;
    pthread_mutex_unlock(&lock);
    return data;
}

static void let_go(const void *data) {
    if (!data || !holding) return;
    pthread_mutex_lock(&lock);
    for (size_t i = place_of((uintptr_t)data); held[i]; i = (i + 1) % PLACES)
        if (held[i] == (uintptr_t)data) {
            held[i] = held[(i + 1) % PLACES] ? 1 : 0;
            holding--;
            break;
        }
    pthread_mutex_unlock(&lock);
}

void *malloc(size_t size) {
    if (!watched(__builtin_return_address(0))) return system(malloc, size);
    return fails(LIBRARIES) ? NULL : hold(system(malloc, size));
}

void *calloc(size_t count, size_t size) {
    if (!watched(__builtin_return_address(0))) return system(calloc, count, size);
    return fails(LIBRARIES) ? NULL : hold(system(calloc, count, size));
}

void *realloc(void *data, size_t size) {
    if (!watched(__builtin_return_address(0))) {
        let_go(data);
        return system(realloc, data, size);
    }
    if (fails(LIBRARIES)) return NULL;
    let_go(data);
    return hold(system(realloc, data, size));
}

void free(void *data) {
    let_go(data);
    system(free, data);
}

void *mmap(void *at, size_t size, int access, int flags, int file, off_t from) {
    if (watched(__builtin_return_address(0)) && fails(LIBRARIES)) return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, size, access, flags, file, from);
}

void *mremap(void *at, size_t size, size_t wanted, int flags, ...) {
    va_list more;
    va_start(more, flags);
    void *to = flags & MREMAP_FIXED ? va_arg(more, void *) : NULL;
    va_end(more);
    if (watched(__builtin_return_address(0)) && fails(LIBRARIES)) return MAP_FAILED;
    return (void *)syscall(SYS_mremap, at, size, wanted, flags, to);
}

/* Python's allocators (PyMemAllocatorEx), each with ours in front. */
typedef struct {
    void *self;
    void *(*malloc)(void *, size_t);
    void *(*calloc)(void *, size_t, size_t);
    void *(*realloc)(void *, void *, size_t);
    void (*free)(void *, void *);
} allocator;
extern void PyMem_GetAllocator(int, allocator *) __attribute__((weak));
extern void PyMem_SetAllocator(int, allocator *) __attribute__((weak));
static allocator real[3];

static void *python_malloc(void *self, size_t size) {
    const allocator *a = self;
    return fails(PYTHON) ? NULL : a->malloc(a->self, size);
}

static void *python_calloc(void *self, size_t count, size_t size) {
    const allocator *a = self;
    return fails(PYTHON) ? NULL : a->calloc(a->self, count, size);
}

static void *python_realloc(void *self, void *data, size_t size) {
    const allocator *a = self;
    return fails(PYTHON) ? NULL : a->realloc(a->self, data, size);
}

static void python_free(void *self, void *data) {
    const allocator *a = self;
    a->free(a->self, data);
}

/* From now on Python's requests count. Call it once. */
void failing_python(void) {
    void *callers[1];
    backtrace(callers, 1); /* its library is loaded now */
    for (int domain = 0; domain < 3; domain++) {
        PyMem_GetAllocator(domain, &real[domain]);
        allocator ours = {&real[domain], python_malloc, python_calloc, python_realloc, python_free};
        PyMem_SetAllocator(domain, &ours);
    }
}
