// SPDX-License-Identifier: BSD-3-Clause
// Preloaded after the malloc door: a dlsym that allocates, grows, keeps and frees memory, as some tools' and
// older C libraries' do.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <new>

extern "C" __attribute__((visibility("default"))) void* dlsym(void* handle, const char* name) noexcept {
    using Dlsym = void*(void*, const char*);
    static char *kept, *kept_by_new;
    static Dlsym* libcs;
    if (libcs == nullptr) libcs = reinterpret_cast<Dlsym*>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34"));
    if (libcs == nullptr) libcs = reinterpret_cast<Dlsym*>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5"));
    char* text = static_cast<char*>(std::malloc(10));
    char* zeros = static_cast<char*>(std::calloc(10, 10));
    for (int i = 0; i < 100; ++i)
        if (zeros[i] != 0) std::abort();
    std::strcpy(text, "some text");
    text = static_cast<char*>(std::realloc(text, 200));
    if (std::strcmp(text, "some text") != 0) std::abort();
    std::free(zeros);
    // Freed or grown by the next call, when the decision may have fallen.
    std::free(kept);
    kept = text;
    ::operator delete(kept_by_new);
    kept_by_new = static_cast<char*>(::operator new(100));
    return libcs(handle, name);
}
