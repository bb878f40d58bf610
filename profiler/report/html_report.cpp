#include "profiler/report/html_report.h"

#include <fmt/format.h>

#include "base/words.h"
#include "profiler/report/comparison_report.h"
#include "profiler/report/detail/comparison_data.h"
#include "profiler/report/detail/page_data.h"
#include "profiler/report/detail/page_frame.h"
#include "profiler/report/page_text.h"

namespace sluice::report {

Result<std::string> html_report(rundb::Reader& reader, const Predict& predict) {
  ASSIGN_OR_RETURN(const detail::PageData data, detail::page_data(reader, predict));
  const detail::PageParts parts = {
      .kind = "Sluice report",
      .body = kPageHtml,
      .style = kPageCss,
      .words = {{"{{why}}", fmt::format("{} {}", words::kWhy, words::kAsLong)},
                {"{{turn_next}}", words::kTurnNext},
                {"{{stretches}}", words::kStretches},
                {"{{phases}}", words::kPhases},
                {"{{links}}", words::kLinks},
                {"{{devices}}", words::kDevices},
                {"{{timeline}}", words::kTimeline},
                {"{{run_info}}", words::kRunInfo}},
      .script = kPageJs};
  return detail::page_of(parts, data.title, data.json);
}

Result<std::string> comparison_report(const std::string& database_a,
                                      const std::string& database_b) {
  ASSIGN_OR_RETURN(const detail::PageData data, detail::comparison_data(database_a, database_b));
  return detail::page_of(
      {.kind = "Sluice comparison",
       .body = kComparisonHtml,
       .style = kComparisonCss,
       .words = {{"{{causes}}", fmt::format("{} {}", words::kWhy, words::kAsLong)},
                 {"{{run_info}}", words::kRunInfo}},
       .script = kComparisonJs},
      data.title, data.json);
}

}  // namespace sluice::report
