// SPDX-License-Identifier: BSD-3-Clause
//
// The checks of `coco doctor`. A check is a name and a question. The question looks at a place, which is a
// process, a host or a job, and gives answers with advice. An answer becomes a finding under the check's
// name. Called by all files of the doctor. Thread safety: none; questions start child processes. Fails: a
// question that cannot be settled has no answer, or one that says so.
#pragma once
#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tools/mpi_found.h"
#include "tools/words.h"

namespace coco::tools {

// A note: libcoco works, and gains less than it could. A problem: libcoco does not work.
enum class Level { ok, note, problem };

struct Finding {
    std::string check;  // A question leaves it empty.
    Level level = Level::ok;
    std::string what;    // It is the same text on all ranks that find the same, without process numbers.
    std::string remedy;  // what to do; empty: nothing
    friend bool operator==(const Finding&, const Finding&) = default;
};

struct Answers : std::vector<Finding> {
    using vector::vector;
    Answers& operator+=(const Answers& more) {
        insert(end(), more.begin(), more.end());
        return *this;
    }
};

// One answer. words: "what is found -> what to do", whose holes {} are filled with the parts.
using Parts = std::initializer_list<Part>;
inline Answers answer(Level level, Parts parts, std::string_view words) {
    const std::string_view what = words.substr(0, words.find(" -> "));
    const std::string_view remedy = words.substr(std::min(what.size() + 4, words.size()));
    std::size_t holes = 0;
    for (std::size_t at = 0; (at = what.find("{}", at)) != std::string_view::npos; ++at) ++holes;
    const std::span all(parts);
    return {{{}, level, filled(all.first(holes), what), filled(all.subspan(holes), remedy)}};
}
inline Answers ok(std::string what) { return {{{}, Level::ok, std::move(what), {}}}; }
inline Answers ok(Parts parts, std::string_view what) { return ok(filled(parts, what)); }
inline Answers note(std::string_view words) { return answer(Level::note, {}, words); }
inline Answers note(Parts parts, std::string_view words) { return answer(Level::note, parts, words); }
inline Answers problem(std::string_view words) { return answer(Level::problem, {}, words); }
inline Answers problem(Parts parts, std::string_view words) { return answer(Level::problem, parts, words); }
// A problem of a line that has the form "what is wrong; what to do". otherwise: what to do if it has another
// form.
inline Answers problem_in_line(const std::string& line, std::string_view otherwise = "") {
    const std::size_t end = line.find("; ");
    return problem({line.substr(0, end), end < line.size() ? line.substr(end + 2) : otherwise}, "{} -> {}");
}

template <class Place>
struct Check {
    const char* name;  // a word or two
    Answers (*ask)(Place& place);
    const char* well = nullptr;  // the answer where the question gives none
};

class Findings {
  public:
    template <class Place>
    void ask(const Check<Place>& check, Place& place) {
        add(check.name, check.ask(place));
        if (check.well != nullptr && !has(check.name)) add(check.name, ok(check.well));
    }
    void add(const char* check, const Answers& answers) {
        for (const Finding& answer : answers) all_.emplace_back(answer).check = check;
    }
    bool has(const char* check) const {
        return std::ranges::find(all_, check, &Finding::check) != all_.end();
    }
    const std::vector<Finding>& all() const { return all_; }

  private:
    std::vector<Finding> all_;
};

// What a process with preloaded libraries tells of them.
struct Preloaded {
    std::string file, version;  // of libcoco; an empty version: libcoco is not there
    bool shares = false;        // whether malloc gives memory of the shared heap
    std::string complaint_of_loader, complaint_of_libcoco;  // each ": " and a line, or empty
};

// What the questions are about, and what some of them leave to later ones.
struct Patient {
    explicit Patient(const std::string& program);
    std::string program;  // as the user names it; empty: no program is examined
    std::string file;     // empty: not found
    std::string binary;   // the file that the kernel starts for it, which for a script is an interpreter
    std::string why_unfit;
    std::vector<std::string> files;  // binary, and what all_needed() says of it
    bool has_fit_program() const { return !binary.empty() && why_unfit.empty(); }

    Preloaded preloaded;  // from the question about the library
    MpiFound mpi;         // from the question about MPI; its file is empty where the library is unknown
};

using OwnCheck = Check<Patient>;
using OwnChecks = std::span<const OwnCheck>;
OwnChecks preload_checks();   // whether the loader takes libcoco, and what else it is told to preload
OwnChecks program_checks();   // the program's file and its libraries
OwnChecks settings_checks();  // COCO_ variables, and learned rules
OwnChecks machine_checks();   // what this host gives to a process

// What a process prints that the first check starts, by a hidden option of the command.
void tell_what_is_preloaded();

}  // namespace coco::tools
