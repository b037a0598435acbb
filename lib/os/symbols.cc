// SPDX-License-Identifier: BSD-3-Clause
#include "os/symbols.h"

#include <sys/auxv.h>

#include <cstdint>
#include <cstring>

#include "base/bits.h"

// Made by the linker: the first byte in memory of the object that this is linked into.
extern "C" const ElfW(Ehdr) coco_object __asm__("__ehdr_start") __attribute__((visibility("hidden")));

namespace coco::os {
namespace {

struct Tables {
    const ElfW(Sym) * symbols;
    const char* strings;
    const std::uint32_t* gnu_hash;
    const std::uint32_t* hash;
};

Tables tables_of(const dl_phdr_info& object) {
    Tables tables{};
    const ElfW(Dyn)* entry = nullptr;
    for (int i = 0; i < object.dlpi_phnum; ++i)
        if (object.dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + object.dlpi_phdr[i].p_vaddr);
    for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
        // The kernel's own object (vdso) keeps addresses as they are in the file.
        auto address = entry->d_un.d_ptr + (entry->d_un.d_ptr < object.dlpi_addr ? object.dlpi_addr : 0);
        if (entry->d_tag == DT_SYMTAB) tables.symbols = reinterpret_cast<const ElfW(Sym)*>(address);
        if (entry->d_tag == DT_STRTAB) tables.strings = reinterpret_cast<const char*>(address);
        if (entry->d_tag == DT_GNU_HASH) tables.gnu_hash = reinterpret_cast<const std::uint32_t*>(address);
        if (entry->d_tag == DT_HASH) tables.hash = reinterpret_cast<const std::uint32_t*>(address);
    }
    if (tables.symbols == nullptr || tables.strings == nullptr) return {};
    return tables;
}

bool is_definition(const Tables& tables, std::uint32_t index, const char* name) {
    const ElfW(Sym)& symbol = tables.symbols[index];
    return symbol.st_shndx != SHN_UNDEF && ELF64_ST_BIND(symbol.st_info) != STB_LOCAL &&
           std::strcmp(tables.strings + symbol.st_name, name) == 0;
}

// The definition of a name in an object; null: it has none.
const ElfW(Sym) * find_by_gnu_hash(const Tables& tables, const char* name) {
    std::uint32_t wanted = 5381;
    for (const char* c = name; *c != '\0'; ++c) wanted = wanted * 33 + static_cast<unsigned char>(*c);
    const std::uint32_t* header = tables.gnu_hash;
    const std::uint32_t bucket_count = header[0], first_index = header[1], filter_words = header[2];
    const std::uint32_t* buckets = header + 4 + filter_words * (sizeof(ElfW(Addr)) / sizeof(std::uint32_t));
    const std::uint32_t* chains = buckets + bucket_count;
    if (bucket_count == 0) return nullptr;
    std::uint32_t index = buckets[wanted % bucket_count];
    if (index < first_index) return nullptr;
    for (;; ++index) {
        std::uint32_t hash = chains[index - first_index];
        if ((hash | 1) == (wanted | 1) && is_definition(tables, index, name)) return &tables.symbols[index];
        if ((hash & 1) != 0) return nullptr;  // the chain's last
    }
}

const ElfW(Sym) * find_by_hash(const Tables& tables, const char* name) {
    const std::uint32_t bucket_count = tables.hash[0], symbol_count = tables.hash[1];
    const std::uint32_t* chains = tables.hash + 2 + bucket_count;
    std::uint32_t wanted = 0;
    for (const char* c = name; *c != '\0'; ++c) {
        wanted = (wanted << 4) + static_cast<unsigned char>(*c);
        wanted = (wanted ^ (wanted & 0xf0000000u) >> 24) & 0x0fffffffu;
    }
    std::uint32_t index = bucket_count == 0 ? 0 : tables.hash[2 + wanted % bucket_count];
    for (; index != 0 && index < symbol_count; index = chains[index])
        if (is_definition(tables, index, name)) return &tables.symbols[index];
    return nullptr;
}

const ElfW(Sym) * find(const dl_phdr_info& object, const char* name) {
    Tables tables = tables_of(object);
    if (tables.gnu_hash != nullptr) return find_by_gnu_hash(tables, name);
    return tables.hash != nullptr ? find_by_hash(tables, name) : nullptr;
}

}  // namespace

Object own_object() { return reinterpret_cast<const char*>(&coco_object) + coco_object.e_phoff; }

Range own_data() {
    Range data{nullptr, nullptr};
    any_object([&data](const dl_phdr_info& object) {
        if (object.dlpi_phdr != own_object()) return false;
        for (int i = 0; i < object.dlpi_phnum; ++i) {
            const ElfW(Phdr)& part = object.dlpi_phdr[i];
            if (part.p_type != PT_LOAD || (part.p_flags & PF_W) == 0) continue;
            const ElfW(Addr) begin = object.dlpi_addr + part.p_vaddr;
            data = {reinterpret_cast<void*>(base::round_up(begin, sizeof(void*))),
                    reinterpret_cast<void*>((begin + part.p_memsz) / sizeof(void*) * sizeof(void*))};
        }
        return true;
    });
    return data;
}

Object definer(const char* name, Object after) {
    Object found = nullptr;
    any_object([&](const dl_phdr_info& object) {
        if (after != nullptr) {
            if (object.dlpi_phdr == after) after = nullptr;
        } else if (find(object, name) != nullptr) {
            found = object.dlpi_phdr;
        }
        return found != nullptr;
    });
    return found;
}

const void* kernels_own(const char* name) {
    const auto* head = reinterpret_cast<const ElfW(Ehdr)*>(getauxval(AT_SYSINFO_EHDR));
    if (head == nullptr) return nullptr;
    const auto begin = reinterpret_cast<ElfW(Addr)>(head);
    dl_phdr_info object{};
    object.dlpi_addr = begin;
    object.dlpi_phdr = reinterpret_cast<const ElfW(Phdr)*>(begin + head->e_phoff);
    object.dlpi_phnum = head->e_phnum;
    const ElfW(Sym)* symbol = find(object, name);
    return symbol != nullptr ? reinterpret_cast<const void*>(begin + symbol->st_value) : nullptr;
}

const char* file_of(Object object) {
    const char* file = nullptr;
    any_object([&](const dl_phdr_info& each) {
        if (each.dlpi_phdr == object) file = each.dlpi_name;
        return each.dlpi_phdr == object;
    });
    return file;
}

}  // namespace coco::os
