#include "gui/app/awaited_pieces.h"

#include "gui/app/picture_wait.h"
#include "gui/data/span_scan.h"
#include "gui/data/step_paths.h"
#include "gui/views/session.h"

namespace sluice::gui {
namespace {

void await_pieces(const Session& session, std::int64_t spans_at_opening,
                  std::vector<std::string>& awaited) {
  const bool is_live = session.pieces.run->is_live;
  const std::int64_t span_count = is_live ? spans_at_opening : session.pieces.run->span_count;
  const bool has_statistics =
      session.pieces.statistics != nullptr && session.pieces.statistics->seen_count >= span_count;
  const bool has_timeline = session.pieces.run->span_count == 0 ||
                            session.timeline.picture.is_there() ||
                            (is_live && session.pieces.timeline != nullptr);
  const StepPaths* paths = session.pieces.paths.get();
  const bool has_paths = !has_timeline || session.pieces.timeline == nullptr || is_live ||
                         session.pieces.steps().empty() || (paths != nullptr && paths->is_complete);
  if (!has_statistics) awaited.emplace_back("statistics");
  if (!has_timeline) awaited.emplace_back("the timeline");
  if (!has_paths) awaited.emplace_back("critical paths");
  if (session.pieces.verdict == nullptr) awaited.emplace_back("the verdict");
  if (session.pieces.minimap == nullptr) awaited.emplace_back("the strip of all steps");
  if (session.timeline.explained() && session.pieces.explanation == nullptr)
    awaited.emplace_back("why steps took as long");
}

}  // namespace

std::vector<std::string> awaited_pieces(const Session& session, std::int64_t spans_at_opening) {
  if (session.pieces.run == nullptr) return {"the run"};
  if (!session.pieces.run->problem.empty()) return {};
  std::vector<std::string> awaited;
  if (!session.foreground.is_empty()) awaited.emplace_back("a view");
  await_pieces(session, spans_at_opening, awaited);
  const Advisor& advisor = *session.control.consultation.advisor();
  if (advisor.is_working(Question::knobs)) awaited.emplace_back("knobs");
  if (advisor.is_working(Question::suggest)) awaited.emplace_back(kPredictions);
  return awaited;
}

}  // namespace sluice::gui
