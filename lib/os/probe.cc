// SPDX-License-Identifier: BSD-3-Clause
#include "os/probe.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "base/env.h"
#include "base/index.h"
#include "base/one_line.h"
#include "os/hwloc_calls.h"
#include "os/process.h"

namespace coco::os {
namespace {

struct Destroy {
    decltype(HwlocCalls::topology_destroy) destroy;
    void operator()(hwloc_topology_t t) const { destroy(t); }
};
using Topology = std::unique_ptr<hwloc_topology, Destroy>;

Topology new_topology(const HwlocCalls& hwloc) {
    hwloc_topology_t topology = nullptr;
    return Topology(hwloc.topology_init(&topology) == 0 ? topology : nullptr, {hwloc.topology_destroy});
}

std::string read_file(const std::string& path) {
    std::string text;
    int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return text;
    char buffer[512];
    for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;) text.append(buffer, base::index(n));
    close(fd);
    return text;
}

// The first word of `text`, which loses it.
std::string_view next_word(std::string_view& text) {
    constexpr std::string_view kBlank = " \t\n";
    text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
    std::string_view word = text.substr(0, text.find_first_of(kBlank));
    text.remove_prefix(word.size());
    return word;
}

void add_cache(Caches& caches, std::uint64_t level, std::uint64_t bytes) {
    if (level == 1) caches.l1_bytes = bytes;
    if (level == 2) caches.l2_bytes = bytes;
    caches.last_level_bytes = std::max(caches.last_level_bytes, bytes);
}

}  // namespace

Caches kernel_caches(std::int32_t cpu, std::string_view root) {
    Caches found;
    const std::string folder =
        std::string(root) + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cache/index";
    for (int i = 0;; ++i) {
        const std::string cache = folder + std::to_string(i) + "/";
        const std::string level = read_file(cache + "level"), type = read_file(cache + "type");
        const std::string size = read_file(cache + "size");
        if (level.empty()) return found;
        auto word = [](std::string_view text) { return next_word(text); };
        std::uint64_t number = 0, bytes = 0;
        if (word(type) != "Instruction" && base::parse_number(word(level), number) &&
            base::parse_bytes(word(size), bytes))
            add_cache(found, number, bytes);
    }
}

namespace {

// As the processor tells libc, which on AMD's takes those of a socket together for one.
Caches processor_caches() {
    Caches found;
    const int names[] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE,
                         _SC_LEVEL4_CACHE_SIZE};
    for (std::uint64_t level = 1; level <= std::size(names); ++level) {
        const long bytes = sysconf(names[level - 1]);
        if (bytes > 0) add_cache(found, level, static_cast<std::uint64_t>(bytes));
    }
    return found;
}

Caches find_caches() {
    Caches found = kernel_caches(seat().cpu);
    const Caches told = processor_caches();
    if (found.l1_bytes == 0) found.l1_bytes = told.l1_bytes;
    if (found.l2_bytes == 0) found.l2_bytes = told.l2_bytes;
    if (found.last_level_bytes == 0) found.last_level_bytes = told.last_level_bytes;
    // Nobody tells (some sandboxes): what any server of the last ten years has at least.
    if (found.l1_bytes == 0) found.l1_bytes = 32 << 10;
    if (found.l2_bytes == 0) found.l2_bytes = 256 << 10;
    if (found.last_level_bytes < found.l2_bytes) found.last_level_bytes = 8 << 20;
    return found;
}

// "50000 100000" -> 1 (rounded down, at least 1); "max 100000", "-1 100000" and anything else -> 0.
std::int32_t whole_cpus(std::string_view text) {
    std::uint64_t quota = 0, period = 0;
    if (!base::parse_number(next_word(text), quota) || !base::parse_number(next_word(text), period)) return 0;
    if (quota == 0 || period == 0) return 0;
    return static_cast<std::int32_t>(std::clamp<std::uint64_t>(quota / period, 1, Cpus::kMost));
}

std::int32_t tighter(std::int32_t a, std::int32_t b) { return a == 0 ? b : b == 0 ? a : std::min(a, b); }

bool lists(std::string_view comma_separated, std::string_view word) {
    for (std::size_t at = 0; at <= comma_separated.size();) {
        std::size_t comma = std::min(comma_separated.find(',', at), comma_separated.size());
        if (comma_separated.substr(at, comma - at) == word) return true;
        at = comma + 1;
    }
    return false;
}

// Calls act(folder of the group, version of control groups) for this process's groups of a controller and all
// above them.
template <class Act>
void for_each_group(std::string_view root, std::string_view controller, Act act) {
    const std::string prefix(root), mount = prefix + "/sys/fs/cgroup";
    const std::string groups = read_file(prefix + "/proc/self/cgroup");
    // Lines "0::/path" (v2) and "4:cpu,cpuacct:/path" (v1).
    for (std::string_view rest = groups; !rest.empty();) {
        std::string_view line = next_word(rest);
        std::size_t first = line.find(':'), second = line.find(':', first + 1);
        if (second == line.npos) continue;
        std::string_view controllers = line.substr(first + 1, second - first - 1);
        if (!controllers.empty() && !lists(controllers, controller)) continue;
        const std::string base = controllers.empty() ? mount : mount + "/" + std::string(controller);
        std::string path(line.substr(second + 1));
        while (!path.empty() && path.back() == '/') path.pop_back();
        for (;; path.erase(path.find_last_of('/'))) {
            act(base + path + "/", controllers.empty() ? 2 : 1);
            if (path.empty()) break;
        }
    }
}

// hwloc's time grows with the third power of what a description describes: 4096 CPUs take it a second.
constexpr std::uint64_t kMostDescribed = 4096;

// Whether objects of the type that the word names can make a level of a machine, or (attached) lie beside
// one. hwloc ends the process for some others.
bool is_of_machine(const HwlocCalls& hwloc, const char* word, bool attached) {
    hwloc_obj_type_t type{};
    if (hwloc.type_of_word(word, &type, nullptr, 0) != 0) return false;
    return type == HWLOC_OBJ_NUMANODE || (!attached && hwloc.is_normal(type) != 0);
}

// Goes through a synthetic description before hwloc does. It has words "type:number(attributes)", where the
// type may be missing, and "[type(attributes)]" for an object beside each of the last word's.
class Description {
  public:
    Description(const HwlocCalls& hwloc, const std::string& text) : hwloc_(hwloc), at_(text.c_str()) {}

    // Returns: whether hwloc can be given the text.
    bool is_harmless() {
        if (!has_small_indexes()) return false;
        while (objects_ <= kMostDescribed) {
            while (*at_ == ' ' || *at_ == '\n') ++at_;
            if (*at_ == '\0') return true;
            if (!(*at_ == '[' ? pass_attached() : pass_level())) return false;
            objects_ += width_;
        }
        return false;
    }

  private:
    // "indexes=" gives the objects numbers. hwloc keeps a bit set for each object, which is as long as the
    // largest number says. The numbers stand in a list, or come of factors, "1*2:2*4", which hwloc multiplies
    // and divides by: a product that overflows may be 0.
    bool has_small_indexes() const {
        constexpr std::string_view kWord = "indexes=";
        const std::string_view text = at_;
        for (std::size_t at = text.find(kWord); at != text.npos; at = text.find(kWord, at + 1)) {
            const std::string_view rest = text.substr(at + kWord.size());
            if (!are_small(rest.substr(0, rest.find_first_of(" )")))) return false;
        }
        return true;
    }
    static bool are_small(std::string_view indexes) {
        // Only plain numbers in base 10, words, and what stands between them: hwloc would also take signs,
        // blanks and, in some places, base 16.
        constexpr std::string_view kDigits = "0123456789",
                                   kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
        std::uint64_t product = 1;
        char before = '\0';
        for (std::size_t at = 0; at < indexes.size();) {
            const std::size_t end = std::min(indexes.find_first_not_of(kDigits, at), indexes.size());
            if (end == at) {
                const char here = indexes[at++];
                if (here != ',' && here != ':' && here != '*' && kLetters.find(here) == kLetters.npos)
                    return false;
                if (before >= '0' && before <= '9' && (here == 'x' || here == 'X')) return false;
                before = here;
                continue;
            }
            std::uint64_t number = 0;
            if (!base::parse_number(indexes.substr(at, end - at), number) || number > kMostDescribed)
                return false;
            if (before == '*') product *= std::max<std::uint64_t>(number, 1);
            if (product > kMostDescribed) return false;
            before = indexes[end - 1];
            at = end;
        }
        return true;
    }

    bool pass_attached() { return is_of_machine(hwloc_, at_ + 1, true) && pass(std::strchr(at_, ']')); }
    bool pass_level() {
        if (*at_ < '0' || *at_ > '9') {
            if (!is_of_machine(hwloc_, at_, false) || !pass(std::strchr(at_, ':'))) return false;
        }
        char* behind = nullptr;
        const std::uint64_t arity = std::strtoul(at_, &behind, 0);
        if (behind == at_ || arity == 0 || arity > kMostDescribed / width_) return false;
        width_ *= arity;
        at_ = behind;
        return *at_ != '(' || pass(std::strchr(at_, ')'));
    }
    bool pass(const char* last) {
        if (last != nullptr) at_ = last + 1;
        return last != nullptr;
    }

    const HwlocCalls& hwloc_;
    const char* at_;
    std::uint64_t objects_ = 0, width_ = 1;  // so far, and on the last level
};

std::optional<topology::Invented> synthetic_machine(const std::string& text, std::string& error) {
    const HwlocCalls* hwloc = hwloc_calls();
    if (hwloc == nullptr) {
        error = std::string("it is for hwloc, but there is no ") + kHwlocFile + " here";
        return std::nullopt;
    }
    Topology topology = new_topology(*hwloc);
    if (!topology || !Description(*hwloc, text).is_harmless() ||
        hwloc->set_synthetic(topology.get(), text.c_str()) != 0 ||
        hwloc->topology_load(topology.get()) != 0) {
        error = std::string(1, '"')
                    .append(text)
                    .append("\" is no synthetic description that hwloc understands, or is of more than ")
                    .append(std::to_string(kMostDescribed))
                    .append(" objects");
        return std::nullopt;
    }
    const int depth = hwloc->type_depth(topology.get(), HWLOC_OBJ_NUMANODE);
    return topology::Invented{1,
                              std::max(1, static_cast<int>(hwloc->objects_at_depth(topology.get(), depth)))};
}

}  // namespace

Seat seat() {
    unsigned cpu = 0, domain = 0;
    if (getcpu(&cpu, &domain) != 0) return {0, 0};
    return {static_cast<std::int32_t>(domain), static_cast<std::int32_t>(cpu)};
}

const Caches& caches() {
    static const Caches found = find_caches();
    return found;
}

std::int32_t Cpus::count() const {
    std::int32_t bits = 0;
    for (std::uint64_t word : mask) bits += std::popcount(word);
    return std::max(1, tighter(quota, bits));
}

std::string processors() {
    // As the kernel tells of the first CPU; its table has a record for each.
    std::string name;
    const std::string table = read_file("/proc/cpuinfo");
    for (const char* key : {"model name", "cpu model", "CPU part"}) {
        const std::size_t at = table.find(key), colon = table.find(": ", at);
        if (at == std::string::npos || colon == std::string::npos) continue;
        name = table.substr(colon + 2, table.find('\n', colon) - colon - 2);
        break;
    }
    utsname system{};
    if (name.empty() && uname(&system) == 0) name = system.machine;
    return name + ", " + std::to_string(online_cpus()) + " CPUs";
}

std::string networks(std::string_view root) {
    namespace fs = std::filesystem;
    auto first_line = [](const fs::path& path) {
        const std::string text = read_file(path);
        return text.substr(0, text.find('\n'));
    };
    std::vector<std::string> all;
    for (const char* kind : {"infiniband", "cxi"}) {
        std::error_code error;
        for (fs::directory_iterator at(std::string(root).append("/sys/class/").append(kind), error), end;
             !error && at != end; at.increment(error)) {
            // Numbers of devices, and of their slots, may differ from job to job, and from node to node.
            std::string name = at->path().filename();
            name.resize(std::min(name.find_first_of("0123456789"), name.size()));
            bool has_ports = false;
            std::error_code none;
            for (fs::directory_iterator port(at->path() / "ports", none), last; !none && port != last;
                 port.increment(none)) {
                has_ports = true;
                const std::string state = first_line(port->path() / "state"),
                                  rate = first_line(port->path() / "rate");
                if (state.empty() || state.find("ACTIVE") != state.npos)
                    all.push_back(name + (rate.empty() ? "" : " of " + rate));
            }
            if (!has_ports) all.push_back(name);
        }
    }
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    std::string text;
    for (const std::string& network : all) text += (text.empty() ? "" : ", ") + network;
    return text;
}

Cpus usable_cpus() {
    Cpus cpus{};
    if (sched_getaffinity(0, sizeof cpus.mask, reinterpret_cast<cpu_set_t*>(cpus.mask)) != 0)
        cpus.mask[0] = 1;
    cpus.quota = cpu_quota();
    return cpus;
}

std::int32_t cpu_quota(std::string_view root) {
    std::int32_t quota = 0;
    for_each_group(root, "cpu", [&](const std::string& group, int version) {
        const std::string text = version == 2 ? read_file(group + "cpu.max")
                                              : read_file(group + "cpu.cfs_quota_us") + " " +
                                                    read_file(group + "cpu.cfs_period_us");
        quota = tighter(quota, whole_cpus(text));
    });
    return quota;
}

std::uint64_t granted_memory_bytes(std::string_view root) {
    std::uint64_t least = UINT64_MAX;
    for_each_group(root, "memory", [&](const std::string& group, int version) {
        const std::string text = read_file(group + (version == 2 ? "memory.max" : "memory.limit_in_bytes"));
        std::string_view words = text;
        std::uint64_t bytes = 0;
        if (base::parse_number(next_word(words), bytes)) least = std::min(least, bytes);
    });
    return least;
}

std::optional<topology::Invented> invented_machine(std::string_view text, std::string& error) {
    // Only hwloc's words carry a colon, and its bare numbers begin with a digit.
    bool for_hwloc = text.find(':') != text.npos || (!text.empty() && text[0] >= '0' && text[0] <= '9');
    auto machine =
        for_hwloc ? synthetic_machine(std::string(text), error) : topology::parse_invented(text, error);
    error = base::one_line(error);
    return machine;
}

}  // namespace coco::os
