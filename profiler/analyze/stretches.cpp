#include "profiler/analyze/stretches.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>

#include "profiler/analyze/link_use.h"
#include "profiler/analyze/trend.h"
#include "storage/rundb/query.h"

namespace sluice::analyze {
namespace {

// Payload by step: read, write.
using BytesByStep = std::map<std::int64_t, std::array<double, 2>>;

// The fullest link, where devices share several, one behind the other. What ranks send one another
// crosses other links.
Result<BytesByStep> shared_link_bytes(rundb::Reader& reader, const RunInfo& info) {
  BytesByStep bytes;
  std::set<std::string> between_ranks;
  for (const std::int64_t id : links_between_ranks(info)) {
    const auto link = std::ranges::find(info.links, id, &rundb::LinkRow::id);
    if (link != info.links.end()) between_ranks.insert(link->name);
  }
  RETURN_IF_ERROR(rundb::Query(reader).each_row(
      "SELECT step_id, link, direction = 'write', bytes FROM link_bytes WHERE step_id IS NOT NULL",
      [&](std::span<const rundb::Cell> row) {
        const auto* step = std::get_if<std::int64_t>(&row[0]);
        const auto* link = std::get_if<std::string>(&row[1]);
        const auto* way = std::get_if<std::int64_t>(&row[2]);
        const auto* moved = std::get_if<std::int64_t>(&row[3]);
        if (step == nullptr || link == nullptr || way == nullptr || moved == nullptr ||
            !is_shared_link(*link) || between_ranks.contains(*link)) {
          return ok_status();
        }
        double& most = bytes[*step][*way == 0 ? 0 : 1];
        most = std::max(most, static_cast<double>(*moved));
        return ok_status();
      }));
  return bytes;
}

class Stretches {
 public:
  Stretches(const RunInfo& info, const BytesByStep& bytes,
            const std::vector<rundb::LatenessRow>& lateness)
      : info_(info), bytes_(bytes), lateness_(lateness) {}

  std::vector<Stretch> of(const std::vector<rundb::StepRow>& steps) {
    auto begin = steps.begin();
    while (begin != steps.end()) {
      const auto end = std::find_if(begin + 1, steps.end(), [this](const rundb::StepRow& step) {
        return std::ranges::count(info_.knob_changes, step.id, &rundb::KnobChangeRow::step_id) > 0;
      });
      add({begin, end});
      begin = end;
    }
    return std::move(stretches_);
  }

 private:
  void add(std::span<const rundb::StepRow> steps) {
    Stretch stretch{.first_step = steps.front().id,
                    .last_step = steps.back().id,
                    .settings = settings_at(steps.front().id)};
    std::vector<double> durs;
    for (const rundb::StepRow& step : steps.subspan(std::min(kSettlingSteps, steps.size()))) {
      if (step.skipped) continue;
      durs.push_back(static_cast<double>(step.dur));
      const auto moved = bytes_.find(step.id);
      if (moved == bytes_.end()) continue;
      stretch.read_bytes += moved->second[0];
      stretch.write_bytes += moved->second[1];
    }
    if (durs.empty()) return;
    const double median = median_of(durs);
    stretch.steps = durs.size();
    stretch.dur = static_cast<TimeNs>(median);
    stretch.noise = static_cast<TimeNs>(noise_of(durs, median));
    stretch.read_bytes /= static_cast<double>(durs.size());
    stretch.write_bytes /= static_cast<double>(durs.size());
    const TimeNs first = stretches_.empty() ? stretch.dur : stretches_.front().dur;
    stretch.speed_up = stretch.dur > 0 ? static_cast<double>(first) / median : 1;
    for (const rundb::LatenessRow& row : lateness_) {
      if (row.step_id >= stretch.first_step && row.step_id <= stretch.last_step)
        stretch.lateness.add(row);
    }
    stretch.is_speed_up_late = stretch.lateness.is_late() ||
                               (!stretches_.empty() && stretches_.front().lateness.is_late());
    stretches_.push_back(std::move(stretch));
  }

  // Method and pipeline always; of the other knobs those that the run changed up to there.
  std::string settings_at(std::int64_t step) const {
    std::string text = info_.value_at("method", step) + " · " + info_.value_at("pipeline", step);
    std::vector<std::string> named = {"method", "pipeline"};
    for (const rundb::KnobChangeRow& change : info_.knob_changes) {
      if (change.step_id > step || std::ranges::count(named, change.knob) > 0) continue;
      named.push_back(change.knob);
      text += fmt::format(" · {} {}", change.knob, info_.value_at(change.knob, step));
    }
    return text;
  }

  const RunInfo& info_;
  const BytesByStep& bytes_;
  const std::vector<rundb::LatenessRow>& lateness_;
  std::vector<Stretch> stretches_;
};

}  // namespace

Result<std::vector<Stretch>> stretches_of(rundb::Reader& reader, const RunInfo& info,
                                          const std::vector<rundb::StepRow>& steps) {
  ASSIGN_OR_RETURN(const BytesByStep bytes, shared_link_bytes(reader, info));
  ASSIGN_OR_RETURN(const std::vector<rundb::LatenessRow> lateness, reader.lateness());
  return Stretches(info, bytes, lateness).of(steps);
}

std::string late_speed_up_words(const std::vector<Stretch>& stretches, const std::string& mark,
                                double needed_time_scale) {
  std::string late;
  for (const Stretch& stretch : stretches) {
    if (!stretch.lateness.is_late()) continue;
    late += fmt::format("{}{:.0f} % in steps {} to {}", late.empty() ? "" : ", ",
                        stretch.lateness.late_share() * 100, stretch.first_step + 1,
                        stretch.last_step + 1);
  }
  if (late.empty()) return "";
  return fmt::format(
      "{} Operations were late ({}), so these speed-ups are partly this computer's; --set "
      "time_scale={:g} would give it the time.",
      mark, late, needed_time_scale);
}

std::size_t countable_stretches(const RunInfo& info, const std::vector<rundb::StepRow>& steps) {
  const std::vector<rundb::LatenessRow> none;
  return Stretches(info, {}, none).of(steps).size();
}

}  // namespace sluice::analyze
