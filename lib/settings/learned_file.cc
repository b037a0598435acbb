// SPDX-License-Identifier: BSD-3-Clause
#include "settings/learned_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "base/check.h"
#include "base/env.h"
#include "base/index.h"
#include "base/one_line.h"
#include "base/write_signals.h"
#include "os/probe.h"

namespace coco::settings {
namespace {

namespace fs = std::filesystem;

std::string why(const std::string& path, int error) { return path + ": " + std::strerror(error); }

class File {
  public:
    File(const char* path, int flags) : File(open(path, flags | O_CLOEXEC)) {}
    explicit File(int fd) : fd_(fd) {}
    ~File() {
        if (fd_ >= 0) close(fd_);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    bool is_open() const { return fd_ >= 0; }
    int fd() const { return fd_; }

    bool read_all(std::string& text) const {
        COCO_CHECK(is_open(), "a file that is read is open");
        char piece[65536];
        for (ssize_t n; (n = read(fd_, piece, sizeof piece)) != 0;) {
            if (n < 0 && errno == EINTR) continue;
            if (n < 0 || text.size() + base::index(n) > policy::kMostFileBytes) return false;
            text.append(piece, base::index(n));
        }
        return true;
    }
    bool write_all(std::string_view text) const {
        COCO_CHECK(is_open(), "a file that is written is open");
        while (!text.empty()) {
            const ssize_t n = write(fd_, text.data(), text.size());
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) return false;
            text.remove_prefix(base::index(n));
        }
        return fsync(fd_) == 0;
    }

  private:
    const int fd_;
};

// A file that is being written has the name of the finished one with a dot, letters and digits that
// mkostemps() chooses, and this behind it.
constexpr std::string_view kPart = ".part";
constexpr std::size_t kChosenLetters = 6;

// Whether this is the name of such a file; earlier versions had a process's number in it.
bool is_part_of(const std::string& file, std::string_view name) {
    if (!name.starts_with(file + '.') || !name.ends_with(kPart) ||
        name.size() <= file.size() + 1 + kPart.size())
        return false;
    const std::string_view middle =
        name.substr(file.size() + 1, name.size() - file.size() - 1 - kPart.size());
    auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    return (middle.size() <= 7 && std::ranges::all_of(middle, is_digit)) ||
           (middle.size() == kChosenLetters &&
            std::ranges::all_of(middle, [&](char c) { return is_digit(c) || is_letter(c); }));
}

// As jobs make them.
bool is_own_part(const struct stat& facts) {
    return S_ISREG(facts.st_mode) && facts.st_uid == geteuid() &&
           (facts.st_mode & 07777) == (S_IRUSR | S_IWUSR);
}

// Removes what jobs that were killed while they wrote have left beside the file: nobody takes a day.
void remove_left_parts(const std::string& path) {
    constexpr time_t kOldSeconds = 24 * 60 * 60;
    const fs::path folder = fs::path(path).parent_path();
    const std::string file = fs::path(path).filename();
    std::error_code error;
    for (fs::directory_iterator at(folder.empty() ? "." : folder, error), end; !error && at != end;
         at.increment(error)) {
        struct stat facts {};
        if (is_part_of(file, at->path().filename().string()) && lstat(at->path().c_str(), &facts) == 0 &&
            is_own_part(facts) && time(nullptr) - facts.st_mtime > kOldSeconds)
            unlink(at->path().c_str());
    }
}

// Rules decide what a program runs: they are taken from this user's files alone, and from the
// administrator's.
bool is_trusted(const struct stat& facts) {
    return S_ISREG(facts.st_mode) && (facts.st_uid == geteuid() || facts.st_uid == 0) &&
           (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool read_file(const std::string& path, policy::Learned& learned, std::string& trouble) {
    // Not to wait for a pipe's writer.
    File file(path.c_str(), O_RDONLY | O_NONBLOCK);
    if (!file.is_open()) {
        if (errno != ENOENT) trouble = why(path, errno);
        return false;
    }
    struct stat facts {};
    if (fstat(file.fd(), &facts) != 0 || !is_trusted(facts)) {
        trouble = path + ": is another user's, or may be written by others, or is no file; it is not read";
        return false;
    }
    std::string text;
    if (!file.read_all(text)) {
        trouble = path + ": cannot be read, or is too large";
        return false;
    }
    if (auto error = policy::parse_learned(text, path, learned)) {
        trouble = error->line;
        return false;
    }
    return true;
}

// Variables that decide by which ways the MPI library's bytes and ours move; with a star all that begin so.
// None of them differs from job to job or from host to host by itself, as some that launchers set do.
constexpr std::string_view kTransportVariables[] = {"COCO_HEAP",
                                                    "FI_PROVIDER",
                                                    "I_MPI_ADJUST_*",
                                                    "I_MPI_FABRICS",
                                                    "I_MPI_OFI_PROVIDER",
                                                    "MPIR_CVAR_ALLGATHER*",
                                                    "MPIR_CVAR_ALLTOALL*",
                                                    "MPIR_CVAR_BCAST*",
                                                    "MPIR_CVAR_CH4_NETMOD",
                                                    "MPIR_CVAR_NEMESIS_NETMOD",
                                                    "MPIR_CVAR_OFI_USE_PROVIDER",
                                                    "OMPI_MCA_btl",
                                                    "OMPI_MCA_coll*",
                                                    "OMPI_MCA_mtl",
                                                    "OMPI_MCA_pml",
                                                    "UCX_NET_DEVICES",
                                                    "UCX_TLS"};

bool is_of_transport(std::string_view name) {
    return std::ranges::any_of(kTransportVariables, [&](std::string_view known) {
        return known.ends_with('*') ? name.starts_with(known.substr(0, known.size() - 1)) : name == known;
    });
}

// The node's network and the variables, in their order.
std::string transport() {
    std::vector<std::string> parts;
    for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
        const std::string_view variable = *at;
        if (is_of_transport(variable.substr(0, variable.find('=')))) parts.emplace_back(variable);
    }
    std::ranges::sort(parts);
    std::string text = os::networks();
    for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
    return text;
}

}  // namespace

std::string machine() {
    std::string text = os::processors();
    if (auto invented = base::env("COCO_TOPOLOGY"); !invented.empty()) text.append(", as ").append(invented);
    return text;
}

policy::LearnedKey key_for(const std::string& mpi, std::span<const policy::Rule> rules) {
    // TOML is UTF-8, and what names itself here need not be.
    using base::Letters;
    return {COCO_VERSION, base::one_line(mpi, Letters::ascii), base::one_line(machine(), Letters::ascii),
            base::one_line(transport(), Letters::ascii), policy::hash_of(rules)};
}

// As the base directory specification of freedesktop.org has it: a relative name does not count.
std::string learned_folder() {
    const std::string cache(base::env("XDG_CACHE_HOME"));
    if (cache.starts_with('/')) return cache + "/coco";
    const std::string home(base::env("HOME"));
    return home.starts_with('/') ? home + "/.cache/coco" : std::string();
}

std::string learned_path(const std::string& file, const policy::LearnedKey& key) {
    if (!file.empty()) return file;
    const std::string folder = learned_folder();
    COCO_CHECK(folder.empty() || folder.starts_with('/'), "the cache is where a full name says");
    return folder.empty() ? folder : folder + "/learned-" + policy::hash_of(key) + ".toml";
}

std::vector<policy::Rule> read_learned(const std::string& path, const policy::LearnedKey& key,
                                       std::string& trouble) {
    policy::Learned learned;
    if (path.empty() || !read_file(path, learned, trouble) || learned.key != key) return {};
    return std::move(learned.rules);
}

std::string trouble_of_learned(const std::string& path) {
    policy::Learned learned;
    std::string trouble;
    read_file(path, learned, trouble);
    return trouble;
}

std::vector<std::string> learned_files() {
    std::vector<std::string> files;
    std::error_code error;
    for (fs::directory_iterator at(learned_folder(), error), end; !error && at != end; at.increment(error))
        if (const std::string name = at->path().filename();
            name.starts_with("learned-") && name.ends_with(".toml"))
            files.push_back(at->path());
    return files;
}

std::vector<policy::Learned> all_learned(const std::string& file) {
    std::vector<policy::Learned> all;
    for (const std::string& path : file.empty() ? learned_files() : std::vector{file}) {
        policy::Learned learned;
        std::string trouble;
        if (read_file(path, learned, trouble)) all.push_back(std::move(learned));
    }
    return all;
}

bool write_learned(const std::string& path, const policy::Learned& learned, std::string& trouble) {
    COCO_CHECK(!path.empty(), "learned rules are written to a file that has a name");
    std::error_code error;
    const fs::path folder = fs::path(path).parent_path();
    if (!folder.empty()) fs::create_directories(folder.parent_path(), error);
    if (!folder.empty()) mkdir(folder.c_str(), S_IRWXU);  // what is wrong shows in the next step
    remove_left_parts(path);
    std::string part = path + '.' + std::string(kChosenLetters, 'X');
    part += kPart;
    const base::HeldWriteSignals held;
    File file(mkostemps(part.data(), kPart.size(), O_CLOEXEC));  // readable and writable by its user alone
    if (!file.is_open()) {
        trouble = why(path, errno);
        return false;
    }
    if (file.write_all(policy::text_of(learned)) && rename(part.c_str(), path.c_str()) == 0) return true;
    trouble = why(path, errno);
    unlink(part.c_str());
    return false;
}

}  // namespace coco::settings
