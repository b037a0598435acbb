/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A kernel whose pages are as large as LARGER_PAGES says, preloaded: for code that must not take the size of a page for
 * granted. It tells that size, returns addresses that are multiples of it, works on whole pages of it, and refuses
 * addresses and offsets that are none, as such a kernel would; by abort where callers hardly look at the result. libc's
 * functions come here by their names, the system calls that libcoco makes directly by larger_kernel.cc.
 */
#define _GNU_SOURCE
#undef _FILE_OFFSET_BITS /* by which the headers would give mmap another name */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static size_t page(void) {
    static size_t bytes = 0;
    if (bytes == 0) {
        const char* text = getenv("LARGER_PAGES");
        bytes = text != NULL ? strtoul(text, NULL, 10) : 4096;
    }
    return bytes;
}

static size_t up(size_t bytes) { return (bytes + page() - 1) & ~(page() - 1); }
static int is_odd(const void* address) { return (uintptr_t)address % page() != 0; }

static void* refuse(void) {
    errno = EINVAL;
    return MAP_FAILED;
}

static void require_whole(const void* address, const char* what) {
    if (!is_odd(address)) return;
    dprintf(STDERR_FILENO, "larger_pages: %s in the midst of a page\n", what);
    abort();
}

/* The kernel below, by libc's functions or by system calls. */
struct below {
    void* (*mmap)(void*, size_t, int, int, int, off_t);
    int (*munmap)(void*, size_t);
    int (*mprotect)(void*, size_t, int);
    int (*madvise)(void*, size_t, int);
    void* (*mremap)(void*, size_t, size_t, int, ...);
};

/* An announcement (heap/gone.h) begins in the midst of a page, and is refused. */
static int unmap(const struct below* below, void* address, size_t bytes) {
    if (is_odd(address)) return refuse(), -1;
    return below->munmap(address, up(bytes));
}

static void* map(const struct below* below, void* address, size_t bytes, int protection, int flags, int fd,
                 off_t offset) {
    if ((size_t)offset % page() != 0) return refuse();
    const int fixed = MAP_FIXED | MAP_FIXED_NOREPLACE;
    if ((flags & fixed) != 0 && is_odd(address)) return refuse();
    if ((flags & fixed) == MAP_FIXED) return below->mmap(address, up(bytes), protection, flags, fd, offset);
    if (address != NULL && !is_odd(address)) { /* where it is wished, if nothing is there */
        void* wished = below->mmap(address, up(bytes), protection, flags | MAP_FIXED_NOREPLACE, fd, offset);
        if (wished == address) return wished;
        if (wished != MAP_FAILED) below->munmap(wished, up(bytes)); /* a kernel that does not know the flag */
        errno = EEXIST;
        if ((flags & fixed) != 0) return MAP_FAILED;
    }
    /* Room for it, of which a part has the address that it must have. */
    char* room =
        below->mmap(NULL, up(bytes) + page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) return MAP_FAILED;
    char* begin = (char*)up((uintptr_t)room);
    void* mapped = below->mmap(begin, up(bytes), protection, flags | MAP_FIXED, fd, offset);
    int why = errno;
    /* Pieces that such a kernel would not have made. */
    if (mapped == MAP_FAILED) below->munmap(begin, up(bytes));
    if (begin != room) below->munmap(room, (size_t)(begin - room));
    char* end = begin + up(bytes);
    if (end != room + up(bytes) + page()) below->munmap(end, (size_t)(room + up(bytes) + page() - end));
    errno = why;
    return mapped;
}

static int protect(const struct below* below, void* address, size_t bytes, int protection) {
    if (is_odd(address)) return refuse(), -1;
    return below->mprotect(address, up(bytes), protection);
}

static int advise(const struct below* below, void* address, size_t bytes, int advice) {
    require_whole(address, "madvise");
    return below->madvise(address, up(bytes), advice);
}

static void* remap(const struct below* below, void* address, size_t bytes, size_t new_bytes, int flags,
                   void* wanted) {
    if (is_odd(address) || ((flags & MREMAP_FIXED) != 0 && is_odd(wanted))) return refuse();
    return below->mremap(address, up(bytes), up(new_bytes), flags, wanted);
}

/* By libc's names. */

#define NEXT(name)                 \
    static __typeof__(name)* next; \
    if (next == NULL) next = (__typeof__(next))dlsym(RTLD_NEXT, #name)

unsigned long getauxval(unsigned long type) {
    NEXT(getauxval);
    return type == AT_PAGESZ ? page() : next(type);
}

long sysconf(int name) {
    NEXT(sysconf);
    return name == _SC_PAGESIZE ? (long)page() : next(name);
}

static const struct below* libc_below(void) {
    static struct below found;
    if (found.mmap == NULL) {
        found.munmap = (__typeof__(found.munmap))dlsym(RTLD_NEXT, "munmap");
        found.mprotect = (__typeof__(found.mprotect))dlsym(RTLD_NEXT, "mprotect");
        found.madvise = (__typeof__(found.madvise))dlsym(RTLD_NEXT, "madvise");
        found.mremap = (__typeof__(found.mremap))dlsym(RTLD_NEXT, "mremap");
        found.mmap = (__typeof__(found.mmap))dlsym(RTLD_NEXT, "mmap");
    }
    return &found;
}

int munmap(void* address, size_t bytes) { return unmap(libc_below(), address, bytes); }
void* mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) {
    return map(libc_below(), address, bytes, protection, flags, fd, offset);
}
void* mmap64(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) {
    return map(libc_below(), address, bytes, protection, flags, fd, offset);
}
int mprotect(void* address, size_t bytes, int protection) {
    return protect(libc_below(), address, bytes, protection);
}
int madvise(void* address, size_t bytes, int advice) { return advise(libc_below(), address, bytes, advice); }
void* mremap(void* address, size_t bytes, size_t new_bytes, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    void* wanted = va_arg(rest, void*);
    va_end(rest);
    return remap(libc_below(), address, bytes, new_bytes, flags, wanted);
}

/* By system calls. libc's own syscall() is a door of libcoco's. */

static long raw(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__aarch64__)
    register long which __asm__("x8") = number;
    register long first __asm__("x0") = a;
    register long second __asm__("x1") = b;
    register long third __asm__("x2") = c;
    register long fourth __asm__("x3") = d;
    register long fifth __asm__("x4") = e;
    register long sixth __asm__("x5") = f;
    __asm__ volatile("svc #0"
                     : "+r"(first)
                     : "r"(which), "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "memory");
    return first;
#else /* where no test needs it */
    (void)number, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
    return -ENOSYS;
#endif
}

static long as_libc(long result) {
    if (result < 0 && result >= -4095) errno = (int)-result;
    return result < 0 && result >= -4095 ? -1 : result;
}

static void* raw_mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) {
    return (void*)as_libc(raw(SYS_mmap, (long)address, (long)bytes, protection, flags, fd, offset));
}
static int raw_munmap(void* address, size_t bytes) {
    return (int)as_libc(raw(SYS_munmap, (long)address, (long)bytes, 0, 0, 0, 0));
}
static int raw_mprotect(void* address, size_t bytes, int protection) {
    return (int)as_libc(raw(SYS_mprotect, (long)address, (long)bytes, protection, 0, 0, 0));
}
static int raw_madvise(void* address, size_t bytes, int advice) {
    return (int)as_libc(raw(SYS_madvise, (long)address, (long)bytes, advice, 0, 0, 0));
}
static void* raw_mremap(void* address, size_t bytes, size_t new_bytes, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    void* wanted = va_arg(rest, void*);
    va_end(rest);
    return (void*)as_libc(
        raw(SYS_mremap, (long)address, (long)bytes, (long)new_bytes, flags, (long)wanted, 0));
}

long larger_call(long number, long a, long b, long c, long d, long e, long f) {
    static const struct below kernel = {raw_mmap, raw_munmap, raw_mprotect, raw_madvise, raw_mremap};
    const int saved = errno;
    void* address = (void*)a;
    const size_t bytes = (size_t)b;
    long result;
    switch (number) {
        case SYS_mmap:
            result = (long)map(&kernel, address, bytes, (int)c, (int)d, (int)e, f);
            break;
        case SYS_munmap:
            result = unmap(&kernel, address, bytes);
            break;
        case SYS_mprotect:
            result = protect(&kernel, address, bytes, (int)c);
            break;
        case SYS_madvise:
            result = advise(&kernel, address, bytes, (int)c);
            break;
        case SYS_mremap:
            result = (long)remap(&kernel, address, bytes, (size_t)c, (int)d, (void*)e);
            break;
        default:
            return raw(number, a, b, c, d, e, f);
    }
    if (result == -1) result = -errno;
    errno = saved;
    return result;
}
