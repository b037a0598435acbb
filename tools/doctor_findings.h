// SPDX-License-Identifier: BSD-3-Clause
//
// What `coco doctor` finds: a list of findings, each from one check. Called by the checks and by the report. Thread safety: none
// needed. Fails: no.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace coco::tools {

enum class Level { ok, note, problem };  // note: it works, but gains less; problem: it does not work

struct Finding {
    std::string check;  // a word or two, the same for all findings of the check
    Level level = Level::ok;
    std::string what;    // the same text on all ranks that find the same: without process numbers
    std::string remedy;  // what to do; empty: nothing
    friend bool operator==(const Finding&, const Finding&) = default;
};

class Findings {
  public:
    void ok(std::string check, std::string what) { add(std::move(check), Level::ok, std::move(what), {}); }
    void note(std::string check, std::string what, std::string remedy) {
        add(std::move(check), Level::note, std::move(what), std::move(remedy));
    }
    void problem(std::string check, std::string what, std::string remedy) {
        add(std::move(check), Level::problem, std::move(what), std::move(remedy));
    }
    void add(std::string check, Level level, std::string what, std::string remedy) {
        all_.push_back({std::move(check), level, std::move(what), std::move(remedy)});
    }
    const std::vector<Finding>& all() const { return all_; }

  private:
    std::vector<Finding> all_;
};

}  // namespace coco::tools
