// Changes that several ask for between the same two steps.

#include <catch2/catch.hpp>
#include <map>

#include "core/control/control_client.h"
#include "core/session/live_control.h"
#include "tests/core/train/small_run.h"

using namespace sluice;

namespace {

// Hands over all of `changes` together after step `from_step`, and hears what becomes of them.
struct Asking final : session::RunObserver, session::RunRequests {
  void on_step(const session::StepReport& report) override { step = report.step; }
  bool wants_stop() override { return stops_at > 0 && step >= stops_at; }
  std::vector<session::AskedChange> take_changes() override {
    return step < from_step ? std::vector<session::AskedChange>() : std::exchange(changes, {});
  }
  void on_knobs_changed(std::int64_t at, TimeNs /*ts*/,
                        std::span<const settings::KnobChange> changed,
                        const session::AskedChange* asked) override {
    REQUIRE(asked != nullptr);
    std::string text = fmt::format("{} in force after {}:", asked->id, at);
    for (const settings::KnobChange& one : changed) text += " " + one.knob + "=" + one.to;
    told.push_back(text);
  }
  void on_change_refused(std::int64_t /*at*/, TimeNs /*ts*/, const session::AskedChange& asked,
                         const Error& why) override {
    told.push_back(fmt::format("{} refused", asked.id));
    refusal = why.message();
  }
  void on_change_superseded(const session::AskedChange& asked,
                            const session::AskedChange& later) override {
    superseded.emplace_back(asked.id, later.id);
  }

  std::int64_t from_step = 1;
  std::int64_t stops_at = 0;
  std::int64_t step = 0;
  std::vector<session::AskedChange> changes;
  std::vector<std::string> told;
  std::vector<std::pair<std::int64_t, std::int64_t>> superseded;  // ids: what, by what
  std::string refusal;
};

// What a change makes a run do.
struct Work {
  int plans = 0;    // of memory
  int devices = 0;  // made
};

class CountingDevices final : public csd::DeviceFactory {
 public:
  explicit CountingDevices(Work& work) : work_(work) {}
  std::string description() const override { return inner_.description(); }
  Result<std::unique_ptr<csd::CsdDevice>> make(const csd::DeviceRequest& request) override {
    work_.devices += 1;
    return inner_.make(request);
  }

 private:
  Work& work_;
  csd::EmulatedFactory inner_{csd::Payload::real};
};

struct Outcome {
  std::string digest;
  std::int64_t last_step = 0;
  Work work;  // while it trained
};

Outcome train_asked(Asking& asking) {
  const SmallRun files;
  const auto config = files.config({});
  REQUIRE(config.ok());
  Outcome outcome;
  model::ModelFactory factory = arithmetic_factory();
  factory.memory = [&work = outcome.work](const model::ModelShape&, const model::ModelOptions&) {
    work.plans += 1;
    return MemoryItems{};
  };
  CountingDevices devices(outcome.work);
  train::TrainingRun::Request request;
  request.config = &*config;
  request.factory = &factory;
  request.devices = &devices;
  auto run = train::TrainingRun::open(request);
  REQUIRE(run.ok());
  REQUIRE((*run)->prepare(session::StartFrom::new_state).ok());
  outcome.work = {};
  const auto report = train::train(**run, {{&asking}, {&asking}});
  INFO((report.ok() ? std::string() : report.error().message()));
  REQUIRE(report.ok());
  outcome.last_step = report->last_step;
  outcome.digest = digest_of(**run).value();
  return outcome;
}

}  // namespace

TEST_CASE("however many sets wait for a step, they are planned once and put in force once") {
  Asking one;
  one.changes = {{1, {"buffers=4", "prefetch=false", "queue_depth=7"}, "test"}};
  const Outcome alone = train_asked(one);
  REQUIRE(alone.work.plans > 0);
  REQUIRE(alone.work.devices > 0);

  Asking many;
  for (std::int64_t id = 1; id <= 400; ++id) {
    many.changes.push_back({id, {fmt::format("buffers={}", 1 + id % 5)}, "test"});
  }
  many.changes.push_back({401, {"buffers=4", "prefetch=true"}, "test"});
  many.changes.push_back({402, {"prefetch=false", "queue_depth=7"}, "test"});
  const Outcome together = train_asked(many);
  CHECK(together.work.plans == alone.work.plans);
  CHECK(together.work.devices == alone.work.devices);
  CHECK(together.digest == alone.digest);
  CHECK(many.told ==
        std::vector<std::string>{"401 in force after 1: buffers=4",
                                 "402 in force after 1: prefetch=false queue_depth=7"});
  REQUIRE(many.superseded.size() == 400);
  CHECK(many.superseded.front() == std::pair<std::int64_t, std::int64_t>(1, 2));
  CHECK(many.superseded.back() == std::pair<std::int64_t, std::int64_t>(400, 401));
}

TEST_CASE("of sets that wait together the one that cannot be is refused, and the others come") {
  Asking asking;
  asking.changes = {{1, {"buffers=4"}, "test"},
                    {2, {"device_map=1,2,3"}, "test"},
                    {3, {"pipeline=serial"}, "test"},
                    {4, {"host_memory=1MB"}, "test"}};
  const Outcome outcome = train_asked(asking);
  CHECK(outcome.last_step == 6);
  CHECK(asking.told == std::vector<std::string>{"2 refused", "4 refused",
                                                "1 in force after 1: buffers=4",
                                                "3 in force after 1: pipeline=serial"});
}

TEST_CASE("a stop goes before sets that wait") {
  Asking asking;
  asking.from_step = 3;
  asking.stops_at = 3;
  asking.changes = {{1, {"buffers=4"}, "test"}, {2, {"pipeline=serial"}, "test"}};
  const Outcome outcome = train_asked(asking);
  CHECK(outcome.last_step == 3);
  CHECK(outcome.work.plans == 0);
  CHECK(asking.told == std::vector<std::string>{"1 refused", "2 refused"});
  CHECK(asking.refusal == "the run ended before its next step");
}

TEST_CASE(
    "who asks over the socket hears whether a set came into force or a later one took its place") {
  constexpr std::chrono::milliseconds kLong{10'000};
  constexpr int kSets = 50;
  const SmallRun files;
  const auto config = files.config({});
  REQUIRE(config.ok());
  const model::ModelFactory factory = arithmetic_factory();
  train::TrainingRun::Request request;
  request.config = &*config;
  request.factory = &factory;
  auto run = train::TrainingRun::open(request);
  REQUIRE(run.ok());
  REQUIRE((*run)->prepare(session::StartFrom::new_state).ok());
  auto live = session::LiveControl::start(**run);
  REQUIRE(live.ok());
  auto client = control::ControlClient::connect((*live)->socket_path(), kLong);
  REQUIRE(client.ok());
  REQUIRE((*client)->ask({.kind = control::RequestKind::subscribe}, kLong).ok());
  for (int i = 0; i < kSets; ++i) {
    control::Request set;
    set.kind = control::RequestKind::set;
    set.set.settings = {fmt::format("buffers={}", 1 + (kSets - i) % 5)};  // the last: 2
    REQUIRE((*client)->ask(set, kLong).ok());
  }
  Quiet quiet;
  REQUIRE(train::train(**run, {{&quiet, live->get()}, {live->get()}}).ok());
  (*live)->close("done");
  CHECK(quiet.knobs == std::vector<std::string>{"0: buffers 3 -> 2"});
  std::map<control::ChangeState, int> told;
  for (;;) {
    const auto message = (*client)->next_event(kLong);
    REQUIRE(message.ok());
    REQUIRE(message->has_value());
    if ((*message)->is_end) break;
    if ((*message)->change_event) told[(*message)->change_event->state] += 1;
  }
  CHECK(told == std::map<control::ChangeState, int>{{control::ChangeState::in_force, 1},
                                                    {control::ChangeState::superseded, kSets - 1}});
}
