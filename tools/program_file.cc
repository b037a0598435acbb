// SPDX-License-Identifier: BSD-3-Clause
#include "tools/program_file.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tools/child.h"

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

// The entries of a table in a file; none if the file ends before the last of them.
template <class Entry>
std::vector<Entry> table(std::ifstream& in, std::uint64_t offset, std::uint64_t count) {
    in.clear();
    in.seekg(0, std::ios::end);
    const auto end = static_cast<std::uint64_t>(in.tellg());
    if (offset > end || count > (end - offset) / sizeof(Entry)) return {};
    std::vector<Entry> entries(count);
    in.seekg(static_cast<std::streamoff>(offset));
    in.read(reinterpret_cast<char*>(entries.data()), static_cast<std::streamsize>(count * sizeof(Entry)));
    return in ? entries : std::vector<Entry>();
}

}  // namespace

Elf read_elf(const std::string& path) {
    Elf elf;
    std::error_code ignored;
    if (!fs::is_regular_file(path, ignored)) return elf;
    std::ifstream in(path, std::ios::binary);
    const std::vector<Elf64_Ehdr> header = table<Elf64_Ehdr>(in, 0, 1);
    if (header.empty() || std::memcmp(header[0].e_ident, ELFMAG, SELFMAG) != 0) return elf;
    elf.is_elf = true;
    elf.is_native = header[0].e_ident[EI_CLASS] == ELFCLASS64 && header[0].e_machine == kMachine;
    if (!elf.is_native) return elf;
    for (const Elf64_Phdr& part : table<Elf64_Phdr>(in, header[0].e_phoff, header[0].e_phnum))
        if (part.p_type == PT_INTERP) {
            const std::vector<char> name = table<char>(in, part.p_offset, part.p_filesz);
            elf.interpreter.assign(name.begin(), std::ranges::find(name, '\0'));
        }
    return elf;
}

Names names_in(const std::string& path, const std::set<std::string>& asked) {
    Names names;
    if (!read_elf(path).is_native) return names;
    std::ifstream in(path, std::ios::binary);
    const std::vector<Elf64_Ehdr> header = table<Elf64_Ehdr>(in, 0, 1);
    if (header.empty()) return names;
    // Libraries that are stripped keep the sections of dynamic symbols.
    const std::vector<Elf64_Shdr> sections = table<Elf64_Shdr>(in, header[0].e_shoff, header[0].e_shnum);
    for (const Elf64_Shdr& section : sections) {
        if (section.sh_type != SHT_DYNSYM || section.sh_link >= sections.size()) continue;
        const Elf64_Shdr& texts = sections[section.sh_link];
        std::vector<char> text = table<char>(in, texts.sh_offset, texts.sh_size);
        text.push_back('\0');  // In a damaged file the last name has no end.
        const std::uint64_t count = section.sh_size / sizeof(Elf64_Sym);
        for (const Elf64_Sym& symbol : table<Elf64_Sym>(in, section.sh_offset, count)) {
            if (symbol.st_name >= text.size()) continue;
            const std::string name = &text[symbol.st_name];
            if (asked.contains(name))
                (symbol.st_shndx == SHN_UNDEF ? names.wanted : names.defined).insert(name);
        }
    }
    return names;
}

// The loader's lines are "\tNAME => FILE (ADDRESS)", "\tFILE (ADDRESS)" and "\tNAME => not found". The
// kernel's own library is no file.
std::vector<std::string> all_needed(const std::string& path) {
    constexpr unsigned kPatience_s = 20;
    constexpr std::string_view kArrow = " => ";
    std::vector<std::string> found;
    // This command's own loader is known to list and to start nothing.
    const std::string loader = read_elf("/proc/self/exe").interpreter;
    if (loader.empty() || read_elf(path).interpreter.empty()) return found;
    std::error_code ignored;
    const std::string program = fs::weakly_canonical(path, ignored);
    std::istringstream lines(output_of(
        {loader, program}, {{"LD_TRACE_LOADED_OBJECTS", "1"}, {"LD_PRELOAD", nullptr}}, kPatience_s));
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with('\t')) continue;
        const std::size_t arrow = line.find(kArrow);
        const std::size_t begin = arrow == std::string::npos ? 1 : arrow + kArrow.size();
        const std::string file = line.substr(begin, line.rfind(" (") - begin);
        if (file.find('/') != std::string::npos)
            found.push_back(file);
        else if (arrow != std::string::npos)
            found.push_back(line.substr(1, arrow - 1));
    }
    return found;
}

}  // namespace coco::tools
