#pragma once
// Spans by name, device, layer or subgroup: counts, sums, quantiles, bandwidths.
//
// Thread contract: the frame thread.

#include "gui/views/view.h"

namespace sluice::gui {

class StatisticsView : public View {
 public:
  StatisticsView();
  const char* help() const override;
  void draw_content(Session& session) override;

 private:
  void draw_table(Session& session);
  void draw_row(Session& session, const StatisticRow& row, int index);
  void draw_histogram(const Session& session) const;
  std::string of_text(const Session& session, const StatisticRow& row) const;
  void sort_rows(const Session& session);

  GroupBy by_ = GroupBy::name;
  std::vector<StatisticRow> rows_;  // of by_, as sorted
  const SpanStatistics* rows_of_ = nullptr;
  int sorted_column_ = 3;
  bool ascending_ = false;
  std::int64_t shown_name_ = -1;  // whose histogram is drawn
  std::int32_t shown_of_ = -1;
};

}  // namespace sluice::gui
