// SPDX-License-Identifier: BSD-3-Clause
//
// System calls made directly, by the names and with the results of libc's functions: -1 and errno where the
// kernel refuses. Other preloaded libraries wrap libc's names, and their wrappers allocate; so whatever may
// run while an allocator's lock is held calls the kernel by these, and no wrapper, patch or door of ours sees
// the call.
//
// Called by everything that runs below malloc. Thread safety: any thread, signal handlers, forked children.
#pragma once
#include <sys/resource.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

struct stat;
struct statfs;
struct sysinfo;

namespace coco::kernel {

// Any system call. Returns: its result, -errno if it fails; errno stays.
long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0);

int open(const char* path, int flags);
int close(int fd);
ssize_t read(int fd, void* to, std::size_t bytes);
ssize_t pread(int fd, void* to, std::size_t bytes, std::uint64_t offset);
ssize_t write(int fd, const void* from, std::size_t bytes);
off_t seek(int fd, std::uint64_t offset, int whence);
int fstat(int fd, struct stat* facts);
int fstatfs(int fd, struct statfs* facts);
int fchmod(int fd, unsigned mode);
int fcntl(int fd, int command, int argument);
int ftruncate(int fd, std::uint64_t bytes);
int fallocate(int fd, int mode, std::uint64_t offset, std::uint64_t bytes);
int memfd_create(const char* name, unsigned flags);
ssize_t readlink(const char* path, char* to, std::size_t bytes);

void* mmap(void* address, std::size_t bytes, int protection, int flags, int fd, std::uint64_t offset);
int munmap(void* address, std::size_t bytes);
int mprotect(void* address, std::size_t bytes, int protection);
int madvise(void* address, std::size_t bytes, int advice);
void* mremap(void* address, std::size_t bytes, std::size_t new_bytes, int flags, void* wanted);
int munlock(const void* address, std::size_t bytes);
void* shmat(int id, const void* address, int flags);
int shmdt(const void* address);

pid_t getpid();
int getrlimit(int resource, rlimit* limit);
int sysinfo(struct sysinfo* facts);
ssize_t getrandom(void* to, std::size_t bytes, unsigned flags);
// The CPUs of this thread's mask. Returns: how many bytes of the mask the kernel has written; -1.
int sched_getaffinity(std::size_t bytes, void* mask);

}  // namespace coco::kernel
