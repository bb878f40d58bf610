#pragma once
// All runs of a folder as a table, and curves of up to eight of them over each other.
//
// Thread contract: the frame thread.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gui/data/background.h"
#include "gui/data/run_table_feed.h"
#include "gui/data/run_table_order.h"
#include "gui/views/run_curves_panel.h"
#include "gui/views/view.h"

namespace sluice::gui {

class RunsView : public View {
 public:
  // `recent`: run databases opened before; `wanted_run`: takes the one to be opened; `wake`: draw
  // again, from any thread. All live longer.
  RunsView(const std::vector<std::string>& recent, std::string& wanted_run,
           const std::function<void()>& wake);
  const char* help() const override;
  void draw_content() override;

 private:
  void read();
  void draw_tools(const RunTable* table);
  void draw_table(const RunTable& table);
  void draw_row(const RunTable& table, std::size_t row);
  void draw_tick(const RunRow& row);
  void sort_as_asked();
  void update_shown(const std::shared_ptr<const RunTable>& table);

  const std::vector<std::string>& recent_;
  std::string& wanted_run_;
  const std::function<void()>& wake_;

  std::string folder_ = "out";
  bool was_asked_ = false;
  Background<RunTable> table_;
  RowOrder order_;
  // What the rows were chosen for.
  RowOrder shown_for_;
  std::shared_ptr<const RunTable> shown_of_;
  std::vector<std::size_t> shown_;
  std::vector<ChosenRun> chosen_;
  RunCurvesPanel curves_;
};

}  // namespace sluice::gui
