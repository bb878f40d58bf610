#include "profiler/report/html_report.h"

#include "profiler/report/comparison_report.h"
#include "profiler/report/detail/comparison_data.h"
#include "profiler/report/detail/page_data.h"
#include "profiler/report/detail/page_frame.h"
#include "profiler/report/page_text.h"

namespace sluice::report {

Result<std::string> html_report(rundb::Reader& reader, const Predict& predict) {
  ASSIGN_OR_RETURN(const detail::PageData data, detail::page_data(reader, predict));
  return detail::page_of({.frame = kPageHtml, .style = kPageCss, .script = kPageJs}, data.title,
                         data.json);
}

Result<std::string> comparison_report(const std::string& database_a,
                                      const std::string& database_b) {
  ASSIGN_OR_RETURN(const detail::PageData data, detail::comparison_data(database_a, database_b));
  return detail::page_of(
      {.frame = kComparisonHtml, .style = kComparisonCss, .script = kComparisonJs}, data.title,
      data.json);
}

}  // namespace sluice::report
