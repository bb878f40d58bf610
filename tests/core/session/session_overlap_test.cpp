// overlap=exact in a session: a step that is updated while its gradients come has the numbers of
// one that is not, whatever it is asked for in the end; and what is expected of it, is done ahead.

#include <fmt/ranges.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "core/session/session.h"
#include "core/session/speculation_policy.h"
#include "tests/core/session/open_session.h"
#include "tests/test_folder.h"

using namespace sluice;
using session::Session;

namespace {

constexpr std::int64_t kPauseSteps = session::SpeculationPolicy::kPauseSteps;

// What a step is asked for that nobody could expect.
enum class Other : std::uint8_t { nothing, factor, limited, unsaid, replaced, replaced_at_once };
constexpr int kOthers = 6;

// What a program does in a step beside sending its gradients.
struct Asked {
  session::StepRequest step;
  bool reads = false;  // each gradient back
  Other other = Other::nothing;
};

// Follows from the step alone.
Asked asked_in(std::int64_t step, bool has_groups) {
  const double lr = 0.01 / static_cast<double>(1 + step / 2);
  Asked asked{.step = {.lr = lr}, .reads = step % 3 == 0};
  if (has_groups) asked.step.groups = {{.lr = lr}, {.lr = lr / 2, .weight_decay = 0.1}};
  return asked;
}

std::vector<float> gradient_in(std::size_t tensor, std::int64_t step, const Asked& asked) {
  std::vector<float> gradient = gradient_of(tensor, step);
  for (float& value : gradient) value *= asked.other == Other::limited ? 8.0F : 0.125F;
  return gradient;
}

// Half of the gradient in its place.
void replace(Session& session, std::size_t tensor, const Asked& asked) {
  std::vector<float> other = gradient_in(tensor, session.step(), asked);
  for (float& value : other) value *= 0.5F;
  REQUIRE(problem(session.replace(tensor, other)) == "");
  std::vector<float> found(other.size());
  REQUIRE(problem(session.read(tensor, found)) == "");
  REQUIRE(found == other);
}

void send_all(Session& session, const Asked& asked, std::chrono::milliseconds pause) {
  const std::int64_t step = session.step();
  for (const std::size_t tensor : shuffled(step)) {
    const std::vector<float> gradient = gradient_in(tensor, step, asked);
    REQUIRE(problem(session.send(tensor, gradient)) == "");
    if (asked.other == Other::replaced_at_once && tensor % 2 == 0) replace(session, tensor, asked);
    std::this_thread::sleep_for(pause);
    if (!asked.reads || asked.other == Other::replaced_at_once) continue;
    std::vector<float> found(gradient.size());
    REQUIRE(problem(session.read(tensor, found)) == "");
    REQUIRE(found == gradient);
  }
  if (asked.other != Other::replaced) return;
  for (std::size_t tensor = 1; tensor < 4; ++tensor) replace(session, tensor, asked);
}

session::StepDone take_one(Session& session, const Asked& asked,
                           std::chrono::milliseconds pause = std::chrono::milliseconds(0)) {
  session::StepRequest request = asked.step;
  if (asked.other != Other::unsaid) REQUIRE(problem(expect_step(session, request)) == "");
  if (asked.other == Other::factor) request.gradient_factor = 0.25;
  send_all(session, asked, pause);
  const auto done = session.take_step(request);
  REQUIRE(problem(done) == "");
  return *done;
}

Session::Request request_of(const std::string& folder, const std::vector<std::string>& way,
                            const std::string& overlap, bool has_groups) {
  Session::Request request = request_in(folder, way);
  request.settings.push_back("overlap=" + overlap);
  request.settings.emplace_back("weight_decay=0.01");
  if (!has_groups) return request;
  request.groups.resize(2);
  for (std::size_t tensor = 3; tensor < request.tensors.size(); ++tensor) {
    request.tensors[tensor].group = 1;
  }
  return request;
}

struct Trained {
  std::string digest;
  std::vector<std::vector<std::uint16_t>> parameters;  // of all tensors, every few steps
  std::int64_t ahead_count = 0;
  std::int64_t refuted_count = 0;
};

// In several sessions, since each begins without a pause. Its last step is another than expected.
Trained train(const std::vector<std::string>& way, const std::string& overlap, bool has_groups) {
  const TestFolder folder;
  Trained trained;
  const auto pause = std::chrono::milliseconds(overlap == "off" ? 0 : 1);
  int number = 0;
  for (const std::int64_t until : {2, 3, 5, 6, 8, 9, 12, 13, 16, 17, 18, 20}) {
    auto session = opened(request_of(folder.path(), way, overlap, has_groups));
    while (session->step() < until) {
      Asked asked = asked_in(session->step(), has_groups);
      const bool is_last = session->step() == until - 1;
      if (is_last) asked.other = static_cast<Other>(number++ % kOthers);
      const session::StepDone done = take_one(*session, asked, pause);
      trained.ahead_count += done.ahead_count;
      trained.refuted_count += done.refuted_count;
      CHECK((done.refuted_count == 0 || done.refuted_count == done.ahead_count));
      if (!is_last) CHECK(done.refuted_count == 0);
      const bool is_refuted = asked.other == Other::factor || asked.other == Other::replaced ||
                              asked.other == Other::replaced_at_once;
      if (is_refuted) CHECK(done.refuted_count == done.ahead_count);
      if (done.step % 5 != 0) continue;
      for (std::size_t tensor = 0; tensor < kTensors.size(); ++tensor) {
        auto& values = trained.parameters.emplace_back(
            static_cast<std::size_t>(session::element_count(kTensors[tensor])));
        REQUIRE(problem(copy_parameters(*session, tensor, std::span(values))) == "");
      }
    }
    REQUIRE(problem(session->close()) == "");
  }
  trained.digest = digest_in(folder.path());
  return trained;
}

// A step that is not limited has a norm of about 13, and one that is of about 850.
const std::vector<std::vector<std::string>> kWays = {
    {"max_grad_norm=0", "method=host"},
    {"method=host", "max_grad_norm=50", "gradient_tier=memory", "commit_every=3", "buffers=3"},
    {"max_grad_norm=0", "method=host", "parameter_tier=storage", "state_cache=64KiB",
     "commit_every=2"},
    {"method=csd", "max_grad_norm=50", "buffers=1"},
    {"max_grad_norm=0", "method=csd", "wire=native", "commit_every=3", "prefetch=false"},
    {"max_grad_norm=0", "method=csd", "parameter_tier=storage", "pipeline=handover", "devices=1"},
    {"method=host", "pipeline=serial", "max_grad_norm=50"},
};

}  // namespace

TEST_CASE("steps of a session that are updated ahead have the numbers of those that are not") {
  bool has_groups = true;
  for (const std::vector<std::string>& way : kWays) {
    INFO(fmt::format("{}{}", fmt::join(way, " "), has_groups ? ", groups" : ""));
    const Trained off = train(way, "off", has_groups);
    const Trained exact = train(way, "exact", has_groups);
    CHECK(off.ahead_count == 0);
    CHECK(exact.digest == off.digest);
    CHECK(exact.parameters == off.parameters);
    has_groups = !has_groups;
  }
}

// The schedule is given time between two gradients, as much as it takes.
TEST_CASE("a step as expected is updated ahead, and one that is not is updated again, then none") {
  std::int64_t again = 0;
  for (int wait_ms = 1; again == 0 && wait_ms < 500; wait_ms *= 2) {
    const TestFolder folder;
    auto session =
        opened(request_of(folder.path(), {"method=host", "max_grad_norm=0"}, "exact", false));
    const std::chrono::milliseconds pause(wait_ms);
    Asked asked;
    asked.step.lr = 0.01;
    for (int step = 0; step < 3; ++step) {
      CHECK(take_one(*session, asked, pause).refuted_count == 0);
    }
    asked.step.lr = 0.005;  // said
    CHECK(take_one(*session, asked, pause).refuted_count == 0);
    asked.other = Other::unsaid;  // that of the step before
    CHECK(take_one(*session, asked, pause).refuted_count == 0);
    asked.other = Other::factor;
    again = take_one(*session, asked, pause).refuted_count;
    asked.other = Other::nothing;
    for (std::int64_t step = 0; step < kPauseSteps; ++step) {
      CHECK(take_one(*session, asked).ahead_count == 0);
    }
    if (again == 0) continue;
    std::int64_t ahead = 0;
    for (; ahead == 0 && wait_ms < 500; wait_ms *= 2) {
      ahead = take_one(*session, asked, std::chrono::milliseconds(wait_ms)).ahead_count;
    }
    CHECK(ahead > 0);
  }
  CHECK(again > 0);
}

TEST_CASE("parameters are read until the gradient is sent that they may be updated by") {
  for (const char* tier : {"parameter_tier=memory", "parameter_tier=storage"}) {
    const bool is_on_drives = std::string(tier) == "parameter_tier=storage";
    const TestFolder folder;
    Session::Request request = request_of(folder.path(), {"method=host", tier}, "exact", false);
    request.tensors.push_back({"frozen", {4}, 0, true});
    auto session = opened(request);
    std::vector<std::vector<std::uint16_t>> values;
    for (const session::Tensor& tensor : request.tensors) {
      values.emplace_back(static_cast<std::size_t>(session::element_count(tensor)));
    }
    const auto copy = [&](std::size_t tensor) {
      return copy_parameters(*session, tensor, std::span(values[tensor]));
    };
    for (std::size_t tensor = 0; tensor < 6; ++tensor) REQUIRE(problem(copy(tensor)) == "");
    const auto before = values;
    for (std::size_t tensor = 5; tensor-- > 0;) {
      REQUIRE(problem(session->send(tensor, gradient_of(tensor, 0))) == "");
      CHECK(copy(tensor).error().code() == ErrorCode::config);
      CHECK_THAT(copy(tensor).error().message(), Catch::Contains("overlap=exact"));
      for (std::size_t other = 0; other < tensor; ++other) {
        if (is_on_drives) {
          CHECK_THAT(copy(other).error().message(), Catch::Contains("before the first gradient"));
        } else {
          CHECK(problem(copy(other)) == "");
          CHECK(values[other] == before[other]);
        }
      }
      CHECK(problem(copy(5)) == "");  // frozen
    }
    CHECK_THAT(expect_step(*session, {}).error().message(), Catch::Contains("before the first"));
    REQUIRE(problem(session->take_step({.lr = 0.01})) == "");
    for (std::size_t tensor = 0; tensor < 5; ++tensor) {
      CHECK(problem(copy(tensor)) == "");
      CHECK(values[tensor] != before[tensor]);
    }
    CHECK_THAT(expect_step(*session, {.groups = {{}, {}}}).error().message(),
               Catch::Contains("rates of 2 groups"));
  }
}

// A step that is begun and never taken leaves nothing, however much of it was done ahead.
TEST_CASE("a step that is given up among its gradients, or is not finite, leaves the last commit") {
  for (const std::vector<std::string>& way : kWays) {
    INFO(fmt::format("{}", fmt::join(way, " ")));
    const TestFolder given_up, through;
    Asked asked;
    asked.step.lr = 0.01;
    const std::chrono::milliseconds pause(2);
    std::int64_t steps = 0;
    for (const bool is_finite : {true, false}) {
      auto session = opened(request_of(given_up.path(), way, "exact", false));
      steps = session->step();
      for (int step = 0; step < 3; ++step) take_one(*session, asked, pause);
      REQUIRE(problem(session->commit()) == "");
      asked.other = is_finite ? Other::nothing : Other::replaced_at_once;
      send_all(*session, asked, pause);
      if (!is_finite) {
        std::vector<float> broken = gradient_of(2, session->step());
        broken[17] = std::numeric_limits<float>::infinity();
        REQUIRE(problem(session->replace(2, broken)) == "");
        CHECK(session->take_step({.lr = 0.01}).error().code() == ErrorCode::diverged);
      }
      asked.other = Other::nothing;
      static_cast<void>(session->close());
    }
    auto session = opened(request_of(given_up.path(), way, "exact", false));
    CHECK(session->step() == steps + 3);
    take_one(*session, asked);
    REQUIRE(problem(session->close()) == "");
    auto whole = opened(request_of(through.path(), way, "off", false));
    while (whole->step() < steps + 4) take_one(*whole, asked);
    REQUIRE(problem(whole->close()) == "");
    CHECK(digest_in(given_up.path()) == digest_in(through.path()));
  }
}
