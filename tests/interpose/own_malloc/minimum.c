// SPDX-License-Identifier: BSD-3-Clause
// An allocator of a program's own: the four functions that glibc asks for, and with ALIGNED two more. It ends
// the process if it meets a block that it has not made, and keeps every block apart from all others.
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct head {
    uint64_t mark;
    size_t bytes;
    size_t from_start;
    uint64_t unused;
};
static const uint64_t kMark = 0x6f776e6d616c6c6fu;

static char* g_room;
static size_t g_left;

// Bumps through mapped memory; never gives back. Processes of this test allocate little.
static char* take(size_t bytes) {
    static volatile int locked;
    while (__sync_lock_test_and_set(&locked, 1)) {
    }
    if (bytes > g_left) {
        size_t room = bytes > (16u << 20) ? bytes : 16u << 20;
        char* mapped =
            mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        g_left = mapped == MAP_FAILED ? 0 : room;
        g_room = mapped;
    }
    char* block = bytes <= g_left ? g_room : NULL;
    if (block != NULL) {
        g_room += bytes;
        g_left -= bytes;
    }
    __sync_lock_release(&locked);
    return block;
}

static void* make(size_t alignment, size_t bytes) {
    size_t whole = (bytes + alignment + sizeof(struct head) + 63) & ~(size_t)63;
    char* start = whole > bytes && bytes < PTRDIFF_MAX ? take(whole) : NULL;
    if (start == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    uintptr_t block = ((uintptr_t)start + sizeof(struct head) + alignment - 1) & ~(uintptr_t)(alignment - 1);
    struct head* head = (struct head*)block - 1;
    head->mark = kMark;
    head->bytes = bytes;
    return (void*)block;
}

static int is_own(void* block) {
    return ((uintptr_t)block & 15) == 0 && ((struct head*)block - 1)->mark == kMark;
}

static struct head* head_of(void* block) {
    struct head* head = (struct head*)block - 1;
    if (is_own(block)) return head;
    static const char text[] = "the program's malloc was given a block of another\n";
    (void)!write(2, text, sizeof text - 1);
    _exit(4);
}

void* malloc(size_t bytes) { return make(16, bytes); }
#ifdef ALIGNED
void free(void* block) {
    if (block != NULL) head_of(block)->mark = 0;
}
#else
// Libraries below MPI also free what posix_memalign has made, which is libc's in such a program, with and
// without libcoco.
void free(void* block) {
    if (block != NULL && is_own(block)) head_of(block)->mark = 0;
}
#endif
void* calloc(size_t count, size_t bytes_each) {
    size_t bytes;
    if (!__builtin_mul_overflow(count, bytes_each, &bytes)) return make(16, bytes);
    errno = ENOMEM;
    return NULL;
}
void* realloc(void* block, size_t bytes) {
    void* moved = make(16, bytes);
    if (moved == NULL || block == NULL) return moved;
    size_t old = head_of(block)->bytes;
    memcpy(moved, block, old < bytes ? old : bytes);
    free(block);
    return moved;
}

#ifdef ALIGNED
void* aligned_alloc(size_t alignment, size_t bytes) { return make(alignment < 16 ? 16 : alignment, bytes); }
int posix_memalign(void** block, size_t alignment, size_t bytes) {
    int saved = errno;
    void* made = aligned_alloc(alignment, bytes);
    errno = saved;
    if (made == NULL) return ENOMEM;
    *block = made;
    return 0;
}
#endif
