#include "core/runtime/cost_model.h"

#include <array>
#include <catch2/catch.hpp>

#include "core/runtime/kernel_cost.h"
#include "tests/core/runtime/test_platform.h"

namespace sluice::runtime {
namespace {

// When kernels of a millisecond each, asked for at once on the host and in compute, end.
std::vector<TimeNs> ends_of_both(const platform::Platform& platform) {
  CostModel model(platform);
  OperationState host, compute;
  host.operation.cost.engine = platform.host_engine;
  compute.operation.cost.engine = platform.compute_engine;
  for (OperationState* state : {&host, &compute}) {
    state->operation.cost.engine_dur_ns = 1'000'000;
    model.start(state, 0, 0);
  }
  std::vector<CostModel::Completion> completed;
  model.advance(10'000'000, completed);
  std::vector<TimeNs> ends;
  for (const CostModel::Completion& completion : completed) ends.push_back(completion.at_ns);
  return ends;
}

// When kernels of these lengths, each asked for when the one before it has ended, end.
std::vector<TimeNs> ends_in_turn(const platform::Platform& platform, TimeNs pause_ns,
                                 std::vector<TimeNs> durs_ns) {
  CostModel model(platform);
  std::vector<TimeNs> ends;
  TimeNs now_ns = 0;
  for (const TimeNs dur_ns : durs_ns) {
    OperationState state;
    state.operation.cost.engine = platform.host_engine;
    state.operation.cost.engine_dur_ns = dur_ns;
    model.start(&state, now_ns, 0);
    std::vector<CostModel::Completion> completed;
    model.advance(model.next_completion_ns(), completed);
    ends.push_back(completed.front().at_ns - now_ns);
    now_ns = completed.front().at_ns + pause_ns;
    model.advance(now_ns, completed);
  }
  return ends;
}

// When two reads of 40 MB each from one drive of 400 MB/s end, and a write beside them.
std::vector<TimeNs> ends_of_transfers(const platform::Platform& platform) {
  CostModel model(platform);
  std::array<OperationState, 3> states;
  for (OperationState& state : states) {
    state.operation.cost.route = platform.devices[0].host_route;
    state.operation.label.size_bytes = 40'000'000;
    if (&state == &states[2]) state.operation.cost.direction = platform::Direction::write;
    model.start(&state, 0, 0);
  }
  std::vector<CostModel::Completion> completed;
  while (completed.size() < states.size()) model.advance(model.next_completion_ns(), completed);
  std::vector<TimeNs> ends;
  for (const CostModel::Completion& completion : completed) ends.push_back(completion.at_ns);
  return ends;
}

}  // namespace

TEST_CASE("on a link in order transfers of one direction follow one another") {
  platform::Platform platform = test_platform();
  for (platform::Link& link : platform.links) link.duplex = platform::Duplex::full;
  const TimeNs latency_ns = 11'000;  // of link and drive
  CHECK(ends_of_transfers(platform) == std::vector<TimeNs>{200'000'000 + latency_ns,
                                                           200'000'000 + latency_ns,
                                                           200'000'000 + latency_ns});
  for (platform::Link& link : platform.links) {
    if (link.name.ends_with(".drive")) link.sharing = platform::Sharing::in_order;
  }
  // The second's latency goes by while it waits.
  CHECK(ends_of_transfers(platform) == std::vector<TimeNs>{100'000'000 + latency_ns,
                                                           200'000'000 + latency_ns,
                                                           200'000'000 + latency_ns});
}

TEST_CASE("a file's transfers pass those of another that have no room in the drive's queue") {
  platform::Platform platform = test_platform();
  for (platform::Link& link : platform.links) {
    if (link.name.ends_with(".drive")) link.sharing = platform::Sharing::in_order;
  }
  CostModel model(platform);
  std::array<OperationState, 5> states;  // four of the state, 100 ms each, then a gradient
  for (OperationState& state : states) {
    state.operation.cost.route = platform.devices[0].host_route;
    state.operation.cost.inflight_bytes = 80'000'000;
    state.operation.label.size_bytes = 40'000'000;
    if (&state == &states[4]) state.operation.cost.file = DriveFile::gradients;
    model.start(&state, 0, 0);
  }
  std::vector<CostModel::Completion> completed;
  while (completed.size() < states.size()) model.advance(model.next_completion_ns(), completed);
  std::vector<OperationState*> order;
  for (const CostModel::Completion& completion : completed) order.push_back(completion.state);
  CHECK(order ==
        std::vector<OperationState*>{&states[0], &states[1], &states[4], &states[2], &states[3]});
}

TEST_CASE("kernels start in the order asked, each on the first compute unit that is free") {
  const std::vector<TimeNs> durs_ms = {10, 2, 3, 1, 1};
  struct Ran {
    std::size_t kernel;
    std::int32_t unit;
    TimeNs begin_ms;
    TimeNs end_ms;
    bool operator==(const Ran&) const = default;
  };
  const auto ran_on = [&](std::int32_t units, bool on_host) {  // all asked for at once
    platform::Platform platform = test_platform();
    platform::Engine& engine = platform.engine(platform.devices[0].engine);
    engine.compute_units = units;
    if (on_host) engine.processor = platform.host_engine;
    CostModel model(platform);
    std::vector<OperationState> states(durs_ms.size());
    for (std::size_t i = 0; i < states.size(); ++i) {
      states[i].operation.cost.engine = platform.devices[0].engine;
      states[i].operation.cost.engine_dur_ns = durs_ms[i] * 1'000'000;
      model.start(&states[i], 0, 0);
    }
    std::vector<CostModel::Completion> completed;
    while (completed.size() < states.size()) model.advance(model.next_completion_ns(), completed);
    std::vector<Ran> ran;
    for (const CostModel::Completion& done : completed) {
      ran.push_back({static_cast<std::size_t>(done.state - states.data()), done.unit,
                     done.begin_ns / 1'000'000, done.at_ns / 1'000'000});
    }
    return ran;
  };
  CHECK(ran_on(1, false) ==
        std::vector<Ran>{
            {0, 0, 0, 10}, {1, 0, 10, 12}, {2, 0, 12, 15}, {3, 0, 15, 16}, {4, 0, 16, 17}});
  CHECK(ran_on(2, false) ==
        std::vector<Ran>{{1, 1, 0, 2}, {2, 1, 2, 5}, {3, 1, 5, 6}, {4, 1, 6, 7}, {0, 0, 0, 10}});
  CHECK(ran_on(8, false) ==
        std::vector<Ran>{{3, 3, 0, 1}, {4, 4, 0, 1}, {1, 1, 0, 2}, {2, 2, 0, 3}, {0, 0, 0, 10}});
  // Units of an engine without a processor of its own share that, so all is done no sooner.
  CHECK(ran_on(1, true) == ran_on(1, false));
  CHECK(
      ran_on(2, true) ==
      std::vector<Ran>{{1, 1, 0, 4}, {2, 1, 4, 10}, {3, 1, 10, 12}, {4, 1, 12, 14}, {0, 0, 0, 17}});
}

TEST_CASE("a compute unit that was free longest does not matter: the first in number is taken") {
  platform::Platform platform = test_platform();
  const platform::EngineId engine = platform.devices[0].engine;
  platform.engine(engine).compute_units = 2;
  CostModel model(platform);
  std::array<OperationState, 3> states;
  std::vector<CostModel::Completion> completed;
  for (std::size_t i = 0; i < states.size(); ++i) {
    states[i].operation.cost.engine = engine;
    states[i].operation.cost.engine_dur_ns = 5'000'000 - static_cast<TimeNs>(i) * 1'000'000;
    if (i == 2) model.advance(20'000'000, completed);
    model.start(&states[i], i == 2 ? 20'000'000 : 0, 0);
  }
  while (completed.size() < states.size()) model.advance(model.next_completion_ns(), completed);
  CHECK(completed[0].unit == 1);  // the shorter of the first two
  CHECK(completed[2].unit == 0);
  CHECK(completed[2].begin_ns == 20'000'000);
}

TEST_CASE("engines work at the same time unless they are one processor") {
  platform::Platform platform = test_platform();
  CHECK(ends_of_both(platform) == std::vector<TimeNs>{1'000'000, 1'000'000});
  platform.engine(platform.compute_engine).processor = platform.host_engine;
  CHECK(ends_of_both(platform) == std::vector<TimeNs>{2'000'000, 2'000'000});
}

TEST_CASE("kernels of the host have what transfers leave them of its time") {
  platform::Platform platform = test_platform();
  platform.engine(platform.compute_engine).processor = platform.host_engine;
  const auto ends = [&] {  // of a layer of 200 ms, and of a read of 40 MB at 400 MB/s beside it
    CostModel model(platform);
    OperationState layer, read;
    layer.operation.cost.engine = platform.compute_engine;
    layer.operation.cost.engine_dur_ns = 200'000'000;
    read.operation.cost.route = platform.devices[0].host_route;
    read.operation.label.size_bytes = 40'000'000;
    model.start(&read, 0, 0);
    model.start(&layer, 0, 0);
    std::vector<CostModel::Completion> completed;
    while (completed.size() < 2) model.advance(model.next_completion_ns(), completed);
    CHECK(completed[0].state == &read);
    return std::vector<TimeNs>{completed[0].at_ns, completed[1].at_ns};
  };
  const TimeNs latency_ns = 11'000;  // of link and drive
  CHECK(ends() == std::vector<TimeNs>{100'000'000 + latency_ns, 200'000'000});
  for (platform::Link& link : platform.links) {
    if (link.name.ends_with(".drive")) link.processor_bytes_per_s = 1.6e9;  // of which 0.4 are read
  }
  CHECK(ends() == std::vector<TimeNs>{100'000'000 + latency_ns, 225'000'000});
}

TEST_CASE("a short kernel does not wait for a long one of the same processor") {
  platform::Platform platform = test_platform();
  platform.engine(platform.compute_engine).processor = platform.host_engine;
  CostModel model(platform);
  OperationState layer, check;
  layer.operation.cost.engine = platform.compute_engine;
  layer.operation.cost.engine_dur_ns = 10'000'000;
  check.operation.cost.engine = platform.host_engine;
  check.operation.cost.engine_dur_ns = 1'000'000;
  model.start(&layer, 0, 0);
  model.start(&check, 0, 0);
  std::vector<CostModel::Completion> completed;
  while (completed.size() < 2) model.advance(model.next_completion_ns(), completed);
  CHECK(completed[0].state == &check);
  CHECK(completed[0].at_ns == 2'000'000);
  CHECK(completed[1].at_ns == 11'000'000);
}

TEST_CASE("a processor that was idle takes longer until it is awake") {
  platform::Platform platform = test_platform();
  platform::Engine& host = platform.engine(platform.host_engine);
  host.wake_ns = 1'000'000;
  host.wake_takes_ns = 2'000'000;
  CHECK(ends_in_turn(platform, 0, {3'000'000, 3'000'000}) ==
        std::vector<TimeNs>{4'000'000, 3'000'000});
  CHECK(ends_in_turn(platform, 10'000'000, {3'000'000, 3'000'000, 500'000}) ==
        std::vector<TimeNs>{4'000'000, 4'000'000, 1'000'000});
}

TEST_CASE("an engine that was idle has to wake though another of its processor was not") {
  platform::Platform platform = test_platform();
  const auto engine = [&](platform::EngineId id) -> platform::Engine& {
    return platform.engine(id);
  };
  engine(platform.compute_engine).processor = platform.host_engine;
  engine(platform.compute_engine).wake_ns = 1'000'000;
  engine(platform.compute_engine).wake_takes_ns = 2'000'000;
  CostModel model(platform);
  OperationState check, layer;
  check.operation.cost.engine = platform.host_engine;
  check.operation.cost.engine_dur_ns = 1'000'000;
  layer.operation.cost.engine = platform.compute_engine;
  layer.operation.cost.engine_dur_ns = 10'000'000;
  std::vector<CostModel::Completion> completed;
  model.start(&check, 0, 0);
  model.advance(model.next_completion_ns(), completed);
  CHECK(completed.back().at_ns == 1'000'000);  // of the host nobody said that it has to wake
  model.start(&layer, 1'000'000, 0);
  model.advance(model.next_completion_ns(), completed);
  CHECK(completed.back().at_ns == 12'000'000);
}

}  // namespace sluice::runtime
