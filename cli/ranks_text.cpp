#include "cli/ranks_text.h"

#include <vector>

#include "cli/terminal.h"

namespace sluice::cli {
namespace {

using analyze::RankUse;

struct Column {
  const char* title;
  TimeNs RankUse::* ns;
};
// Those of a narrow terminal first.
constexpr std::array<Column, 3> kNarrow = {Column{"step", &RankUse::step_ns},
                                           Column{"waits", &RankUse::waiting_ns},
                                           Column{"awaited", &RankUse::awaited_ns}};
constexpr std::array<Column, 8> kWideTable = {
    Column{"step", &RankUse::step_ns},         Column{"forward", &RankUse::forward_ns},
    Column{"backward", &RankUse::backward_ns}, Column{"update", &RankUse::rest_ns},
    Column{"exposed", &RankUse::exposed_ns},   Column{"waits", &RankUse::waiting_ns},
    Column{"hidden", &RankUse::hidden_ns},     Column{"awaited", &RankUse::awaited_ns}};

constexpr const char* kMeaning =
    "update: the rest of the step. exposed: communication while nothing else runs; waits: of that, "
    "until the last rank has begun; hidden: communication while something else runs. awaited: how "
    "long the others wait for this rank.";

}  // namespace

std::string ranks_text(const analyze::RankAnalysis& analysis, int columns) {
  if (analysis.steps.empty()) return "";
  const bool is_wide = columns >= 78;
  const std::span<const Column> shown = is_wide ? std::span<const Column>(kWideTable) : kNarrow;
  std::string text =
      wrapped(fmt::format("Ranks beside one another (means of {} steps, by rank 0's clock, within "
                          "{}):",
                          analysis.steps.size(), format_duration(analysis.bound_ns)),
              columns, "  ");
  text += fmt::format("  {:>4}", "rank");
  for (const Column& column : shown) text += fmt::format(" {:>8}", column.title);
  text += "\n";
  for (const RankUse& use : analysis.ranks) {
    std::string line = fmt::format("  {:>4}", use.rank);
    for (const Column& column : shown)
      line += fmt::format(" {:>8}", format_duration(use.*column.ns));
    text += line + "\n";
  }
  return text + "  " + wrapped(kMeaning, columns - 2, "  ");
}

}  // namespace sluice::cli
