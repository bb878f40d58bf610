// Steps whose critical path is known, because they were made so, and what the verdict says of each.

#include "profiler/analyze/critical_path.h"

#include <catch2/catch.hpp>
#include <numeric>

#include "profiler/analyze/activation_waits.h"
#include "tests/profiler/analyze/made_step.h"

namespace sluice::analyze {
namespace {

using Drives = MadeStep::Drives;
using Shares = std::vector<std::pair<Cause, double>>;

// Every share that is not named is 0, and the pieces of the path cover the step without a gap.
void check(const MadeStep& made, const Shares& expected) {
  const StepVerdict verdict = verdict_of(made.data());
  std::array<double, kCauseCount> shares{};
  for (const auto& [cause, share] : expected) shares[index_of(cause)] = share;
  for (std::size_t i = 0; i < kCauseCount; ++i) {
    INFO(cause_name(static_cast<Cause>(i)));
    CHECK(verdict.share[i] == Approx(shares[i]).margin(1e-9));
  }
  CHECK(std::accumulate(verdict.share.begin(), verdict.share.end(), 0.0) ==
        Approx(1).epsilon(1e-9));
  TimeNs ts = verdict.ts;
  std::array<TimeNs, kCauseCount> on_path{};
  for (const PathPiece& piece : verdict.path) {
    CHECK(piece.ts == ts);
    ts += piece.dur;
    on_path[index_of(piece.cause)] += piece.dur;
  }
  CHECK(ts == verdict.ts + verdict.dur);
  for (std::size_t i = 0; i < kCauseCount; ++i) {
    INFO(cause_name(static_cast<Cause>(i)));
    const double share_ns = verdict.share[i] * static_cast<double>(verdict.dur);
    CHECK(std::abs(share_ns - static_cast<double>(on_path[i])) < 1000);  // a microsecond
  }
}

// Layers one after the other, downwards, ending at `end_ms`.
std::int64_t add_backward(MadeStep& made, std::int64_t begin_ms, std::int64_t end_ms, int layers) {
  std::int64_t last = 0;
  const std::int64_t each_ms = (end_ms - begin_ms) / layers;
  for (int i = 0; i < layers; ++i) {
    const std::int64_t begin = begin_ms + i * each_ms;
    last = made.add("backward", begin, begin + each_ms, {.layer = layers - 1 - i});
  }
  return last;
}

}  // namespace

TEST_CASE("1: only computing") {
  MadeStep made(100);
  made.add("forward", 0, 40);
  add_backward(made, 40, 100, 3);
  check(made, {{Cause::compute, 1.0}});
}

TEST_CASE("2: an empty step is nothing that was recorded") {
  check(MadeStep(100), {{Cause::other, 1.0}});
}

TEST_CASE("3: a gap is nothing that was recorded") {
  MadeStep made(100);
  made.add("forward", 0, 40);
  made.add("backward", 50, 100, {.asked_ms = 50});
  check(made, {{Cause::compute, 0.9}, {Cause::other, 0.1}});
}

TEST_CASE("4: one slow device holds the step, the others are not named") {
  MadeStep made(200);
  made.add("forward", 0, 20);
  const auto backward = add_backward(made, 20, 60, 2);
  for (std::int32_t d = 0; d < 4; ++d) {
    const std::int64_t slow = d == 2 ? 40 : 10;
    const auto down = made.add("gradient_down", 60, 62, {.device = d, .subgroup = d});
    made.flow(backward, down);
    const auto read = made.add("state_read", 62, 62 + slow, {.device = d, .subgroup = d});
    const auto update = made.add("update", 62 + slow, 66 + slow, {.device = d, .subgroup = d});
    made.flow(read, update);
    const auto write = made.add("state_write", 66 + slow, 66 + slow + 94 * slow / 40,
                                {.device = d, .subgroup = d});
    made.flow(update, write);
  }
  // Device 2: read 62-102, update -106, write -200.
  check(made, {{Cause::compute, 0.3},
               {Cause::host_link, 0.01},
               {Cause::read, 0.2},
               {Cause::update_engine, 0.02},
               {Cause::write, 0.47}});
  const StepVerdict verdict = verdict_of(made.data());
  CHECK(made.data().spans[static_cast<std::size_t>(verdict.path.back().span_id - 1)].device_id ==
        2);
}

TEST_CASE("5: one buffer on drives that read and write at once: buffers") {
  MadeStep made(120);
  std::int64_t t = 0;
  for (std::int32_t g = 0; g < 3; ++g) {
    const auto read = made.add("state_read", t, t + 15, {.device = 0, .subgroup = g});
    const auto update = made.add("update", t + 15, t + 20, {.device = 0, .subgroup = g});
    const auto write = made.add("state_write", t + 20, t + 40, {.device = 0, .subgroup = g});
    made.flow(read, update);
    made.flow(update, write);
    t += 40;
  }
  // The last write is not what a read waits for.
  check(made, {{Cause::read, 45.0 / 120},
               {Cause::update_engine, 15.0 / 120},
               {Cause::buffers, 40.0 / 120},
               {Cause::write, 20.0 / 120}});
}

TEST_CASE("6: the same on drives that do one thing at a time is writing") {
  MadeStep made(120, Drives::half_duplex);
  std::int64_t t = 0;
  for (std::int32_t g = 0; g < 3; ++g) {
    made.add("state_read", t, t + 15, {.device = 0, .subgroup = g});
    made.add("update", t + 15, t + 20, {.device = 0, .subgroup = g});
    made.add("state_write", t + 20, t + 40, {.device = 0, .subgroup = g});
    t += 40;
  }
  check(
      made,
      {{Cause::read, 45.0 / 120}, {Cause::update_engine, 15.0 / 120}, {Cause::write, 60.0 / 120}});
}

TEST_CASE("7: a buffer that came late while other reads filled the link is not the cause") {
  MadeStep made(100);
  const auto write = made.add("state_write", 0, 50, {.device = 0, .subgroup = 0});
  made.add("state_read", 0, 50, {.device = 0, .subgroup = 1});
  made.add("state_read", 50, 100, {.device = 0, .subgroup = 2, .asked_ms = 50});
  (void)write;
  const StepVerdict verdict = verdict_of(made.data());
  CHECK(verdict.share_of(Cause::buffers) == 0);
  CHECK(verdict.share_of(Cause::read) + verdict.share_of(Cause::write) == Approx(1));
}

TEST_CASE("8: the commit") {
  MadeStep made(100);
  const auto write = made.add("state_write", 0, 40, {.device = 0, .subgroup = 3});
  const auto commit = made.add("commit", 40, 90);
  made.flow(write, commit);
  made.add("state_read", 90, 100, {.device = 0, .subgroup = 0});
  check(made, {{Cause::write, 0.4}, {Cause::commit, 0.5}, {Cause::read, 0.1}});
}

TEST_CASE("9: compression between backward and the transfers") {
  MadeStep made(100);
  const auto backward = made.add("backward", 0, 20, {.layer = 0});
  const auto check_span = made.add("gradient", 20, 25, {.layer = 0});
  const auto compress = made.add("compress", 25, 95, {.layer = 0});
  const auto down = made.add("gradient_down", 95, 100, {.device = 0, .subgroup = 0});
  made.flow(backward, check_span);
  made.flow(check_span, compress);
  made.flow(compress, down);
  check(made, {{Cause::compute, 0.2},
               {Cause::processor, 0.05},
               {Cause::compression, 0.7},
               {Cause::host_link, 0.05}});
}

TEST_CASE("10: the host link, when all devices take their gradients over it") {
  MadeStep made(100);
  made.add("backward", 0, 30, {.layer = 0});
  for (std::int32_t d = 0; d < 4; ++d) {
    made.add("gradient_down", 30, 100, {.device = d, .subgroup = d, .bytes = 175'000'000});
  }
  check(made, {{Cause::compute, 0.3}, {Cause::host_link, 0.7}});
}

TEST_CASE("11: the update engine") {
  MadeStep made(100);
  const auto read = made.add("state_read", 0, 10, {.device = 1, .subgroup = 0});
  const auto update = made.add("update", 10, 90, {.device = 1, .subgroup = 0});
  const auto write = made.add("state_write", 90, 100, {.device = 1, .subgroup = 0});
  made.flow(read, update);
  made.flow(update, write);
  check(made, {{Cause::read, 0.1}, {Cause::update_engine, 0.8}, {Cause::write, 0.1}});
}

TEST_CASE("12: what waited in an engine's queue goes on with what ran there before") {
  MadeStep made(100);
  made.add("state_read", 0, 10, {.device = 0, .subgroup = 0});
  made.add("state_read", 10, 20, {.device = 0, .subgroup = 1});
  made.add("update", 10, 55, {.device = 0, .subgroup = 0});
  made.add("update", 55, 100, {.device = 0, .subgroup = 1, .asked_ms = 20});
  check(made, {{Cause::read, 0.1}, {Cause::update_engine, 0.9}});
}

TEST_CASE("13: updates of the host are its processor's") {
  MadeStep made(100);
  made.add("state_read", 0, 20, {.device = 0, .subgroup = 0});
  made.add("update", 20, 100, {.subgroup = 0});
  check(made, {{Cause::read, 0.2}, {Cause::processor, 0.8}});
}

TEST_CASE("14: two causes, half and half") {
  MadeStep made(100);
  const auto read = made.add("state_read", 0, 50, {.device = 0, .subgroup = 0});
  const auto update = made.add("update", 50, 100, {.device = 0, .subgroup = 0});
  made.flow(read, update);
  check(made, {{Cause::read, 0.5}, {Cause::update_engine, 0.5}});
  // The first of equal shares, in the order of causes.
}

TEST_CASE("15: what runs beside the path takes nothing") {
  MadeStep made(100);
  made.add("backward", 0, 100, {.layer = 0});
  made.add("state_read", 5, 95, {.device = 0, .subgroup = 0});
  made.add("state_write", 5, 99, {.device = 1, .subgroup = 1});
  check(made, {{Cause::compute, 1.0}});
}

TEST_CASE(
    "16: spans that began before the step count from its begin, those that end after it not") {
  MadeStep made(100);
  made.add("state_write", -50, 60, {.device = 0, .subgroup = 3});
  made.add("state_read", 60, 100, {.device = 0, .subgroup = 0, .asked_ms = 60});
  made.add("state_write", 90, 150, {.device = 1, .subgroup = 9});
  check(made, {{Cause::buffers, 0.6}, {Cause::read, 0.4}});
}

TEST_CASE("17: the next forward waits for parameters on their way up") {
  MadeStep made(100);
  const auto update = made.add("update", 0, 30, {.device = 0, .subgroup = 0});
  const auto up =
      made.add("parameters_up", 30, 60, {.device = 0, .subgroup = 0, .bytes = 300'000'000});
  const auto in = made.add("parameters_in", 60, 65, {.subgroup = 0});
  const auto forward = made.add("forward", 65, 100, {.layer = 3});
  made.flow(update, up);
  made.flow(up, in);
  made.flow(in, forward);
  check(made, {{Cause::update_engine, 0.3},
               {Cause::host_link, 0.3},
               {Cause::processor, 0.05},
               {Cause::compute, 0.35}});
}

TEST_CASE("18: without flows, what ended last before it is the cause") {
  MadeStep made(100);
  made.add("update", 0, 30, {.device = 0, .subgroup = 0});
  made.add("update", 0, 20, {.device = 1, .subgroup = 1});
  made.add("parameters_up", 30, 60, {.device = 0, .subgroup = 0, .bytes = 300'000'000});
  made.add("forward", 60, 100, {.layer = 3});
  check(made, {{Cause::update_engine, 0.3}, {Cause::host_link, 0.3}, {Cause::compute, 0.4}});
}

TEST_CASE("19: a flow from long ago is not what an operation waited for") {
  MadeStep made(100);
  const auto staged = made.add("stage_gradient", 0, 5, {.subgroup = 0});
  made.add("state_write", 5, 60, {.device = 0, .subgroup = 5});
  const auto down = made.add("gradient_down", 60, 100, {.device = 0, .subgroup = 0});
  made.flow(staged, down);
  const StepVerdict verdict = verdict_of(made.data());
  CHECK(verdict.share_of(Cause::write) == Approx(0.55));
}

TEST_CASE("20: of those that ended together the one that a flow names") {
  MadeStep made(100);
  const auto read = made.add("state_read", 0, 50, {.device = 0, .subgroup = 0});
  made.add("backward", 0, 50, {.layer = 0});
  made.add("compress", 0, 50, {.layer = 0});
  const auto update = made.add("update", 50, 100, {.device = 0, .subgroup = 0});
  made.flow(read, update);
  check(made, {{Cause::read, 0.5}, {Cause::update_engine, 0.5}});
}

TEST_CASE("21: the recorder, where it takes a processor from what is bound by one") {
  MadeStep made(100);
  made.add("backward", 0, 100, {.layer = 0});
  made.add("collect", 20, 40);
  check(made, {{Cause::compute, 0.9}, {Cause::recorder, 0.1}});
  const std::vector<PathPiece> path = verdict_of(made.data()).path;
  REQUIRE(path.size() == 3);  // where the recorder began, its half of two processors
  CHECK(path[1].ts - path[0].ts == 20 * kMs);
  CHECK(path[1].dur == 10 * kMs);
  CHECK(path[1].cause == Cause::recorder);
  CHECK(path[2].span_id == path[0].span_id);
}

TEST_CASE("22: and costs nothing where the step waits for drives") {
  MadeStep made(100);
  made.add("state_read", 0, 100, {.device = 0, .subgroup = 0});
  made.add("collect", 20, 40);
  check(made, {{Cause::read, 1.0}});
}

TEST_CASE("25: begun some nanoseconds before the end that it follows, it follows it all the same") {
  MadeStep made(100);
  made.add("stage_gradient", 0, 10);
  const std::int64_t forward = made.add("forward", 10, 40);
  const std::int64_t backward = made.add("backward", 40, 70);
  const std::int64_t read = made.add("state_read", 70, 90, {.device = 0});
  const std::int64_t update = made.add("update", 90, 100, {.device = 0});
  made.flow(backward, read);
  made.flow(read, update);
  for (const std::int64_t id : {forward, backward, read, update}) made.begin_earlier(id, 11);
  const StepVerdict verdict = verdict_of(made.data());
  CHECK(verdict.share_of(Cause::other) == 0);
  CHECK(verdict.share_of(Cause::processor) == Approx(0.1).margin(1e-6));
  CHECK(verdict.share_of(Cause::compute) == Approx(0.6).margin(1e-6));
  CHECK(verdict.share_of(Cause::read) == Approx(0.2).margin(1e-6));
  CHECK(verdict.share_of(Cause::update_engine) == Approx(0.1).margin(1e-6));
}

TEST_CASE("an accelerator's link is a host link, not a drive's, also where it is the fuller one") {
  MadeStep made(100);
  const auto in = made.add("layer_in", 0, 40, {.layer = 1, .bytes = 160'000'000});
  const auto forward = made.add("forward", 40, 70, {.layer = 1});
  const auto out = made.add("gradient_out", 70, 90, {.layer = 1, .bytes = 80'000'000});
  const auto read = made.add("state_read", 90, 100, {.device = 0, .subgroup = 0});
  made.flow(in, forward);
  made.flow(forward, out);
  made.flow(out, read);
  check(made, {{Cause::host_link, 0.6}, {Cause::compute, 0.3}, {Cause::read, 0.1}});
}

TEST_CASE("what a GPU did within an operation changes no share") {
  MadeStep made(100);
  made.add("forward", 0, 60, {.layer = 1});
  made.add("kernel", 5, 50, {.layer = 1});
  made.add("backward", 60, 90, {.layer = 1});
  made.add("kernel", 61, 99, {.layer = 1});  // its record says so, but the operation had ended
  check(made, {{Cause::compute, 0.9}, {Cause::other, 0.1}});
}

TEST_CASE("23: instants and spans without length are no causes") {
  MadeStep made(100);
  made.add("forward", 0, 50);
  made.add("collect", 50, 50);
  made.add("gradient", 50, 50, {.layer = 1});
  made.add("backward", 50, 100, {.layer = 1});
  check(made, {{Cause::compute, 1.0}});
}

TEST_CASE("24: a step without length has no shares") {
  MadeStep made(0);
  made.add("forward", 0, 0);
  const StepVerdict verdict = verdict_of(made.data());
  CHECK(verdict.path.empty());
  CHECK(std::accumulate(verdict.share.begin(), verdict.share.end(), 0.0) == 0);
}

TEST_CASE("a wait for activations is charged alone, not what went on beside forward and backward") {
  MadeStep made(100);
  const auto first = made.add("forward", 0, 20, {.layer = 1});
  made.add("forward", 20, 40, {.layer = 2});
  const auto out = made.add("activation_write", 20, 55, {.device = 0, .layer = 1});
  made.flow(first, out);
  made.add("activations out", 40, 55, {.layer = 3});
  made.add("forward", 55, 65, {.layer = 3});
  const auto back = made.add("activation_read", 60, 75, {.device = 0, .layer = 2});
  made.add("activations back", 65, 75, {.layer = 2});
  const auto backward = made.add("backward", 75, 100, {.layer = 2});
  made.flow(back, backward);
  check(made,
        {{Cause::compute, 0.75}, {Cause::activations_out, 0.15}, {Cause::activations_back, 0.1}});
  WaitUse use;
  use.add(made.data());
  CHECK(use.busiest(Cause::activations_out) == "drive writes");
  CHECK(use.busiest(Cause::activations_back) == "drive reads");
  CHECK(WaitUse().busiest(Cause::activations_out).empty());
}

}  // namespace sluice::analyze
