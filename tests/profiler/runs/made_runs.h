#pragma once
// Runs written by hand whose steps move bytes over a drive's link and over the one that devices
// share, drawn from a seed.

#include <array>
#include <random>

#include "profiler/runs/run_figures.h"
#include "storage/rundb/loss_counts.h"
#include "tests/made_stages.h"
#include "tests/storage/rundb/rundb_fixture.h"

namespace sluice::runs {

using rundb::require_ok;
using rundb::TempFolder;

inline constexpr TimeNs kMs = 1'000'000;

struct MadeRun {
  std::vector<TimeNs> durs = {100 * kMs, 90 * kMs, 10 * kMs, 11 * kMs, 12 * kMs};
  std::vector<rundb::MetaRow> meta = {{"name", "made"}, {"model", "m.toml"}, {"steps", "5"}};
  std::vector<rundb::KnobChangeRow> changes = {};
  std::vector<rundb::ValidationRow> validations = {};
  std::vector<rundb::LatenessRow> lateness = {};
  std::int64_t lost_count = 0;
  bool has_spans = true;
  bool has_verdicts = true;
};

// Each step reads from its drive as it begins and sends over the shared link behind its end.
inline void add_spans(rundb::Writer& writer, const rundb::StepRow& step, std::mt19937& source,
                      rundb::Batch& batch) {
  const std::array to_drive = {rundb::TrackLink{0, rundb::Direction::read}};
  const std::array to_host = {rundb::TrackLink{1, rundb::Direction::write},
                              rundb::TrackLink{0, rundb::Direction::write}};
  const std::int64_t reads = writer.track_id(std::nullopt, "device", "csd0 state_read", to_drive);
  const std::int64_t sends = writer.track_id(std::nullopt, "link", "gradient_down", to_host);
  for (int i = 0; i < 3; ++i) {
    for (const auto& [track, name, at] :
         {std::tuple(reads, "state_read", step.ts + i),
          std::tuple(sends, "gradient_down", step.ts + step.dur + i)}) {
      batch.spans.push_back({.track_id = track,
                             .name_id = writer.string_id(name),
                             .submit_ts = at,
                             .ts = at,
                             .dur = kMs,
                             .step_id = step.id,
                             .device_id = 0,
                             .bytes = static_cast<std::int64_t>(source() % 1'000'000),
                             .padding_bytes = static_cast<std::int64_t>(source() % 4096)});
    }
  }
}

inline rundb::Facts facts_of(const MadeRun& made, rundb::Writer& writer) {
  rundb::Facts facts;
  facts.meta = made.meta;
  facts.devices = {{.id = 0, .name = "csd0", .kind = "csd"}};
  facts.links = {{.id = 0, .name = "csd0.drive"}, {.id = 1, .name = "host"}};
  facts.stages = made_stages(writer);
  for (const rundb::KnobChangeRow& change : made.changes)
    facts.knobs.push_back({.name = change.knob, .type = "integer"});
  return facts;
}

// Losses are 3, 2.9, 2.8 and so on.
inline std::unique_ptr<rundb::Writer> begin_made_run(const std::string& path, const MadeRun& made) {
  auto writer = require_ok(rundb::Writer::create(path, rundb::IfExists::replace));
  require_ok(writer->write_facts(facts_of(made, *writer)));
  std::mt19937 source(static_cast<unsigned>(made.durs.size()));
  TimeNs ts = 1000 * kMs;
  for (std::size_t s = 0; s < made.durs.size(); ++s) {
    rundb::Batch batch;
    const auto id = static_cast<std::int64_t>(s);
    batch.steps = {{.id = id,
                    .ts = ts,
                    .dur = made.durs[s],
                    .loss = 3 - 0.1 * static_cast<double>(id),
                    .grad_norm = 1,
                    .lr = 1e-3,
                    .tokens = 64}};
    if (s == 0) {
      batch.knob_changes = made.changes;
      batch.validations = made.validations;
      batch.lateness = made.lateness;
      batch.modes = {{.line = "csd · nbuffer · 1 device"}};
      for (const std::string_view name : rundb::kLossCounts) {
        batch.stats.push_back({.name = std::string(name),
                               .severity = rundb::Severity::loss,
                               .value = name == rundb::kRecordsDropped ? made.lost_count : 0,
                               .description = "the ring was full"});
      }
    }
    if (made.has_spans) add_spans(*writer, batch.steps.front(), source, batch);
    if (made.has_verdicts) batch.verdicts = {{.step_id = id, .cause = "compute", .share = 1}};
    require_ok(writer->append(batch));
    ts += made.durs[s];
  }
  return writer;
}

inline void write_made_run(const std::string& path, const MadeRun& made = {}) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  require_ok(begin_made_run(path, made)->close());
}

}  // namespace sluice::runs
