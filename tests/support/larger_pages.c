/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A kernel whose pages are as large as LARGER_PAGES says, preloaded: for code that must not take the size of a page for
 * granted. It tells that size, returns addresses that are multiples of it, works on whole pages of it, and refuses
 * addresses and offsets that are none, as such a kernel would; by abort where callers
 * hardly look at the result. What goes to the kernel by the bare system call is not seen.
 */
#define _GNU_SOURCE
#undef _FILE_OFFSET_BITS /* by which the headers would give mmap another name */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t page(void) {
    static size_t bytes = 0;
    if (bytes == 0) {
        const char* text = getenv("LARGER_PAGES");
        bytes = text != NULL ? strtoul(text, NULL, 10) : 4096;
    }
    return bytes;
}

#define NEXT(name)                 \
    static __typeof__(name)* next; \
    if (next == NULL) next = (__typeof__(next))dlsym(RTLD_NEXT, #name)

static size_t up(size_t bytes) { return (bytes + page() - 1) & ~(page() - 1); }
static int is_odd(const void* address) { return (uintptr_t)address % page() != 0; }

static void* refuse(void) {
    errno = EINVAL;
    return MAP_FAILED;
}

long sysconf(int name) {
    NEXT(sysconf);
    return name == _SC_PAGESIZE ? (long)page() : next(name);
}

static void require_whole(const void* address, const char* what) {
    if (!is_odd(address)) return;
    dprintf(STDERR_FILENO, "larger_pages: %s in the midst of a page\n", what);
    abort();
}

int munmap(void* address, size_t bytes) {
    NEXT(munmap);
    require_whole(address, "munmap");
    return next(address, up(bytes));
}

/* Pieces that such a kernel would not have made. */
static void trim(char* begin, size_t bytes) {
    NEXT(munmap);
    next(begin, bytes);
}

void* mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) {
    NEXT(mmap);
    if ((size_t)offset % page() != 0) return refuse();
    const int fixed = MAP_FIXED | MAP_FIXED_NOREPLACE;
    if ((flags & fixed) != 0 && is_odd(address)) return refuse();
    if ((flags & fixed) == MAP_FIXED) return next(address, up(bytes), protection, flags, fd, offset);
    if (address != NULL && !is_odd(address)) { /* where it is wished, if nothing is there */
        void* wished = next(address, up(bytes), protection, flags | MAP_FIXED_NOREPLACE, fd, offset);
        if (wished == address) return wished;
        if (wished != MAP_FAILED) trim(wished, up(bytes)); /* a kernel that does not know the flag */
        errno = EEXIST;
        if ((flags & fixed) != 0) return MAP_FAILED;
    }
    /* Room for it, of which a part has the address that it must have. */
    char* room =
        next(NULL, up(bytes) + page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) return MAP_FAILED;
    char* begin = (char*)up((uintptr_t)room);
    void* mapped = next(begin, up(bytes), protection, flags | MAP_FIXED, fd, offset);
    int why = errno;
    if (mapped == MAP_FAILED) trim(begin, up(bytes));
    if (begin != room) trim(room, (size_t)(begin - room));
    char* end = begin + up(bytes);
    if (end != room + up(bytes) + page()) trim(end, (size_t)(room + up(bytes) + page() - end));
    errno = why;
    return mapped;
}

void* mmap64(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) {
    return mmap(address, bytes, protection, flags, fd, offset);
}

int mprotect(void* address, size_t bytes, int protection) {
    NEXT(mprotect);
    if (is_odd(address)) return refuse(), -1;
    return next(address, up(bytes), protection);
}

int madvise(void* address, size_t bytes, int advice) {
    NEXT(madvise);
    require_whole(address, "madvise");
    return next(address, up(bytes), advice);
}

void* mremap(void* address, size_t bytes, size_t new_bytes, int flags, ...) {
    NEXT(mremap);
    va_list rest;
    va_start(rest, flags);
    void* wanted = va_arg(rest, void*);
    va_end(rest);
    if (is_odd(address) || ((flags & MREMAP_FIXED) != 0 && is_odd(wanted))) return refuse();
    return next(address, up(bytes), up(new_bytes), flags, wanted);
}
