// SPDX-License-Identifier: BSD-3-Clause
// Fuzz target: a file of learned rules, as found in the cache, and names of MPI libraries and machines that
// are written there.
#include "policy/learned.h"

#include <sys/stat.h>

#include "fuzz.h"
#include "settings/learned_file.h"

namespace {

using namespace coco;

// What is written can be read, and is the same.
void check_written(const policy::Learned& learned) {
    policy::Learned again;
    const std::string text = policy::text_of(learned);
    const auto error = policy::parse_learned(text, "written", again);
    REQUIRE_TRUE(!error, text);
    REQUIRE_TRUE(again.key == learned.key && again.rules.size() == learned.rules.size(), text);
    REQUIRE_TRUE(policy::hash_of(again.key) == policy::hash_of(learned.key), text);
    REQUIRE_TRUE(policy::text_of(again) == text, text);
}

// The same through a file, and rules of another key do not count.
void check_file(const policy::Learned& learned, const std::string& path) {
    std::string trouble;
    REQUIRE_TRUE(settings::write_learned(path, learned, trouble), trouble);
    REQUIRE_TRUE(settings::read_learned(path, learned.key, trouble).size() == learned.rules.size(), trouble);
    REQUIRE_TRUE(settings::all_learned(path).size() == 1, path);
    policy::LearnedKey other = learned.key;
    other.policy += "x";
    REQUIRE_TRUE(settings::read_learned(path, other, trouble).empty() && trouble.empty(), trouble);
}

void check_any_key(std::string_view text) {
    const std::size_t half = text.size() / 2;
    const std::string machine(text.substr(half));
    setenv("COCO_TOPOLOGY", machine.c_str(), 1);
    check_written({settings::key_for(std::string(text.substr(0, half)), {}), {}});
    unsetenv("COCO_TOPOLOGY");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const fuzz::File file("learned.toml"), written("written.toml");
    const std::string_view text = fuzz::Input(data, size).rest();
    check_any_key(text);

    file.write(text);
    REQUIRE_TRUE(chmod(file.path().c_str(), S_IRUSR | S_IWUSR) == 0, file.path());
    policy::Learned learned;
    std::string trouble;
    if (auto error = policy::parse_learned(text, file.path(), learned)) {
        REQUIRE_TRUE(fuzz::is_one_line(error->line) && error->line.starts_with(file.path()), error->line);
        REQUIRE_TRUE(settings::read_learned(file.path(), learned.key, trouble).empty(), trouble);
        REQUIRE_TRUE(trouble == error->line, trouble);
        REQUIRE_TRUE(settings::all_learned(file.path()).empty(), file.path());
        return 0;
    }
    check_written(learned);
    check_file(learned, written.path());
    REQUIRE_TRUE(settings::read_learned(file.path(), learned.key, trouble).size() == learned.rules.size(),
                 trouble);
    return 0;
}
