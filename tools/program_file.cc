// SPDX-License-Identifier: BSD-3-Clause
#include "tools/program_file.h"

#include <elf.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace coco::tools {
namespace fs = std::filesystem;
namespace {

// The machine that this command itself was built for.
#if defined(__x86_64__)
constexpr auto kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr auto kMachine = EM_AARCH64;
#elif defined(__powerpc64__)
constexpr auto kMachine = EM_PPC64;
#elif defined(__riscv)
constexpr auto kMachine = EM_RISCV;
#else
#error "name the ELF machine of this architecture here"
#endif

class File {
  public:
    explicit File(const std::string& path) : in_(path, std::ios::binary) {}

    template <typename T>
    bool read(std::uint64_t offset, T& value) {
        in_.clear();
        in_.seekg(static_cast<std::streamoff>(offset));
        return static_cast<bool>(in_.read(reinterpret_cast<char*>(&value), sizeof value));
    }
    std::string text(std::uint64_t offset) {
        std::string value;
        in_.clear();
        in_.seekg(static_cast<std::streamoff>(offset));
        std::getline(in_, value, '\0');
        return value;
    }

    // Empty if the file ends before.
    std::string part(std::uint64_t offset, std::uint64_t bytes) {
        in_.clear();
        in_.seekg(0, std::ios::end);
        const auto end = static_cast<std::uint64_t>(in_.tellg());
        std::string value(offset <= end && bytes <= end - offset ? bytes : 0, '\0');
        in_.seekg(static_cast<std::streamoff>(offset));
        in_.read(value.data(), static_cast<std::streamsize>(value.size()));
        return value;
    }

  private:
    std::ifstream in_;
};

std::vector<std::string> split(const std::string& list) {
    std::vector<std::string> parts;
    std::stringstream in(list);
    for (std::string part; std::getline(in, part, ':');)
        if (!part.empty()) parts.push_back(part);
    return parts;
}

std::vector<Elf64_Phdr> program_headers(File& file, const Elf64_Ehdr& header) {
    std::vector<Elf64_Phdr> list;
    for (int i = 0; i < header.e_phnum; ++i) {
        Elf64_Phdr entry;
        if (!file.read(header.e_phoff + static_cast<std::uint64_t>(i) * sizeof entry, entry)) break;
        list.push_back(entry);
    }
    return list;
}

// Where a virtual address is in the file; 0 if nowhere.
std::uint64_t file_offset(const std::vector<Elf64_Phdr>& headers, std::uint64_t address) {
    for (const Elf64_Phdr& h : headers)
        if (h.p_type == PT_LOAD && address >= h.p_vaddr && address - h.p_vaddr < h.p_filesz)
            return h.p_offset + (address - h.p_vaddr);
    return 0;
}

void read_dynamic(File& file, const std::vector<Elf64_Phdr>& headers, const Elf64_Phdr& part, Elf& elf,
                  const std::string& origin) {
    std::vector<std::uint64_t> names, paths;
    std::uint64_t strings = 0;
    for (std::uint64_t at = 0; at + sizeof(Elf64_Dyn) <= part.p_filesz; at += sizeof(Elf64_Dyn)) {
        Elf64_Dyn entry;
        if (!file.read(part.p_offset + at, entry) || entry.d_tag == DT_NULL) break;
        if (entry.d_tag == DT_NEEDED) names.push_back(entry.d_un.d_val);
        if (entry.d_tag == DT_RUNPATH || entry.d_tag == DT_RPATH) paths.push_back(entry.d_un.d_val);
        if (entry.d_tag == DT_STRTAB) strings = file_offset(headers, entry.d_un.d_ptr);
    }
    if (strings == 0) return;
    for (std::uint64_t name : names) elf.needed.push_back(file.text(strings + name));
    for (std::uint64_t path : paths)
        for (std::string folder : split(file.text(strings + path))) {
            for (const char* word : {"${ORIGIN}", "$ORIGIN"})
                if (auto found = folder.find(word); found != std::string::npos)
                    folder.replace(found, std::strlen(word), origin);
            elf.run_path.push_back(folder);
        }
}

// The loader's cache, by library name: what ld.so.conf's folders hold.
const std::multimap<std::string, std::string>& loader_cache() {
    static const std::multimap<std::string, std::string> cache = [] {
        std::multimap<std::string, std::string> found;
        FILE* pipe = popen("PATH=/sbin:/usr/sbin:$PATH ldconfig -p 2>/dev/null", "r");
        char line[4096];
        while (pipe != nullptr && std::fgets(line, sizeof line, pipe) != nullptr) {
            std::istringstream words(line);
            std::string name, word, last;
            words >> name;
            while (words >> word) last = word;
            if (last.starts_with('/')) found.emplace(name, last);
        }
        if (pipe != nullptr) pclose(pipe);
        return found;
    }();
    return cache;
}

// The sections of a file, of which libraries that are stripped keep those of dynamic symbols.
std::vector<Elf64_Shdr> sections(File& file, const Elf64_Ehdr& header) {
    std::vector<Elf64_Shdr> list;
    for (int i = 0; i < header.e_shnum; ++i) {
        Elf64_Shdr entry;
        if (!file.read(header.e_shoff + static_cast<std::uint64_t>(i) * sizeof entry, entry)) break;
        list.push_back(entry);
    }
    return list;
}

void add_names(const std::string& symbols, const std::string& strings, const std::set<std::string>& asked,
               Names& names) {
    for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= symbols.size(); at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        std::memcpy(&symbol, symbols.data() + at, sizeof symbol);
        if (symbol.st_name >= strings.size()) continue;
        const std::string name = strings.c_str() + symbol.st_name;
        if (asked.contains(name)) (symbol.st_shndx == SHN_UNDEF ? names.wanted : names.defined).insert(name);
    }
}

}  // namespace

std::string find_library(const std::string& name, const std::vector<std::string>& run_path) {
    if (name.find('/') != std::string::npos) return name;
    std::vector<std::string> folders = run_path;
    if (const char* path = std::getenv("LD_LIBRARY_PATH"))
        for (std::string& folder : split(path)) folders.push_back(std::move(folder));
    for (const char* folder : {"/lib64", "/usr/lib64", "/lib", "/usr/lib"}) folders.emplace_back(folder);
    for (const std::string& folder : folders)
        if (std::string path = folder + "/" + name; read_elf(path).is_native) return path;
    auto [cached, end] = loader_cache().equal_range(name);  // entries of every architecture
    for (; cached != end; ++cached)
        if (read_elf(cached->second).is_native) return cached->second;
    return {};
}

Elf read_elf(const std::string& path) {
    Elf elf;
    std::error_code ignored;
    if (!fs::is_regular_file(path, ignored)) return elf;
    File file(path);
    Elf64_Ehdr header;
    if (!file.read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return elf;
    elf.is_elf = true;
    elf.is_native = header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == kMachine;
    if (!elf.is_native) return elf;
    std::vector<Elf64_Phdr> headers = program_headers(file, header);
    std::string origin = fs::weakly_canonical(path, ignored).parent_path();
    for (const Elf64_Phdr& h : headers) {
        if (h.p_type == PT_INTERP) elf.interpreter = file.text(h.p_offset);
        if (h.p_type == PT_DYNAMIC) read_dynamic(file, headers, h, elf, origin);
    }
    elf.is_dynamic = !elf.interpreter.empty();
    return elf;
}

Names names_in(const std::string& path, const std::set<std::string>& asked) {
    Names names;
    if (!read_elf(path).is_native) return names;
    File file(path);
    Elf64_Ehdr header;
    if (!file.read(0, header)) return names;
    const std::vector<Elf64_Shdr> all = sections(file, header);
    for (const Elf64_Shdr& section : all)
        if (section.sh_type == SHT_DYNSYM && section.sh_link < all.size()) {
            const Elf64_Shdr& strings = all[section.sh_link];
            add_names(file.part(section.sh_offset, section.sh_size),
                      file.part(strings.sh_offset, strings.sh_size), asked, names);
        }
    return names;
}

std::vector<std::string> all_needed(const std::string& path) {
    std::vector<std::string> found;
    std::set<std::string> seen;
    Elf program = read_elf(path);
    std::deque<Elf> files{program};
    for (; !files.empty(); files.pop_front()) {
        for (const std::string& name : files.front().needed) {
            if (!seen.insert(name).second) continue;
            std::vector<std::string> run_path = files.front().run_path;
            run_path.insert(run_path.end(), program.run_path.begin(), program.run_path.end());
            const std::string file = find_library(name, run_path);
            found.push_back(file.empty() ? name : file);
            if (!file.empty()) files.push_back(read_elf(file));
        }
    }
    return found;
}

}  // namespace coco::tools
