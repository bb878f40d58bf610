#include "gui/views/compare_view.h"
#include "gui/views/details_view.h"
#include "gui/views/devices_view.h"
#include "gui/views/facts_view.h"
#include "gui/views/knobs_view.h"
#include "gui/views/links_view.h"
#include "gui/views/overview_view.h"
#include "gui/views/phases_view.h"
#include "gui/views/runs_view.h"
#include "gui/views/session.h"
#include "gui/views/sql_view.h"
#include "gui/views/statistics_view.h"
#include "gui/views/steps_view.h"
#include "gui/views/timeline_view.h"

namespace sluice::gui {

std::vector<std::unique_ptr<View>> all_views(Session& session) {
  const RunPieces& pieces = session.pieces;
  std::vector<std::unique_ptr<View>> views;
  views.push_back(std::make_unique<OverviewView>(pieces, session.control, session.timeline,
                                                 session.foreground));
  views.push_back(std::make_unique<DevicesView>(pieces, session.control.choice));
  views.push_back(std::make_unique<TimelineView>(pieces, session.timeline, session.notes));
  views.push_back(std::make_unique<KnobsView>(pieces, session.control, session.wake));
  views.push_back(
      std::make_unique<DetailsView>(pieces, session.timeline, session.sql, session.foreground));
  views.push_back(std::make_unique<StepsView>(pieces, session.timeline, session.foreground));
  views.push_back(std::make_unique<PhasesView>(pieces));
  views.push_back(std::make_unique<StatisticsView>(pieces, session.timeline));
  views.push_back(std::make_unique<LinksView>(pieces));
  views.push_back(
      std::make_unique<CompareView>(pieces, session.timeline, session.recent, session.wake));
  views.push_back(std::make_unique<RunsView>(session.recent, session.wanted_run, session.wake));
  views.push_back(
      std::make_unique<SqlView>(pieces, session.timeline, session.sql, session.foreground));
  views.push_back(
      std::make_unique<FactsView>(pieces, session.timeline, session.notes, session.foreground));
  return views;
}

}  // namespace sluice::gui
