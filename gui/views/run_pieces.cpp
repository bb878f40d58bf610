#include "gui/views/run_pieces.h"

#include "gui/data/followed_run.h"
#include "gui/data/like_run.h"
#include "gui/data/opening.h"
#include "gui/data/verdict.h"
#include "profiler/analyze/answers.h"

namespace sluice::gui {

void RunPieces::pick_up() {
  if (feed == nullptr) return;
  run = feed->run();
  timeline = feed->timeline();
  minimap = feed->minimap();
  chosen = feed->chosen();
  rank = feed->rank();
  paths = feed->paths();
  verdict = feed->verdict();
  statistics = feed->statistics();
  range_statistics = feed->range_statistics();
  found = feed->found();
  explanation = feed->explanation();
  samples = feed->samples();
}

const std::string& RunPieces::own_database() const {
  return ranks == nullptr ? feed->path() : ranks->databases.front();
}

const std::string& RunPieces::place() const {
  if (far != nullptr) return far->place();
  return ranks == nullptr ? feed->path() : ranks->place();
}

LikeRun RunPieces::like_run(const std::vector<std::string>& settings) const {
  LikeRun like = like_run_of(facts(), own_database(), settings);
  like.is_of_rank = like.is_of_rank || ranks != nullptr;
  return like;
}

bool RunPieces::was_live() const {
  return ranks != nullptr ? ranks->was_live : run != nullptr && run->is_live;
}

analyze::Answer RunPieces::losses() const {
  const bool has_looked = verdict != nullptr && !verdict->analysis.answers.empty();
  return analyze::losses_answer(
      facts().stats, has_looked ? verdict->analysis.evidence.rows : rundb::Completeness{});
}

}  // namespace sluice::gui
