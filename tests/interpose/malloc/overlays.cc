// SPDX-License-Identifier: BSD-3-Clause
//
// A program maps something over malloc's memory, shuts or drops some of it: a forked child sees what its
// parent sees, and freed memory that is used again touches nothing of it.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <vector>

#include "expect.h"

namespace {

// Pages as large as this kernel's.
const std::size_t kPage = static_cast<std::size_t>(sysconf(_SC_PAGESIZE)), kBytes = 64 * kPage;
constexpr int kAccess = PROT_READ | PROT_WRITE, kAnonymous = MAP_PRIVATE | MAP_ANONYMOUS;

char* new_block(char value, std::size_t bytes = kBytes) {
    auto* block = static_cast<char*>(aligned_alloc(kPage, bytes));
    std::memset(block, value, bytes);
    return block;
}

bool all_are(const char* data, std::size_t bytes, char value) {
    return data[0] == value && std::memcmp(data, data + 1, bytes - 1) == 0;
}

int new_file(char value, std::size_t bytes) {
    char path[] = "/tmp/coco-overlay-XXXXXX";
    int fd = mkstemp(path);
    EXPECT(fd >= 0 && unlink(path) == 0);
    std::vector<char> text(bytes, value);
    EXPECT(write(fd, text.data(), bytes) == static_cast<ssize_t>(bytes));
    return fd;
}

bool file_holds(int fd, char value, std::size_t bytes) {
    std::vector<char> text(bytes);
    return pread(fd, text.data(), bytes, 0) == static_cast<ssize_t>(bytes) &&
           all_are(text.data(), bytes, value);
}

// Freed memory in use again, of the sizes around.
void use_again(std::size_t bytes = kBytes) {
    std::vector<char*> blocks;
    for (int i = 0; i < 8; ++i) {
        blocks.push_back(static_cast<char*>(calloc(1, bytes)));
        EXPECT(all_are(blocks.back(), bytes, 0));
        std::memset(blocks.back(), 'u', bytes);
    }
    for (char* block : blocks) free(block);
}

template <class Life>
void in_child(Life life) {
    pid_t child = fork();
    if (child == 0) {
        life();
        _exit(failures() == 0 ? 0 : 1);
    }
    int status = -1;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
}

void lay_over(char* at, std::size_t bytes, int flags, int fd, bool bare) {
    void* made =
        bare ? reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, kAccess, flags | MAP_FIXED, fd, 0L))
             : mmap(at, bytes, kAccess, flags | MAP_FIXED, fd, 0);
    EXPECT(made == at);
}

// The child keeps a private overlay for itself, and shares a shared one.
void check_fork(bool bare) {
    char* block = new_block('h');
    int fd = new_file('f', kPage);
    lay_over(block + 4 * kPage, kPage, kAnonymous, -1, bare);
    lay_over(block + 8 * kPage, kPage, MAP_SHARED, fd, bare);
    lay_over(block + 12 * kPage, kPage, MAP_PRIVATE, fd, bare);
    std::memset(block + 4 * kPage, 'a', kPage);
    std::memset(block + 12 * kPage, 'p', kPage);
    for (int turn = 0; turn < 2; ++turn)
        in_child([&] {
            EXPECT(all_are(block, 4 * kPage, 'h') && all_are(block + 4 * kPage, kPage, 'a'));
            EXPECT(all_are(block + 12 * kPage, kPage, 'p') && all_are(block + 13 * kPage, 51 * kPage, 'h'));
            EXPECT(block[8 * kPage] == 'f' + turn);
            ++block[8 * kPage];
            std::memset(block, 'c', 5 * kPage);
            std::memset(block + 12 * kPage, 'c', 20 * kPage);
            in_child([&] { EXPECT(all_are(block, 5 * kPage, 'c') && block[8 * kPage] == 'f' + turn + 1); });
            free(block);
            use_again();
            EXPECT(file_holds(fd, 'f', 1) == false);
        });
    EXPECT(all_are(block, 4 * kPage, 'h') && all_are(block + 4 * kPage, kPage, 'a') &&
           block[8 * kPage] == 'f' + 2);
    EXPECT(all_are(block + 12 * kPage, kPage, 'p') && all_are(block + 13 * kPage, 51 * kPage, 'h'));
    block[8 * kPage] = 'f';
    free(block);
    use_again();
    EXPECT(file_holds(fd, 'f', kPage));
    close(fd);
}

// Large blocks are given back to the system at free.
void check_free_of_large() {
    constexpr std::size_t kLarge = 40u << 20;
    for (int turn = 0; turn < 4; ++turn) {
        char* block = new_block('h', kLarge);
        int fd = new_file('f', 16 * kPage);
        lay_over(block + (20u << 20), 16 * kPage, MAP_SHARED, fd, false);
        free(block);
        use_again(kLarge);
        EXPECT(file_holds(fd, 'f', 16 * kPage));
        close(fd);
    }
}

void check_realloc() {
    char* block = new_block('h');
    int fd = new_file('f', kPage);
    lay_over(block + 8 * kPage, kPage, MAP_SHARED, fd, false);
    auto* grown = static_cast<char*>(realloc(block, 4 * kBytes));
    EXPECT(all_are(grown, 8 * kPage, 'h') && all_are(grown + 8 * kPage, kPage, 'f'));
    EXPECT(all_are(grown + 9 * kPage, 55 * kPage, 'h'));
    std::memset(grown, 'g', 4 * kBytes);
    use_again();
    EXPECT(file_holds(fd, 'f', kPage));
    free(grown);
    close(fd);
}

// Somebody else's mapping may have come to lie where the program has unmapped pages of a block.
void check_hole() {
    char* block = new_block('h');
    EXPECT(munmap(block + 16 * kPage, 16 * kPage) == 0);
    in_child([&] {
        EXPECT(all_are(block, 16 * kPage, 'h'));
        unsigned char resident = 0;
        EXPECT(mincore(block + 16 * kPage, kPage, &resident) == -1 && errno == ENOMEM);
    });
    auto* others = static_cast<char*>(mmap(block + 18 * kPage, 4 * kPage, kAccess, kAnonymous, -1, 0));
    EXPECT(others == block + 18 * kPage);
    std::memset(others, 's', 4 * kPage);
    free(block);
    use_again();
    EXPECT(all_are(others, 4 * kPage, 's'));
    EXPECT(munmap(others, 4 * kPage) == 0);
    block = new_block('h');
    EXPECT(munmap(block + 16 * kPage, 16 * kPage) == 0);
    free(block);
    use_again();
}

// As private memory does, what moves takes its contents along, and is nobody else's then.
void check_moved_away() {
    char* block = new_block('h');
    auto* to = static_cast<char*>(mmap(nullptr, 16 * kPage, kAccess, kAnonymous, -1, 0));
    void* moved = mremap(block + 8 * kPage, 16 * kPage, 16 * kPage, MREMAP_MAYMOVE | MREMAP_FIXED, to);
    EXPECT(moved == to && all_are(to, 16 * kPage, 'h'));
    // A move that the kernel refuses of private memory.
    EXPECT(mremap(block + 32 * kPage, 4 * kPage, 4 * kPage, MREMAP_MAYMOVE | MREMAP_FIXED,
                  block + 34 * kPage) == MAP_FAILED &&
           errno == EINVAL && all_are(block + 32 * kPage, 8 * kPage, 'h'));
    in_child([&] { std::memset(to, 'c', 16 * kPage); });
    EXPECT(all_are(to, 16 * kPage, 'h'));
    free(block);
    use_again();
    EXPECT(all_are(to, 16 * kPage, 'h'));
    munmap(to, 16 * kPage);
}

// What the kernel does to private memory otherwise, or refuses.
void check_resized() {
    char* block = new_block('h');
    EXPECT(mremap(block + 1, kPage, 2 * kPage, MREMAP_MAYMOVE) == MAP_FAILED && errno == EINVAL);
    EXPECT(mremap(block, 0, kPage, MREMAP_MAYMOVE) == MAP_FAILED && errno == EINVAL);
    EXPECT(mremap(block + kPage, kPage, 2 * kPage, 0) == MAP_FAILED && errno == ENOMEM);
    EXPECT(all_are(block, kBytes, 'h'));
    auto* grown = static_cast<char*>(mremap(block + 4 * kPage, kPage, 4 * kPage, MREMAP_MAYMOVE));
    EXPECT(grown != MAP_FAILED && all_are(grown, kPage, 'h') && all_are(grown + kPage, 3 * kPage, 0));
    EXPECT(mremap(block + 8 * kPage, 4 * kPage, 2 * kPage, 0) == block + 8 * kPage);
    EXPECT(all_are(block + 8 * kPage, 2 * kPage, 'h') && all_are(block + 12 * kPage, 8 * kPage, 'h'));
    constexpr int kStays = 4;  // MREMAP_DONTUNMAP
    EXPECT(mprotect(block + 24 * kPage, kPage, PROT_READ) == 0);
    void* moved = mremap(block + 24 * kPage, 2 * kPage, 2 * kPage, MREMAP_MAYMOVE | kStays);
    EXPECT(moved == MAP_FAILED ||
           (all_are(static_cast<char*>(moved), 2 * kPage, 'h') && all_are(block + 24 * kPage, 2 * kPage, 0)));
    free(block);
    use_again();
    EXPECT(all_are(grown, kPage, 'h'));
}

// What the kernel refuses changes nothing; a child's memory moves, too.
void check_refused() {
    char* block = new_block('h');
    EXPECT(munmap(block, SIZE_MAX - kPage + 1) == -1 && errno == EINVAL);
    in_child([&] { std::memset(block, 'c', kBytes); });
    EXPECT(all_are(block, kBytes, 'h'));
    EXPECT(madvise(block, kPage, MADV_DONTNEED) == 0 && all_are(block, kPage, 0));
    in_child([&] {
        void* to = mmap(nullptr, 4 * kPage, kAccess, kAnonymous, -1, 0);
        EXPECT(mremap(block + kPage, 4 * kPage, 4 * kPage, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
        EXPECT(all_are(static_cast<char*>(to), 4 * kPage, 'h'));
        free(block);
        use_again();
    });
    free(block);
}

void check_shut() {
    char* block = new_block('h');
    EXPECT(mprotect(block + 4 * kPage, kPage, PROT_NONE) == 0);
    EXPECT(mprotect(block + 8 * kPage, kPage, PROT_READ) == 0);
    in_child([&] {
        EXPECT(all_are(block, 4 * kPage, 'h') && all_are(block + 5 * kPage, 20 * kPage, 'h'));
        int ends[2];
        EXPECT(pipe(ends) == 0);
        EXPECT(write(ends[1], block + 4 * kPage, 1) == -1 && errno == EFAULT);  // still shut
        EXPECT(write(ends[1], "x", 1) == 1 && read(ends[0], block + 8 * kPage, 1) == -1 && errno == EFAULT);
        free(block);
        use_again();
    });
    free(block);  // as glibc would unmap it
    for (int i = 0; i < 4; ++i) use_again();
}

void check_dropped() {
    char* block = new_block('h');
    lay_over(block + 2 * kPage, kPage, kAnonymous, -1, false);
    std::memset(block + 2 * kPage, 'a', kPage);
    EXPECT(madvise(block + 8 * kPage, kPage, MADV_REMOVE) == -1 && errno == EINVAL);
    EXPECT(all_are(block + 8 * kPage, kPage, 'h'));
    EXPECT(madvise(block, 16 * kPage, MADV_DONTNEED) == 0);
    EXPECT(all_are(block, 16 * kPage, 0) && all_are(block + 16 * kPage, 16 * kPage, 'h'));
    EXPECT(madvise(block + 16 * kPage, kPage, MADV_FREE) == 0);
    EXPECT(block[16 * kPage] == 'h' || block[16 * kPage] == 0);
    EXPECT(syscall(SYS_madvise, block + 20 * kPage, kPage, MADV_DONTNEED) == 0);
    EXPECT(all_are(block + 20 * kPage, kPage, 0));
    for (int advice : {MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_DONTDUMP, MADV_DODUMP, MADV_WILLNEED})
        EXPECT(madvise(block + 24 * kPage, kPage, advice) == 0 || errno == EINVAL);
    EXPECT(mlock(block + 24 * kPage, kPage) == 0 && munlock(block + 24 * kPage, kPage) == 0);
    EXPECT(all_are(block + 24 * kPage, 8 * kPage, 'h'));
    free(block);
    use_again();
}

// Other system calls are libc's, those that return twice too.
void check_other_calls() {
    EXPECT(syscall(SYS_getpid) == getpid());
    EXPECT(syscall(SYS_close, -1) == -1 && errno == EBADF);
    EXPECT(syscall(SYS_munmap, 1L, 1L) == -1 && errno == EINVAL);
    long child = syscall(SYS_clone, SIGCHLD, 0L, 0L, 0L, 0L);
    if (child == 0) _exit(3);
    int status = -1;
    EXPECT(waitpid(static_cast<pid_t>(child), &status, 0) == child && WEXITSTATUS(status) == 3);
}

}  // namespace

int main() {
    check_fork(false);
    check_fork(true);
    check_free_of_large();
    check_realloc();
    check_hole();
    check_moved_away();
    check_resized();
    check_refused();
    check_shut();
    check_dropped();
    check_other_calls();
    return failures();
}
