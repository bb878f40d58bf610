#pragma once
// Spans by name, device, layer or subgroup: counts, sums, quantiles, bandwidths; of the whole run
// or of a part of it.
//
// Thread contract: the frame thread.

#include <optional>

#include "gui/data/span_scan.h"
#include "gui/views/run_pieces.h"
#include "gui/views/timeline_state.h"
#include "gui/views/view.h"

namespace sluice::gui {

// Which part of the run; a span belongs to the part in which it begins.
enum class StatisticsOf : std::uint8_t { whole_run, since_change, visible, measured, count_ };

class StatisticsView : public View {
 public:
  StatisticsView(const RunPieces& pieces, TimelineState& timeline);
  const char* help() const override;
  void draw_content() override;

 private:
  // The chosen part; without a choice, since the last change of a knob where there was one.
  StatisticsOf part() const;
  // Its times; none: there is no such part now.
  std::optional<ScanRange> range_of(StatisticsOf part) const;
  // Asks for the part that is shown, and takes it when it is there; null: not yet.
  void choose_statistics();
  std::string note() const;
  void draw_tools();
  void draw_parts();
  void draw_table();
  void draw_row(const StatisticRow& row, int index);
  void draw_histogram() const;
  bool is_of_chosen(const StatisticRow& row) const;
  std::string of_text(const StatisticRow& row) const;
  void sort_rows();

  const RunPieces& pieces_;
  TimelineState& timeline_;

  std::optional<StatisticsOf> chosen_part_;
  const RunFeed* chosen_of_ = nullptr;
  ScanRange asked_;
  double asked_at_ = -1e9;
  std::shared_ptr<const SpanStatistics> shown_;
  GroupBy by_ = GroupBy::name;
  std::vector<StatisticRow> rows_;  // of by_, as sorted
  const SpanStatistics* rows_of_ = nullptr;
  int sorted_column_ = 3;
  bool ascending_ = false;
  std::int64_t shown_name_ = -1;  // whose histogram is drawn
  std::int32_t shown_of_ = -1;
};

}  // namespace sluice::gui
