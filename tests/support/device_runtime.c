/* SPDX-License-Identifier: BSD-3-Clause */
/* A stand-in for CUDA's driver, under its name: memory of the device is mapped twice, where no processor may touch it, and as a
   shadow, by which the stand-in for an MPI library that knows devices (device_layer.c) and the tests reach the bytes. */
#define _GNU_SOURCE
#include "device_runtime.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kSuccess = 0, kInvalidValue = 1, kNotInitialized = 3, kInvalidContext = 201 };
enum { kMemoryType = 2, kDeviceType = 2 };

struct block {
    char *memory, *shadow;
    size_t bytes;
    struct block* next;
};
static struct block* blocks;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int has_context, is_hidden, is_silent;

void* device_allocate(size_t bytes) {
    struct block* block = malloc(sizeof *block);
    const int file = memfd_create("device", MFD_CLOEXEC);
    if (block == NULL || file < 0 || ftruncate(file, (off_t)bytes) != 0) abort();
    block->memory = mmap(NULL, bytes, PROT_NONE, MAP_SHARED, file, 0);
    block->shadow = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (block->memory == MAP_FAILED || block->shadow == MAP_FAILED) abort();
    close(file);
    block->bytes = bytes;
    pthread_mutex_lock(&lock);
    block->next = blocks;
    blocks = block;
    has_context = 1;
    pthread_mutex_unlock(&lock);
    return block->memory;
}

void device_free(void* memory) {
    pthread_mutex_lock(&lock);
    struct block** at = &blocks;
    while (*at != NULL && (*at)->memory != memory) at = &(*at)->next;
    struct block* block = *at;
    if (block == NULL) abort();
    *at = block->next;
    pthread_mutex_unlock(&lock);
    munmap(block->memory, block->bytes);
    munmap(block->shadow, block->bytes);
    free(block);
}

void* device_shadow(const void* address) {
    void* found = NULL;
    pthread_mutex_lock(&lock);
    for (struct block* block = blocks; block != NULL && found == NULL; block = block->next) {
        const uintptr_t offset = (uintptr_t)address - (uintptr_t)block->memory;
        if (offset < block->bytes) found = block->shadow + offset;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void device_hide_context(int hide) { is_hidden = hide; }
void device_be_silent(void) { is_silent = 1; }

int cuCtxGetCurrent(void** context) {
    if (!has_context || is_hidden) return kNotInitialized;
    *context = &has_context;
    return kSuccess;
}

int cuDeviceGetCount(int* count) {
    if (!has_context) return kNotInitialized;
    *count = 1;
    return kSuccess;
}

int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* is_active) {
    (void)device;
    *flags = 0;
    *is_active = has_context && !is_hidden;
    return kSuccess;
}

int cuPointerGetAttribute(void* value, int attribute, unsigned long long address) {
    if (!has_context) return kNotInitialized;
    if (is_silent) return kInvalidContext;
    if (attribute != kMemoryType || device_shadow((const void*)(uintptr_t)address) == NULL)
        return kInvalidValue;
    *(unsigned*)value = kDeviceType;
    return kSuccess;
}
