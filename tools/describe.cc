// SPDX-License-Identifier: BSD-3-Clause
#include "tools/describe.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "algorithms/algorithm.h"
#include "base/env.h"

namespace coco::tools {
namespace {

using nlohmann::ordered_json;

ordered_json describe(const CLI::Option& option) {
    ordered_json names = ordered_json::array();
    for (const std::string& name : option.get_snames()) names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
    // How many words follow it: none behind a flag.
    const bool is_flag = option.get_type_size() == 0;
    return {{"names", names},
            {"positional", option.get_positional() ? option.get_name(true) : ""},
            {"description", option.get_description()},
            {"type", is_flag ? "" : option.get_type_name()},
            {"words", is_flag ? 0 : option.get_items_expected_max()},
            {"default", is_flag ? "" : option.get_default_str()},
            {"required", option.get_required()}};
}

ordered_json describe(const CLI::App& app) {
    ordered_json options = ordered_json::array();
    for (const CLI::Option* option : app.get_options())
        if (!option->get_group().empty()) options.push_back(describe(*option));
    return {
        {"name", app.get_name()}, {"description", app.get_description()}, {"options", std::move(options)}};
}

ordered_json settings() {
    ordered_json all = ordered_json::array();
    for (const base::Setting& s : base::settings())
        all.push_back(
            {{"name", s.name}, {"choices", s.choices}, {"default", s.preset}, {"summary", s.summary}});
    return all;
}

ordered_json algorithms() {
    ordered_json all = ordered_json::array();
    for (const algorithms::Algorithm& a : algorithms::registry()) {
        ordered_json served = ordered_json::array();
        for (const base::CollectiveFacts& row : base::kCollectiveTable)
            if (algorithms::serves(a, row.collective)) served.push_back(row.name);
        all.push_back({{"name", a.name}, {"summary", a.summary}, {"collectives", std::move(served)}});
    }
    return all;
}

ordered_json collectives() {
    ordered_json all = ordered_json::array();
    for (const base::CollectiveFacts& row : base::kCollectiveTable)
        all.push_back({{"name", row.name}, {"function", row.function}});
    return all;
}

}  // namespace

std::string description_of(const CLI::App& app) {
    ordered_json root = describe(app);
    root["version"] = COCO_VERSION;
    root["commands"] = ordered_json::array();
    for (const CLI::App* command : app.get_subcommands(nullptr))
        if (!command->get_group().empty()) root["commands"].push_back(describe(*command));
    root["settings"] = settings();
    root["collectives"] = collectives();
    root["algorithms"] = algorithms();
    return root.dump(2);
}

}  // namespace coco::tools
