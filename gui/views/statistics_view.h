#pragma once
// Spans by name, device, layer or subgroup: counts, sums, quantiles, bandwidths.
//
// Thread contract: the frame thread.

#include "gui/views/run_pieces.h"
#include "gui/views/timeline_state.h"
#include "gui/views/view.h"

namespace sluice::gui {

class StatisticsView : public View {
 public:
  StatisticsView(const RunPieces& pieces, TimelineState& timeline);
  const char* help() const override;
  void draw_content() override;

 private:
  void draw_table();
  void draw_row(const StatisticRow& row, int index);
  void draw_histogram() const;
  bool is_of_chosen(const StatisticRow& row) const;
  std::string of_text(const StatisticRow& row) const;
  void sort_rows();

  const RunPieces& pieces_;
  TimelineState& timeline_;

  GroupBy by_ = GroupBy::name;
  std::vector<StatisticRow> rows_;  // of by_, as sorted
  const SpanStatistics* rows_of_ = nullptr;
  int sorted_column_ = 3;
  bool ascending_ = false;
  std::int64_t shown_name_ = -1;  // whose histogram is drawn
  std::int32_t shown_of_ = -1;
};

}  // namespace sluice::gui
