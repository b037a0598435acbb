// SPDX-License-Identifier: BSD-3-Clause
#include "places.h"

#include <link.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace coco::model {
namespace {

namespace fs = std::filesystem;

std::uintptr_t program_begin() {
    std::uintptr_t begin = 0;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* to) {
            *static_cast<std::uintptr_t*>(to) = info->dlpi_addr;
            return 1;  // the program is the first
        },
        &begin);
    return begin;
}

std::vector<std::string> lines_from(const std::string& command) {
    std::FILE* pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) throw std::runtime_error("cannot run addr2line");
    std::string all;
    std::array<char, 4096> piece{};
    for (std::size_t got = 0; (got = std::fread(piece.data(), 1, piece.size(), pipe)) != 0;)
        all.append(piece.data(), got);
    if (pclose(pipe) != 0) throw std::runtime_error("addr2line has failed");
    std::vector<std::string> lines;
    std::istringstream text(all);
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
}

std::string trimmed(const std::string& text) {
    const std::size_t begin = text.find_first_not_of(' ');
    return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

Line line_at(const fs::path& path, int number) {
    std::ifstream source(path);
    Line line{fs::path(path).lexically_normal().parent_path().filename() / path.filename(), number, ""};
    for (int i = 0; i < number; ++i) std::getline(source, line.text);
    line.text = trimmed(line.text);
    return line;
}

// "PATH:NUMBER", perhaps with more behind it. PATH begins with the folder that the compiler ran in. A cache
// of the compiler's may have kept that from another checkout, so the source is looked for in this one.
bool read_line(const std::string& text, Line& line) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string::npos) return false;
    const std::string path = fs::path(text.substr(0, colon)).lexically_normal();
    for (const std::string room : {"sync", "channel"}) {
        const std::size_t begin = path.rfind("lib/" + room + "/");
        if (begin == std::string::npos) continue;
        line = line_at(fs::path(COCO_LIB) / room / fs::path(path).filename(),
                       std::atoi(text.c_str() + colon + 1));
        return true;
    }
    return false;
}

}  // namespace

std::map<Place, Line> lines_of(const std::set<Place>& places) {
    const std::uintptr_t begin = program_begin();
    std::ostringstream command;
    command << COCO_ADDR2LINE " -a -i -e '" << fs::read_symlink("/proc/self/exe").string() << "'" << std::hex;
    // The address is behind the call.
    for (Place place : places) command << " 0x" << reinterpret_cast<std::uintptr_t>(place) - 1 - begin;
    std::map<Place, Line> found;
    Place place = nullptr;
    // For each address: itself, the line, and the lines that it was inlined to.
    for (const std::string& text : lines_from(command.str())) {
        Line line;
        if (text.starts_with("0x"))
            place = reinterpret_cast<Place>(std::stoull(text, nullptr, 16) + 1 + begin);
        else if (!found.contains(place) && read_line(text, line))
            found[place] = line;
    }
    return found;
}

std::set<Line> ordered_lines() {
    std::set<Line> lines;
    for (const char* room : {"sync", "channel"})
        for (const auto& entry : fs::directory_iterator(fs::path(COCO_LIB) / room)) {
            std::ifstream source(entry.path());
            int number = 0;
            for (std::string text; std::getline(source, text);) {
                ++number;
                for (const char* order : {"acquire", "release", "acq_rel", "seq_cst"})
                    if (text.find(std::string("memory_order_") + order) != std::string::npos)
                        lines.insert(line_at(entry.path(), number));
            }
        }
    return lines;
}

}  // namespace coco::model
