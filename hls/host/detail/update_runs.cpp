#include "hls/host/detail/update_runs.h"

#include <algorithm>
#include <future>
#include <thread>

#include "base/clock.h"
#include "core/csd/update_damage.h"
#include "hls/host/detail/xrt_call.h"

namespace sluice::hls_host {
namespace {

void set_argument(xrt::run& run, int index, const Argument& argument, const RoleBuffers& buffers,
                  const xrt::bo& result) {
  std::visit(
      [&](const auto& value) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, Role>) {
          run.set_arg(index,
                      value == Role::result ? result : *buffers[static_cast<std::size_t>(value)]);
        } else {
          run.set_arg(index, value);
        }
      },
      argument);
}

}  // namespace

UpdateRuns::UpdateRuns(std::string name, std::shared_ptr<Card> card)
    : name_(std::move(name)), card_(std::move(card)) {
  for (const auto& [kernel, units] : card_->kernels) units_[kernel].resize(units.size());
}

// XRT's thread. The launch and the flight belong to the owner again once the last end is counted,
// so the completion is copied out before; that takes no memory.
void UpdateRuns::on_end(Launch& launch, int state) {
  if (launch.is_refused.load(std::memory_order_relaxed)) return;
  Flight& flight = *launch.flight;
  if (state != ERT_CMD_STATE_COMPLETED) flight.bad_state.store(state, std::memory_order_relaxed);
  launch.is_running.store(false, std::memory_order_relaxed);
  count_ends(flight, 1);
}

void UpdateRuns::count_ends(Flight& flight, std::int32_t count) {
  const runtime::Completion completion = *flight.completion;
  const runtime::ExternalEnd end{.unit = flight.unit};
  const bool is_given_up = flight.is_given_up.load(std::memory_order_relaxed);
  if (flight.pending_count.fetch_sub(count, std::memory_order_acq_rel) != count) return;
  if (!is_given_up) completion.note(ok_status(), end);
}

Status UpdateRuns::start(const csd::UpdateOrder& order, const RoleBuffers& buffers,
                         std::int64_t gradient_bytes, csd::UpdatedChecksums& updated,
                         runtime::Completion completion) {
  Flight& flight = take_flight(order, updated);
  Status prepared = prepare(flight, buffers, gradient_bytes);
  if (prepared.ok()) {
    flight.completion = std::move(completion);
    prepared = start_all(flight);
  }
  if (!prepared.ok()) release(flight);
  return prepared;
}

Status UpdateRuns::prepare(Flight& flight, const RoleBuffers& buffers,
                           std::int64_t gradient_bytes) {
  const csd::UpdateOrder& order = *flight.order;
  const bool has_parameters = buffers[static_cast<std::size_t>(Role::parameters)] != nullptr;
  RETURN_IF_ERROR(add_launch(flight,
                             order.task.stored.is_split()
                                 ? split_update_call(order.task, gradient_bytes)
                                 : update_call(order.task, gradient_bytes, has_parameters),
                             buffers));
  const Launch& update = *flight.launches.front();
  const std::size_t unit_count = units_.find(std::string_view(update.kernel))->second.size();
  flight.unit = unit_count > 1 ? static_cast<std::int32_t>(update.unit) : -1;
  for (const csd::GradientChunkCheck& chunk : order.check.gradient) {
    RETURN_IF_ERROR(add_launch(flight, checksum_call(chunk), buffers));
  }
  return ok_status();
}

Status UpdateRuns::add_launch(Flight& flight, const KernelCall& call, const RoleBuffers& buffers) {
  ASSIGN_OR_RETURN(Launch* const launch, take_launch(call.kernel));
  launch->flight = &flight;
  flight.launches.push_back(launch);
  return xrt_call(name_ + ": preparing a run", [&] {
    for (std::size_t i = 0; i < call.count; ++i) {
      set_argument(launch->run, static_cast<int>(i), call.arguments[i], buffers, launch->result);
    }
  });
}

Result<UpdateRuns::Launch*> UpdateRuns::take_launch(const char* kernel) {
  const auto found = units_.find(std::string_view(kernel));
  if (found == units_.end()) {
    return make_error(ErrorCode::config, "{}: the xclbin has no kernel {}", name_, kernel);
  }
  Unit& unit = *std::ranges::min_element(found->second, {}, [](const Unit& each) {
    return std::pair(each.taken_count, each.total_count);
  });
  Launch* launch = nullptr;
  if (unit.free.empty()) {
    const auto index = static_cast<std::size_t>(&unit - found->second.data());
    ASSIGN_OR_RETURN(launch, make_launch(kernel, index));
  } else {
    launch = unit.free.back();
    unit.free.pop_back();
  }
  unit.taken_count += 1;
  unit.total_count += 1;
  return launch;
}

Result<UpdateRuns::Launch*> UpdateRuns::make_launch(const char* kernel, std::size_t unit) {
  Launch& launch = *launches_.emplace_back(std::make_unique<Launch>());
  const Status made = xrt_call(name_ + ": making a run", [&] {
    launch.kernel = kernel;
    launch.unit = unit;
    launch.run = xrt::run(card_->kernels.find(std::string_view(kernel))->second[unit]);
    launch.result = xrt::bo(card_->device, kPageBytes, xrt::bo::flags::normal, card_->bank);
    launch.result_bytes = launch.result.map<const std::byte*>();
    launch.run.add_callback(
        ERT_CMD_STATE_COMPLETED,
        [](const void*, ert_cmd_state state, void* data) {
          on_end(*static_cast<Launch*>(data), state);
        },
        &launch);
  });
  if (made.ok()) return &launch;
  launches_.pop_back();
  return made.error();
}

Status UpdateRuns::start_all(Flight& flight) {
  const auto count = static_cast<std::int32_t>(flight.launches.size());
  flight.pending_count.store(count, std::memory_order_relaxed);
  for (std::int32_t i = 0; i < count; ++i) {
    Launch& launch = *flight.launches[static_cast<std::size_t>(i)];
    launch.is_running.store(true, std::memory_order_relaxed);
    Status started = xrt_call(name_ + ": starting a run", [&] { launch.run.start(); });
    if (started.ok()) continue;
    give_up(flight, launch);
    if (i == 0) return started;
    // Those before it run: the operation ends with them.
    flight.start_error = started.error();
    count_ends(flight, count - i);
    break;
  }
  return ok_status();
}

// XRT lists a command before it asks the driver, and its thread may have seen it there: such a
// thread looks at the command, and calls back, after the driver has refused. So a refused launch is
// never destroyed, and its packet says that it has ended, for which XRT's thread drops it.
void UpdateRuns::give_up(Flight& flight, Launch& refused) {
  refused.is_running.store(false, std::memory_order_relaxed);
  refused.is_refused.store(true, std::memory_order_relaxed);
  const std::atomic_ref<std::uint32_t> header(refused.run.get_ert_packet()->header);
  header.store((header.load() & ~std::uint32_t{0xf}) | std::uint32_t{ERT_CMD_STATE_ABORT});
  units_.find(std::string_view(refused.kernel))->second[refused.unit].taken_count -= 1;
  std::erase(flight.launches, &refused);
  const auto found = std::ranges::find(launches_, &refused, &std::unique_ptr<Launch>::get);
  static_cast<void>(found->release());
  launches_.erase(found);
}

UpdateRuns::Flight& UpdateRuns::take_flight(const csd::UpdateOrder& order,
                                            csd::UpdatedChecksums& updated) {
  const auto found = std::ranges::find(flights_, nullptr, &Flight::order);
  Flight& flight = found == flights_.end() ? flights_.emplace_back() : *found;
  flight.order = &order;
  flight.updated = &updated;
  flight.bad_state.store(0, std::memory_order_relaxed);
  flight.start_error.reset();
  return flight;
}

void UpdateRuns::release(Flight& flight) {
  for (Launch* launch : flight.launches) {
    Unit& unit = units_.find(std::string_view(launch->kernel))->second[launch->unit];
    unit.free.push_back(launch);
    unit.taken_count -= 1;
  }
  flight.launches.clear();
  flight.completion.reset();
  flight.order = nullptr;
  flight.updated = nullptr;
}

Status UpdateRuns::finish(const csd::UpdatedChecksums& updated, Status noted) {
  const auto found = std::ranges::find(flights_, &updated, &Flight::updated);
  CHECK(found != flights_.end());
  Status outcome = noted.ok() ? verdict(*found) : std::move(noted);
  release(*found);
  return outcome;
}

Status UpdateRuns::verdict(const Flight& flight) const {
  const csd::UpdateOrder& order = *flight.order;
  if (flight.start_error) return *flight.start_error;
  const int bad_state = flight.bad_state.load(std::memory_order_relaxed);
  if (bad_state != 0) {
    return make_error(ErrorCode::io,
                      "{}: the update of subgroup {} {}. The last committed step is intact; go on "
                      "with --resume",
                      name_, index_of(order.task.subgroup), run_state_text(bad_state));
  }
  for (const Launch* launch : flight.launches) {
    const Status fetched = fetch_result(*launch);
    if (fetched.ok()) continue;
    return make_error(ErrorCode::io, "{}: the update of subgroup {} ended, and its result {}",
                      name_, index_of(order.task.subgroup), fetched.error().message());
  }
  for (std::size_t i = 1; i < flight.launches.size(); ++i) {
    const std::uint64_t found =
        checksum_result(ResultBytes(flight.launches[i]->result_bytes, kResultBytes));
    RETURN_IF_ERROR(csd::check_gradient_chunk(order, order.check.gradient[i - 1], found));
  }
  const Launch& update = *flight.launches.front();
  return take_update_result(order, update.kernel, ResultBytes(update.result_bytes, kResultBytes),
                            *flight.updated);
}

Status UpdateRuns::fetch_result(const Launch& launch) const {
  return xrt_call("cannot be fetched", [&] {
    xrt::bo result = launch.result;
    result.sync(XCL_BO_SYNC_BO_FROM_DEVICE, kResultBytes, 0);
  });
}

// abort() waits for the driver, however long that takes, so another thread waits for it.
bool UpdateRuns::stop(TimeNs timeout_ns) {
  const TimeNs until_ns = monotonic_now_ns() + timeout_ns;
  for (Flight& flight : flights_) flight.is_given_up.store(true, std::memory_order_relaxed);
  auto running = std::make_shared<std::vector<xrt::run>>();
  for (const auto& launch : launches_) {
    if (launch->is_running.load(std::memory_order_relaxed)) running->push_back(launch->run);
  }
  if (!running->empty()) {
    auto aborted = std::make_shared<std::promise<void>>();
    std::future<void> is_aborted = aborted->get_future();
    std::thread([running, aborted] {
      for (xrt::run& run : *running) {
        const auto ended = xrt_call("aborting a run", [&] { return run.abort(); });
        static_cast<void>(ended);  // whether it ended is seen below
      }
      aborted->set_value();
    }).detach();
    is_aborted.wait_for(std::chrono::nanoseconds(timeout_ns));
  }
  const auto has_ended = [](const Flight& flight) {
    return flight.order == nullptr || flight.pending_count.load(std::memory_order_acquire) == 0;
  };
  while (!std::ranges::all_of(flights_, has_ended)) {
    if (monotonic_now_ns() > until_ns) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace sluice::hls_host
