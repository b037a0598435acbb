// SPDX-License-Identifier: BSD-3-Clause
#include "base/kernel.h"

#include <sys/syscall.h>

#include <cerrno>

namespace coco::kernel {
namespace {

long word(const void* address) { return reinterpret_cast<long>(address); }
long word(std::uint64_t number) { return static_cast<long>(number); }
long word(unsigned number) { return static_cast<long>(number); }
long word(int number) { return number; }

// A system call as libc makes it.
template <class... Arguments>
long as_libc(long number, Arguments... arguments) {
    const long result = call(number, word(arguments)...);
    if (static_cast<unsigned long>(result) < static_cast<unsigned long>(-4095L)) return result;
    errno = static_cast<int>(-result);
    return -1;
}
template <class... Arguments>
int status(long number, Arguments... arguments) {
    return static_cast<int>(as_libc(number, arguments...));
}
template <class... Arguments>
void* pointer(long number, Arguments... arguments) {
    return reinterpret_cast<void*>(as_libc(number, arguments...));
}

constexpr int kAtWorkingFolder = -100;  // AT_FDCWD

}  // namespace

int open(const char* path, int flags) { return status(SYS_openat, kAtWorkingFolder, path, flags, 0); }
int close(int fd) { return status(SYS_close, fd); }
ssize_t read(int fd, void* to, std::size_t bytes) { return as_libc(SYS_read, fd, to, bytes); }
ssize_t pread(int fd, void* to, std::size_t bytes, std::uint64_t offset) {
    return as_libc(SYS_pread64, fd, to, bytes, offset);
}
ssize_t write(int fd, const void* from, std::size_t bytes) { return as_libc(SYS_write, fd, from, bytes); }
off_t seek(int fd, std::uint64_t offset, int whence) { return as_libc(SYS_lseek, fd, offset, whence); }
int fstat(int fd, struct stat* facts) { return status(SYS_fstat, fd, facts); }
int fstatfs(int fd, struct statfs* facts) { return status(SYS_fstatfs, fd, facts); }
int fchmod(int fd, unsigned mode) { return status(SYS_fchmod, fd, mode); }
int fcntl(int fd, int command, int argument) { return status(SYS_fcntl, fd, command, argument); }
int ftruncate(int fd, std::uint64_t bytes) { return status(SYS_ftruncate, fd, bytes); }
int fallocate(int fd, int mode, std::uint64_t offset, std::uint64_t bytes) {
    return status(SYS_fallocate, fd, mode, offset, bytes);
}
int memfd_create(const char* name, unsigned flags) { return status(SYS_memfd_create, name, flags); }
ssize_t readlink(const char* path, char* to, std::size_t bytes) {
    return as_libc(SYS_readlinkat, kAtWorkingFolder, path, to, bytes);
}

void* mmap(void* address, std::size_t bytes, int protection, int flags, int fd, std::uint64_t offset) {
    return pointer(SYS_mmap, address, bytes, protection, flags, fd, offset);
}
int munmap(void* address, std::size_t bytes) { return status(SYS_munmap, address, bytes); }
int mprotect(void* address, std::size_t bytes, int protection) {
    return status(SYS_mprotect, address, bytes, protection);
}
int madvise(void* address, std::size_t bytes, int advice) {
    return status(SYS_madvise, address, bytes, advice);
}
void* mremap(void* address, std::size_t bytes, std::size_t new_bytes, int flags, void* wanted) {
    return pointer(SYS_mremap, address, bytes, new_bytes, flags, wanted);
}
int munlock(const void* address, std::size_t bytes) { return status(SYS_munlock, address, bytes); }
void* shmat(int id, const void* address, int flags) { return pointer(SYS_shmat, id, address, flags); }
int shmdt(const void* address) { return status(SYS_shmdt, address); }

pid_t getpid() { return status(SYS_getpid); }
int getrlimit(int resource, rlimit* limit) {
    constexpr const void* kStays = nullptr;
    return status(SYS_prlimit64, 0, resource, kStays, limit);
}
int sysinfo(struct sysinfo* facts) { return status(SYS_sysinfo, facts); }
ssize_t getrandom(void* to, std::size_t bytes, unsigned flags) {
    return as_libc(SYS_getrandom, to, bytes, flags);
}
int sched_getaffinity(std::size_t bytes, void* mask) { return status(SYS_sched_getaffinity, 0, bytes, mask); }

}  // namespace coco::kernel
