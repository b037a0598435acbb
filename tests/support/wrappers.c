/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A library that wraps functions of libc and allocates in each wrapper, as fakeroot, faketime and tracing tools do: to be
 * preloaded beside libcoco. A wrapper that is called while libcoco's allocator holds a lock would wait for itself.
 */
#define _GNU_SOURCE
#undef _FILE_OFFSET_BITS /* by which the headers would give functions other names */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

static __thread volatile int t_inside = 0;  // malloc, as compilers know it, calls no wrapper

static void fail(const char* name) {
    static const char kWords[] = "wrappers: called from malloc: ";
    syscall(SYS_write, STDERR_FILENO, kWords, sizeof kWords - 1);
    syscall(SYS_write, STDERR_FILENO, name, strlen(name));
    abort();
}

/* A constructor, as the first block of the process may be asked for in a wrapper. */
__attribute__((constructor)) static void allocate(void) {
    ++t_inside;
    void* volatile block = malloc(100);
    block = realloc(block, 5000);
    dlsym(RTLD_NEXT, "a_name_that_nobody_has"); /* for whose message dlsym allocates */
    dlerror();
    free(block);
    void* volatile large = malloc(300 * 1024);
    free(large);
    --t_inside;
}

/* The pages that malloc gives back are announced by munmap's name, with no lock of malloc's held. No system call tells of loaded
 * objects. */
static int may_come_from_malloc(const char* name) {
    return strcmp(name, "munmap") == 0 || strcmp(name, "dl_iterate_phdr") == 0;
}

static void* next_of(const char* name) {
    if (t_inside == 0)
        allocate();
    else if (!may_come_from_malloc(name))
        fail(name);
    return dlsym(RTLD_NEXT, name);
}

#define WRAP(Result, name, parameters, arguments)  \
    Result name parameters {                       \
        Result(*next) parameters = next_of(#name); \
        return next arguments;                     \
    }

WRAP(int, fchmod, (int fd, mode_t mode), (fd, mode))
WRAP(int, ftruncate, (int fd, off_t bytes), (fd, bytes))
WRAP(int, ftruncate64, (int fd, off64_t bytes), (fd, bytes))
WRAP(int, close, (int fd), (fd))
WRAP(ssize_t, read, (int fd, void* to, size_t bytes), (fd, to, bytes))
WRAP(ssize_t, pread64, (int fd, void* to, size_t bytes, off64_t offset), (fd, to, bytes, offset))
WRAP(ssize_t, write, (int fd, const void* from, size_t bytes), (fd, from, bytes))
WRAP(off64_t, lseek64, (int fd, off64_t offset, int whence), (fd, offset, whence))
WRAP(int, fstat64, (int fd, struct stat64* facts), (fd, facts))
WRAP(int, fstatvfs64, (int fd, struct statvfs64* facts), (fd, facts))
WRAP(int, fallocate64, (int fd, int mode, off64_t offset, off64_t bytes), (fd, mode, offset, bytes))
WRAP(int, memfd_create, (const char* name, unsigned flags), (name, flags))
WRAP(ssize_t, readlink, (const char* path, char* to, size_t bytes), (path, to, bytes))
WRAP(int, pipe2, (int fds[2], int flags), (fds, flags))
WRAP(int, poll, (struct pollfd * fds, nfds_t count, int timeout_ms), (fds, count, timeout_ms))
WRAP(void*, mmap, (void* at, size_t bytes, int protection, int flags, int fd, off_t offset),
     (at, bytes, protection, flags, fd, offset))
WRAP(void*, mmap64, (void* at, size_t bytes, int protection, int flags, int fd, off64_t offset),
     (at, bytes, protection, flags, fd, offset))
WRAP(int, munmap, (void* at, size_t bytes), (at, bytes))
WRAP(int, mprotect, (void* at, size_t bytes, int protection), (at, bytes, protection))
WRAP(int, madvise, (void* at, size_t bytes, int advice), (at, bytes, advice))
WRAP(int, mlock, (const void* at, size_t bytes), (at, bytes))
WRAP(int, munlock, (const void* at, size_t bytes), (at, bytes))
WRAP(int, getrlimit64, (__rlimit_resource_t resource, struct rlimit64* limit), (resource, limit))
WRAP(int, sysinfo, (struct sysinfo * facts), (facts))
WRAP(long, sysconf, (int name), (name))
WRAP(ssize_t, getrandom, (void* to, size_t bytes, unsigned flags), (to, bytes, flags))
WRAP(int, clock_gettime, (clockid_t clock, struct timespec* time), (clock, time))
WRAP(pid_t, getpid, (void), ())
WRAP(int, sched_getaffinity, (pid_t pid, size_t bytes, cpu_set_t* mask), (pid, bytes, mask))
WRAP(int, sched_yield, (void), ())
WRAP(int, dl_iterate_phdr, (int (*act)(struct dl_phdr_info*, size_t, void*), void* data), (act, data))
WRAP(int, pthread_mutex_lock, (pthread_mutex_t * mutex), (mutex))
WRAP(int, pthread_mutex_trylock, (pthread_mutex_t * mutex), (mutex))
WRAP(int, pthread_mutex_unlock, (pthread_mutex_t * mutex), (mutex))
WRAP(int, pthread_cond_init, (pthread_cond_t * condition, const pthread_condattr_t* attributes),
     (condition, attributes))

int open(const char* path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    const unsigned mode = va_arg(rest, unsigned);
    va_end(rest);
    int (*next)(const char*, int, ...) = next_of("open");
    return next(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    const unsigned mode = va_arg(rest, unsigned);
    va_end(rest);
    int (*next)(const char*, int, ...) = next_of("open64");
    return next(path, flags, mode);
}
int fcntl64(int fd, int command, ...) {
    va_list rest;
    va_start(rest, command);
    void* argument = va_arg(rest, void*);
    va_end(rest);
    int (*next)(int, int, ...) = next_of("fcntl64");
    return next(fd, command, argument);
}
int ioctl(int fd, unsigned long request, ...) {
    va_list rest;
    va_start(rest, request);
    void* argument = va_arg(rest, void*);
    va_end(rest);
    int (*next)(int, unsigned long, ...) = next_of("ioctl");
    return next(fd, request, argument);
}
