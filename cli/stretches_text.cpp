#include "cli/stretches_text.h"

#include <algorithm>

#include "base/units.h"
#include "base/words.h"
#include "cli/paint.h"
#include "cli/terminal.h"

namespace sluice::cli {
namespace {

constexpr const char* kLateMark = "*";

std::string title(const analyze::RunInfo& info) {
  const double scale = info.time_scale();
  const std::string clock =
      scale == 1 ? "" : fmt::format("; times by the EMULATED CLOCK, x{:g}", scale);
  return fmt::format("{} (medians of the steps, without the first two after a change{}):",
                     words::kStretches, clock);
}

}  // namespace

std::string stretches_text(const std::vector<analyze::Stretch>& stretches,
                           const analyze::RunInfo& info, const analyze::Lateness& lateness,
                           int columns) {
  if (stretches.size() < 2) return "";
  std::size_t width = 8;
  for (const analyze::Stretch& stretch : stretches) {
    width = std::max(width, columns_of(stretch.settings));
  }
  const double parameters = std::max(1.0, info.meta_number("parameters", 0));
  std::string text = wrapped(title(info), columns, "  ");
  text += fmt::format("  {:<11} {:<{}} {:>9} {:>9} {:>14}\n", "steps", "settings", width, "a step",
                      "speed-up", "host link, B");
  text += fmt::format("  {:<11} {:<{}} {:>9} {:>9} {:>7}{:>7}\n", "", "", width, "", "", "read",
                      "write");
  for (const analyze::Stretch& stretch : stretches) {
    text += fmt::format(
        "  {:<11} {:<{}} {:>9} {:>9} {:>7.2f}{:>7.2f}\n",
        fmt::format("{} to {}", stretch.first_step + 1, stretch.last_step + 1), stretch.settings,
        width, format_duration(stretch.dur),
        fmt::format("{:.2f}x{}", stretch.speed_up, stretch.is_speed_up_late ? kLateMark : " "),
        stretch.read_bytes / parameters, stretch.write_bytes / parameters);
  }
  text += "  Host link: bytes a parameter and step, over what all devices share.\n";
  const std::string late =
      analyze::late_speed_up_words(stretches, kLateMark, lateness.needed_time_scale);
  return late.empty() ? text : text + amber("  " + wrapped(late, columns - 2, "    "));
}

}  // namespace sluice::cli
