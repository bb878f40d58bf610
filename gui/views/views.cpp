#include "gui/views/compare_view.h"
#include "gui/views/devices_view.h"
#include "gui/views/facts_view.h"
#include "gui/views/knobs_view.h"
#include "gui/views/links_view.h"
#include "gui/views/overview_view.h"
#include "gui/views/phases_view.h"
#include "gui/views/sql_view.h"
#include "gui/views/statistics_view.h"
#include "gui/views/steps_view.h"
#include "gui/views/timeline_view.h"

namespace sluice::gui {

std::vector<std::unique_ptr<View>> all_views() {
  std::vector<std::unique_ptr<View>> views;
  views.push_back(std::make_unique<OverviewView>());
  views.push_back(std::make_unique<DevicesView>());
  views.push_back(std::make_unique<TimelineView>());
  views.push_back(std::make_unique<KnobsView>());
  views.push_back(std::make_unique<StepsView>());
  views.push_back(std::make_unique<PhasesView>());
  views.push_back(std::make_unique<StatisticsView>());
  views.push_back(std::make_unique<LinksView>());
  views.push_back(std::make_unique<CompareView>());
  views.push_back(std::make_unique<SqlView>());
  views.push_back(std::make_unique<FactsView>());
  return views;
}

}  // namespace sluice::gui
