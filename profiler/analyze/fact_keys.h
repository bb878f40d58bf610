#pragma once
// Keys of `meta` that say what ran where, in the order in which people read them; the others are
// settings. The report and the window show the same.
//
// Thread contract: constants.

#include <array>
#include <string_view>
#include <utility>

namespace sluice::analyze {

inline constexpr std::array<std::pair<std::string_view, const char*>, 16> kFactKeys = {{
    {"parameters", "Parameters"},
    {"platform_name", "Platform"},
    {"machine", "Machine"},
    {"processor_limit", "Processors it may have"},
    {"host_memory_limit", "Memory it may have"},
    {"host_name", "Host"},
    {"rank_clocks", "Clocks of ranks"},
    {"started_utc", "Started (UTC)"},
    {"model", "Model"},
    {"weights", "Weights from"},
    {"platform", "Platform file"},
    {"placement", "Placement"},
    {"activation_layers", "Activations"},
    {"output", "Output"},
    {"sluice_version", "Sluice"},
    {"written_by", "Database by"},
}};
// Shown elsewhere, or too long to show.
inline constexpr std::array<std::string_view, 9> kNotSettings = {
    "name",           "processors",   "host_memory_cap", "model_text", "platform_text",
    "sqlite_version", "merged_ranks", "merged_bound_ns", "run_id"};

}  // namespace sluice::analyze
