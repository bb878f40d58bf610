// Each byte in the run database stands on the link it took: by step, link and direction the file
// says what the operations said when they ended, and in all what the core's counters say. For every
// way to offload, also where it changes between steps, and where a resume goes on in another way.

#include <catch2/catch.hpp>
#include <map>
#include <tuple>

#include "profiler/collect/collector.h"
#include "storage/rundb/query.h"
#include "tests/core/train/offload_ways.h"
#include "tests/core/train/small_run.h"
#include "tests/sanitizer.h"

using namespace sluice;

namespace {

// By step (-1: none), link and "read" or "write": payload and padding.
using LinkKey = std::tuple<std::int64_t, std::string, std::string>;
using BytesByLink = std::map<LinkKey, std::pair<std::int64_t, std::int64_t>>;

const char* word_of(platform::Direction direction) {
  return direction == platform::Direction::read ? "read" : "write";
}

// What each operation says of itself when it ends.
class OperationBytes final : public runtime::OperationSink {
 public:
  OperationBytes(const platform::Platform& platform, BytesByLink& bytes)
      : platform_(platform), bytes_(bytes) {}
  void on_submit(const runtime::OperationState& /*state*/) override {}
  void on_finish(const runtime::OperationState& state) override {
    const runtime::OperationLabel& label = state.operation.label;
    for (const platform::LinkId link : state.operation.cost.route) {
      const std::string& name =
          platform_.links[static_cast<std::size_t>(platform::index_of(link))].name;
      auto& bytes = bytes_[{state.step, name, word_of(state.operation.cost.direction)}];
      bytes.first += label.size_bytes;
      bytes.second += label.padding_bytes;
    }
  }

 private:
  const platform::Platform& platform_;
  BytesByLink& bytes_;
};

collect::RunFacts facts_of(const platform::Platform& platform) {
  collect::RunFacts facts;
  for (const platform::Link& link : platform.links) {
    facts.links.push_back({.id = std::ssize(facts.links),
                           .name = link.name,
                           .read_bytes_per_s = link.read_bytes_per_s,
                           .write_bytes_per_s = link.write_bytes_per_s});
  }
  return facts;
}

Result<std::unique_ptr<rundb::Writer>> open_database(const std::string& path,
                                                     session::StartFrom start, std::int64_t step) {
  return start == session::StartFrom::new_state
             ? rundb::Writer::create(path, rundb::IfExists::replace)
             : rundb::Writer::open_append(path, step);
}

// Sums over the links, of what was counted from `before` on.
std::int64_t counted(const BytesByLink& bytes) {
  std::int64_t sum = 0;
  for (const auto& [key, sizes] : bytes) sum += sizes.first + sizes.second;
  return sum;
}
std::int64_t counted(const std::vector<runtime::LinkBytes>& links) {
  std::int64_t sum = 0;
  for (const runtime::LinkBytes& link : links) {
    for (std::size_t way = 0; way < 2; ++way) sum += link.size_bytes[way] + link.padding_bytes[way];
  }
  return sum;
}

// Trains and records into the folder's run.db; adds what its operations moved to `moved`.
Status train_recorded(const SmallRun& files, const std::vector<std::string>& settings,
                      session::StartFrom start, std::span<const session::PlannedChange> changes,
                      BytesByLink& moved) {
  ASSIGN_OR_RETURN(const settings::RunConfig config, files.config(settings));
  const model::ModelFactory factory = arithmetic_factory();
  record::Recorder recorder;
  train::TrainingRun::Request request;
  request.config = &config;
  request.factory = &factory;
  request.start = start;
  request.recorder = &recorder;
  ASSIGN_OR_RETURN(const std::unique_ptr<train::TrainingRun> run,
                   train::TrainingRun::open(request));
  const std::int64_t before = counted(moved);
  OperationBytes operations(run->plan().platform, moved);
  run->session().runtime().add_sink(&operations);
  ASSIGN_OR_RETURN(std::unique_ptr<rundb::Writer> writer,
                   open_database(files.folder.file("run.db"), start,
                                 run->session().state().store().committed().position.step));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<collect::Collector> collector,
      collect::Collector::start(recorder, std::move(writer), facts_of(run->plan().platform), {}));
  RETURN_IF_ERROR(run->prepare(start));
  Quiet observer;
  ASSIGN_OR_RETURN(const train::TrainReport report, train::train(*run, {{&observer}, {}}, changes));
  RETURN_IF_ERROR(run->settle());
  CHECK(counted(run->session().clock().bytes().links()) == counted(moved) - before);
  CHECK(report.last_step == config.schedule.steps);
  return collector->stop();
}

BytesByLink recorded_bytes(const std::string& database) {
  BytesByLink bytes;
  const auto reader = rundb::Reader::open(database);
  REQUIRE(reader.ok());
  const auto table = rundb::Query(**reader).text_table(
      "SELECT coalesce(step_id, -1), link, direction, bytes, padding_bytes FROM link_bytes");
  REQUIRE(table.ok());
  for (const std::vector<std::string>& row : table->rows) {
    const bool is_new = bytes
                            .emplace(LinkKey{std::stoll(row[0]), row[1], row[2]},
                                     std::pair(std::stoll(row[3]), std::stoll(row[4])))
                            .second;
    CHECK(is_new);
  }
  const auto losses = (*reader)->losses();
  REQUIRE(losses.ok());
  CHECK(losses->empty());
  return bytes;
}

void require_same(const BytesByLink& recorded, const BytesByLink& moved) {
  REQUIRE_FALSE(moved.empty());
  for (const auto& [key, sizes] : moved) {
    const auto& [step, link, direction] = key;
    const auto found = recorded.find(key);
    INFO(fmt::format("step {}, {}, {}", step, link, direction));
    if (sizes == std::pair<std::int64_t, std::int64_t>{} && found == recorded.end()) continue;
    REQUIRE(found != recorded.end());
    CHECK(found->second == sizes);
  }
  for (const auto& [key, sizes] : recorded) {
    INFO(fmt::format("step {}, {}, {}", std::get<0>(key), std::get<1>(key), std::get<2>(key)));
    CHECK(moved.contains(key));
  }
}

void require_ok(const Status& status) {
  if (!status.ok()) FAIL(status.error().message());
}

std::vector<std::string> both(const OffloadWay& first, const OffloadWay& then) {
  std::vector<std::string> all = first;
  all.insert(all.end(), then.begin(), then.end());
  return all;
}

}  // namespace

TEST_CASE("bytes in the file are those of the operations, for every way to offload") {
  for (const OffloadWay& way : ways_to_offload()) {
    INFO(fmt::format("{}", fmt::join(way, " ")));
    const SmallRun files;
    BytesByLink moved;
    require_ok(
        train_recorded(files, both({"steps=3"}, way), session::StartFrom::new_state, {}, moved));
    require_same(recorded_bytes(files.folder.file("run.db")), moved);
  }
}

TEST_CASE("bytes in the file are those of the operations, whatever changes between steps") {
  for (const std::string pipeline : {"pipeline=serial", "pipeline=nbuffer"}) {
    for (const OffloadChange& change : every_change_of_offload()) {
      INFO(fmt::format("{}, {} -> {}", pipeline, fmt::join(change.from, " "),
                       fmt::join(change.to, " ")));
      const SmallRun files;
      BytesByLink moved;
      const std::vector<session::PlannedChange> changes = {{2, change.to}, {4, change.from}};
      require_ok(train_recorded(files, both({pipeline}, change.from), session::StartFrom::new_state,
                                changes, moved));
      require_same(recorded_bytes(files.folder.file("run.db")), moved);
    }
  }
}

TEST_CASE("bytes in the file are those of the operations, with parameters on the drives") {
  for (const std::string method : {"method=csd", "method=host"}) {
    INFO(method);
    const SmallRun files;
    BytesByLink moved;
    const std::vector<session::PlannedChange> changes = {{2, {"device_map=0,1"}},
                                                         {4, {"method=host", "device_map=even"}}};
    require_ok(train_recorded(
        files, {method, "parameter_tier=storage", "parameter_buffer=12288", "validation_every=3"},
        session::StartFrom::new_state, changes, moved));
    require_same(recorded_bytes(files.folder.file("run.db")), moved);
  }
}

TEST_CASE("bytes in the file are those of the operations, where a resume goes on in another way") {
  for (const OffloadChange& change : every_change_of_offload()) {
    INFO(fmt::format("{} -> {}", fmt::join(change.from, " "), fmt::join(change.to, " ")));
    const SmallRun files;
    BytesByLink moved;
    require_ok(train_recorded(files, both(change.from, {"steps=2", "schedule_steps=6"}),
                              session::StartFrom::new_state, {}, moved));
    require_ok(train_recorded(files,
                              both(both(change.from, change.to), {"steps=4", "schedule_steps=6"}),
                              session::StartFrom::last_commit, {}, moved));
    require_ok(train_recorded(files, both(change.from, {"steps=6", "schedule_steps=6"}),
                              session::StartFrom::last_commit, {}, moved));
    require_same(recorded_bytes(files.folder.file("run.db")), moved);
  }
}

TEST_CASE("bytes in the file are those of the operations, where a resume has another clock") {
  const SmallRun files;
  BytesByLink moved;
  const std::vector<std::string> common = {"schedule_steps=6", "time_scale=0.01"};
  require_ok(train_recorded(files, both(common, {"steps=2", "clock=emulated"}),
                            session::StartFrom::new_state, {}, moved));
  require_ok(train_recorded(files, both(common, {"steps=4", "clock=real", "method=host"}),
                            session::StartFrom::last_commit, {}, moved));
  require_ok(train_recorded(files, both(common, {"steps=6", "clock=emulated", "devices=2"}),
                            session::StartFrom::last_commit, {}, moved));
  require_same(recorded_bytes(files.folder.file("run.db")), moved);
}
