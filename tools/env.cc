// SPDX-License-Identifier: BSD-3-Clause
//
// `coco env`: the variables that make programs run with libcoco, in the words of a shell or of a launcher.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/env.h"
#include "settings/settings.h"
#include "tools/commands.h"
#include "tools/launch.h"
#include "tools/words.h"

namespace coco::tools {
namespace {

struct Variable {
    std::string name, value;
};
using Variables = std::vector<Variable>;

std::string preload_value() {
    const std::string library = library_file();
    if (library.empty()) throw std::runtime_error(why_no_library());
    if (std::string why = unfit_to_preload(library); !why.empty()) throw std::runtime_error(why);
    return preload_list(library);
}

// The preload, and the settings that hold here. COCO_RANK_PROCESS is what a rank tells the processes that it
// starts.
Variables variables() {
    Variables found{{"LD_PRELOAD", preload_value()}};
    for (const base::Setting& setting : base::settings())
        if (const char* value = std::getenv(setting.name);
            value != nullptr && std::string_view(setting.name) != "COCO_RANK_PROCESS")
            found.push_back({setting.name, value});
    return found;
}

// Whether a value passes shells, launchers and the splitting of $(coco env ...) into words as it is.
bool is_plain(std::string_view value, std::string_view more_marks = "") {
    return std::ranges::all_of(value, [&](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
               std::string_view("_./:=+@%-").find(c) != std::string_view::npos ||
               more_marks.find(c) != std::string_view::npos;
    });
}

std::string in_quotes(std::string_view value) {
    if (!value.empty() && is_plain(value, ",")) return std::string(value);
    std::string text = "'";
    for (char c : value) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return text + "'";
}

std::string for_shell(const Variables& all) {
    std::string text;
    for (const Variable& v : all) text += "export " + v.name + "=" + in_quotes(v.value) + "\n";
    return text;
}

// A value with a comma, say, goes by the variable's name alone: srun takes it from its own environment then.
std::string for_slurm(const Variables& all) {
    std::string text = "--export=ALL";
    for (const Variable& v : all) {
        if (!is_plain(v.value) && v.name == "LD_PRELOAD")
            throw std::runtime_error("LD_PRELOAD=" + v.value +
                                     ": --export cannot carry this value; export it before srun");
        text += "," + v.name + (is_plain(v.value) ? "=" + v.value : "");
    }
    return text + "\n";
}

// One option and its words for each variable; `between` stands between name and value.
std::string for_mpiexec(const Variables& all, const std::string& option, char between) {
    std::string text;
    for (const Variable& v : all) {
        if (v.value.empty() || !is_plain(v.value, ","))
            throw std::runtime_error(
                v.name + "=" + v.value +
                ": a launcher's words cannot carry this value; export it before mpiexec");
        text += (text.empty() ? "" : " ") + option + " " + v.name + between + v.value;
    }
    return text + "\n";
}

std::string as_json(const Variables& all) {
    nlohmann::ordered_json object;
    for (const Variable& v : all) object[v.name] = v.value;
    return object.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

using Form = std::string (*)(const Variables& all);
struct FormOption {
    const char* name;
    Form form;
    const char* text;
};
constexpr FormOption kForms[] = {
    {"--slurm", for_slurm, "as srun's option --export: srun $(coco env --slurm) ./app"},
    {"--mpich", [](const Variables& all) { return for_mpiexec(all, "-genv", ' '); },
     "as options -genv: mpiexec $(coco env --mpich) -n 4 ./app"},
    {"--openmpi", [](const Variables& all) { return for_mpiexec(all, "-x", '='); },
     "as options -x: mpirun $(coco env --openmpi) -n 4 ./app"},
    {"--json", as_json, "as JSON"},
};

int print(Form form) {
    settings::Settings settings;
    try {
        if (auto wrong = settings::is_switched_off() ? std::nullopt : settings::read(settings))
            throw std::runtime_error(*wrong);
        std::cout << form(variables());
    } catch (const std::runtime_error& error) {
        return tell_error(error.what());
    }
    return 0;
}

}  // namespace

void add_env(CLI::App& app, int& status) {
    CLI::App* command = app.add_subcommand("env", "the variables that make programs run with libcoco");
    auto form = std::make_shared<Form>(for_shell);
    for (const FormOption& option : kForms)
        command->add_flag_callback(
            option.name, [form, chosen = option.form] { *form = chosen; }, option.text);
    command->require_option(0, 1);
    command->footer(
        "Without an option: lines for a shell, eval \"$(coco env)\". COCO_ settings that are set are in it.");
    command->callback([form, &status] { status = print(*form); });
}

}  // namespace coco::tools
