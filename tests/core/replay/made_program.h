#pragma once
// A program's record as it would leave it, written by hand: operations with times that a test has
// computed for a machine of its own.

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/storage/rundb/rundb_fixture.h"

namespace sluice::replay {

inline constexpr TimeNs kUs = 1'000;
inline constexpr TimeNs kMs = 1'000'000;

struct MadeLink {
  std::string name;
  double bytes_per_s = 0;  // declared; 0: the program does not know
};

class MadeProgram {
 public:
  explicit MadeProgram(const std::vector<MadeLink>& links)
      : writer_(rundb::require_ok(
            rundb::Writer::create(folder_.file("run.db"), rundb::IfExists::refuse))) {
    rundb::Facts facts;
    for (const MadeLink& link : links) {
      const auto id = static_cast<std::int64_t>(facts.links.size());
      facts.links.push_back({.id = id,
                             .name = link.name,
                             .read_bytes_per_s = link.bytes_per_s,
                             .write_bytes_per_s = link.bytes_per_s});
      link_ids_[link.name] = id;
      if (!link.name.ends_with(".drive")) continue;
      facts.devices.push_back({.id = static_cast<std::int64_t>(facts.devices.size()),
                               .name = link.name.substr(0, link.name.find('.')),
                               .kind = "drive"});
    }
    rundb::require_ok(writer_->write_facts(facts));
  }

  // A thread, or with links a thread's transfers, as profiler/c_api makes them; below another, what
  // that one does.
  std::int64_t thread(const std::string& name, const std::vector<std::string>& links = {},
                      std::optional<std::int64_t> parent = std::nullopt) {
    std::vector<rundb::TrackLink> crossed;
    for (const std::string& link : links)
      crossed.push_back({link_ids_.at(link), rundb::Direction::read});
    return writer_->track_id(parent, "thread", name, crossed);
  }

  std::int64_t add(std::int64_t track, const std::string& name, TimeNs begin_ts, TimeNs end_ts,
                   std::int64_t size_bytes = 0, TimeNs asked_ts = -1) {
    const std::int64_t id =
        writer_->next_span_id() + static_cast<std::int64_t>(batch_.spans.size());
    batch_.spans.push_back({.track_id = track,
                            .name_id = writer_->string_id(name),
                            .submit_ts = asked_ts < 0 ? begin_ts : asked_ts,
                            .ts = begin_ts,
                            .dur = end_ts - begin_ts,
                            .bytes = size_bytes});
    return id;
  }
  void flow(std::int64_t from, std::int64_t to) { batch_.flows.push_back({from, to}); }
  void step(std::int64_t id, TimeNs begin_ts, TimeNs end_ts) {
    batch_.steps.push_back({.id = id, .ts = begin_ts, .dur = end_ts - begin_ts});
  }

  std::unique_ptr<rundb::Reader> reader() {
    rundb::require_ok(writer_->append(batch_));
    rundb::require_ok(writer_->close());
    return rundb::require_ok(rundb::Reader::open(folder_.file("run.db")));
  }

 private:
  rundb::TempFolder folder_;
  std::unique_ptr<rundb::Writer> writer_;
  rundb::Batch batch_;
  std::map<std::string, std::int64_t> link_ids_;
};

}  // namespace sluice::replay
