#include "gui/data/control_link.h"

#include <catch2/catch.hpp>

#include "core/control/control_server.h"
#include "gui/data/pending_settings.h"
#include "tests/gui/data/feed_fixture.h"

namespace sluice::gui {
namespace {

using control::ChangeState;

// A run with one knob, whose schedule is the test: take_over() is its safe point.
class TurnedRun {
 public:
  explicit TurnedRun(const std::string& socket_path) {
    control::RunSeam seam;
    seam.knobs = [this] {
      const MutexLock lock(mutex_);
      return std::vector<control::Knob>{
          {"buffers", "integer", 1.0, 64.0, {}, "1 to 64", "subgroups", "3", "Help.", buffers_}};
    };
    seam.check = [](const std::vector<std::string>&, const std::vector<std::string>& settings) {
      if (settings.front() != "buffers=400") return ok_status();
      return Status(make_error(ErrorCode::config, "buffers=400: there is room for 64"));
    };
    server_ = require_ok(control::ControlServer::start(
        socket_path, {control::kProtocolVersion, "made", "/nowhere/run.db", 1}, std::move(seam)));
  }

  // What is due, without its becoming effective.
  control::Due due() {
    control::Due all;
    comes_true([&] {
      all = server_->take_due();
      return !all.sets.empty();
    });
    return all;
  }
  void tell(const control::QueuedSet& queued, ChangeState state, const std::string& message = {}) {
    if (state == ChangeState::in_force) {
      const MutexLock lock(mutex_);
      const std::string& setting = queued.set.settings.front();
      buffers_ = setting.substr(setting.find('=') + 1);
    }
    server_->tell(control::ChangeEvent{.change = queued.change,
                                       .state = state,
                                       .step = 13,
                                       .settings = queued.set.settings,
                                       .who = queued.set.who,
                                       .message = message});
  }
  control::ControlServer& server() { return *server_; }

 private:
  Mutex mutex_;
  std::string buffers_ GUARDED_BY(mutex_) = "3";
  std::unique_ptr<control::ControlServer> server_;
};

bool is_connected(const ControlLink& link) {
  return comes_true([&] { return link.state() != nullptr && link.state()->is_connected; });
}

bool has_outcome(const ControlLink& link, std::uint64_t number, SetOutcome outcome) {
  return comes_true([&] {
    const auto state = link.state();  // holds what asked_set() points into
    const AskedSet* asked = state->asked_set(number);
    return asked != nullptr && asked->outcome == outcome;
  });
}

control::SetRequest request(const std::string& setting, const std::string& revert_if = {}) {
  control::SetRequest made;
  made.settings = {setting};
  made.who = "gui";
  made.revert_if = revert_if;
  return made;
}

control::Knob knob_with(const std::string& key, const std::string& value) {
  control::Knob knob;
  knob.key = key;
  knob.value = value;
  return knob;
}

AskedSet asked_set(std::uint64_t number, const std::string& setting, SetOutcome outcome,
                   const std::string& message = {}) {
  AskedSet made;
  made.number = number;
  made.settings = {setting};
  made.outcome = outcome;
  made.message = message;
  return made;
}

ControlOptions quick_link() {
  ControlOptions options;
  options.retry_ms = 5;
  return options;
}

}  // namespace

TEST_CASE("a set is answered, waits, and is in force when the run says so") {
  const TempFolder folder;
  TurnedRun run(folder.file("run.db.socket"));
  ControlLink link(folder.file("run.db.socket"), quick_link());
  REQUIRE(is_connected(link));
  REQUIRE(link.state()->knob("buffers") != nullptr);
  CHECK(link.state()->knob("buffers")->value == "3");
  CHECK(link.state()->knob("densty") == nullptr);

  const std::uint64_t number = link.set(request("buffers=6", "step_time>+5%"));
  REQUIRE(has_outcome(link, number, SetOutcome::waiting));
  CHECK(link.state()->knob("buffers")->value == "3");
  const control::Due due = run.due();
  REQUIRE(due.sets.size() == 1);
  CHECK(due.sets[0].set.who == "gui");
  CHECK(due.sets[0].set.revert_if == "step_time>+5%");
  run.tell(due.sets[0], ChangeState::in_force);
  REQUIRE(has_outcome(link, number, SetOutcome::in_force));
  CHECK(comes_true([&] { return link.state()->knob("buffers")->value == "6"; }));
  CHECK(link.state()->asked_set(number)->from_step == 13);
  REQUIRE(link.state()->changes.size() == 1);
  CHECK(link.state()->changes[0].who == "gui");
  run.tell(due.sets[0], ChangeState::reverted, "step_time 1 s -> 2 s");
  CHECK(has_outcome(link, number, SetOutcome::reverted));
  CHECK(link.state()->asked_set(number)->message == "step_time 1 s -> 2 s");
}

TEST_CASE("a set whose knobs a later one turns is superseded") {
  const TempFolder folder;
  TurnedRun run(folder.file("run.db.socket"));
  ControlLink link(folder.file("run.db.socket"), quick_link());
  REQUIRE(is_connected(link));
  const std::uint64_t first = link.set(request("buffers=6"));
  const std::uint64_t second = link.set(request("buffers=7"));
  CHECK(has_outcome(link, first, SetOutcome::superseded));
  CHECK(link.state()->asked_set(first)->message == "a later change (gui) turns the same knobs");
  CHECK(has_outcome(link, second, SetOutcome::waiting));
}

TEST_CASE("a refusal is the run's own sentence, and the line stays") {
  const TempFolder folder;
  TurnedRun run(folder.file("run.db.socket"));
  ControlLink link(folder.file("run.db.socket"), quick_link());
  REQUIRE(is_connected(link));
  const std::uint64_t number = link.set(request("buffers=400"));
  REQUIRE(has_outcome(link, number, SetOutcome::refused));
  CHECK(link.state()->asked_set(number)->message == "buffers=400: there is room for 64");
  CHECK(link.state()->is_connected);
  CHECK(has_outcome(link, link.set(request("buffers=4")), SetOutcome::waiting));
}

TEST_CASE("steps are heard, stop is agreed to, and the end of the run is said") {
  const TempFolder folder;
  auto run = std::make_unique<TurnedRun>(folder.file("run.db.socket"));
  ControlLink link(folder.file("run.db.socket"), quick_link());
  REQUIRE(is_connected(link));
  run->server().tell(control::RunStatus{.step = 12, .steps = 20, .step_seconds = 0.5});
  CHECK(comes_true([&] { return link.state()->status.step == 12; }));
  link.stop();
  CHECK(comes_true([&] { return run->server().stop_is_asked(); }));
  CHECK(comes_true([&] { return link.state()->is_stopping; }));
  const std::uint64_t waiting = link.set(request("buffers=4"));
  REQUIRE(has_outcome(link, waiting, SetOutcome::waiting));
  run->server().close("done");
  CHECK(has_outcome(link, waiting, SetOutcome::refused));
  REQUIRE(comes_true([&] { return !link.state()->is_connected; }));
  CHECK(link.state()->why_not == "the run has ended; its knobs can no longer be turned");
  CHECK(link.state()->knobs.size() == 1);  // the last values are still worth showing
  const std::uint64_t late = link.set(request("buffers=5"));
  REQUIRE(has_outcome(link, late, SetOutcome::refused));
  CHECK(link.state()->asked_set(late)->message == link.state()->why_not);
}

TEST_CASE("without a run the link says so, and finds one that begins") {
  const TempFolder folder;
  ControlLink link(folder.file("run.db.socket"), quick_link());
  REQUIRE(comes_true([&] { return link.state() != nullptr; }));
  CHECK_FALSE(link.state()->is_connected);
  CHECK(link.state()->why_not.find("no run listens there") != std::string::npos);
  auto run = std::make_unique<TurnedRun>(folder.file("run.db.socket"));
  REQUIRE(is_connected(link));
  run.reset();
  REQUIRE(comes_true([&] { return !link.state()->is_connected; }));
  run = std::make_unique<TurnedRun>(folder.file("run.db.socket"));
  CHECK(is_connected(link));
}

TEST_CASE("a link can be closed at any moment") {
  const TempFolder folder;
  TurnedRun run(folder.file("run.db.socket"));
  for (int i = 0; i < 50; ++i) {
    ControlLink link(folder.file("run.db.socket"), quick_link());
    if (i % 3 > 0) link.set(request("buffers=4"));
    if (i % 2 > 0) REQUIRE(is_connected(link));
  }
  ControlLink last(folder.file("run.db.socket"), quick_link());
  CHECK(is_connected(last));  // the run is as well as before
}

TEST_CASE("what is chosen is pending until the run has taken it over") {
  PendingSettings pending;
  pending.choose("buffers", "6", "3");
  pending.choose("pipeline", "serial", "nbuffer");
  pending.choose("pipeline", "nbuffer", "nbuffer");  // back again
  CHECK(pending.settings() == std::vector<std::string>{"buffers=6"});
  ControlState state;
  state.knobs = {knob_with("buffers", "3")};
  pending.note_sent(7);
  pending.follow(state);
  CHECK(pending.is_under_way());
  state.asked = {asked_set(7, "buffers=6", SetOutcome::waiting)};
  pending.follow(state);
  CHECK(pending.size() == 1);
  state.asked[0].outcome = SetOutcome::in_force;
  pending.follow(state);
  CHECK(pending.empty());
  CHECK_FALSE(pending.is_under_way());
}

TEST_CASE("what was refused stays chosen, with the reason until something else is") {
  PendingSettings pending;
  pending.choose("buffers", "400", "3");
  pending.note_sent(1);
  ControlState state;
  state.asked = {asked_set(1, "buffers=400", SetOutcome::refused, "too many")};
  pending.follow(state);
  CHECK(pending.refusal() == "too many");
  REQUIRE(pending.chosen("buffers") != nullptr);
  CHECK(*pending.chosen("buffers") == "400");
  pending.choose("buffers", "40", "3");
  CHECK(pending.refusal().empty());
}

TEST_CASE("what somebody else put in force is pending no longer, a later choice is") {
  PendingSettings pending;
  pending.choose("buffers", "6", "3");
  ControlState state;
  state.knobs = {knob_with("buffers", "6")};
  pending.follow(state);
  CHECK(pending.empty());
  pending.choose("buffers", "8", "6");
  pending.note_sent(2);
  pending.choose("buffers", "9", "6");
  state.knobs[0].value = "8";
  state.asked = {asked_set(2, "buffers=8", SetOutcome::in_force)};
  pending.follow(state);
  CHECK(pending.settings() == std::vector<std::string>{"buffers=9"});
}

}  // namespace sluice::gui
