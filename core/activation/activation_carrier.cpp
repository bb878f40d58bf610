#include "core/activation/activation_carrier.h"

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "core/runtime/kernel_cost.h"
#include "storage/state/checksum.h"

namespace sluice::activation {
namespace {

using platform::Direction;
using stages::ActivationTier;
using stages::ActivationWait;
using stages::Stage;

// One is summed while the other is written.
constexpr std::int32_t kWritesAtOnce = 2;

// A platform that says no rate of checksums has that of `stage`, which counts fp32 elements.
runtime::Cost checksum_cost(platform::EngineId id, const platform::Engine& engine,
                            std::int64_t size_bytes) {
  constexpr double kElementBytes = 4;
  const auto bytes = static_cast<double>(size_bytes);
  return engine.rate.contains("checksum")
             ? runtime::kernel_cost(id, engine, "checksum", bytes)
             : runtime::kernel_cost(id, engine, "stage", bytes / kElementBytes);
}

runtime::Waiting waiting_for(const char* what, LayerId layer) {
  runtime::Waiting waiting;
  waiting.what = what;
  waiting.layer = layer;
  return waiting;
}

runtime::Task<Status> awaited(runtime::Operation operation) {
  Status status = co_await operation;
  co_return status;
}

std::span<const std::byte> bytes_of(const std::byte* data, std::int64_t size_bytes) {
  return {data, static_cast<std::size_t>(size_bytes)};
}

}  // namespace

ActivationCarrier::ActivationCarrier(const Parts& parts)
    : parts_(parts),
      places_(parts.drives.count()),
      turns_(parts.runtime, kWritesAtOnce),
      room_(parts.runtime),
      leaving_(parts.runtime),
      coming_(parts.runtime) {
  const auto layer_count = static_cast<std::int32_t>(parts.plan.layer_blocks.size());
  counts_.layer_wait_ns.resize(parts.plan.layer_blocks.size());
  at_.assign(static_cast<std::size_t>(layer_count * parts.plan.micro_step_count), -1);
  for (std::int32_t l = layer_count; l-- > 0;) {
    const auto& blocks = parts.plan.layer_blocks[static_cast<std::size_t>(l)];
    for (int m = 0; !blocks.empty() && m < parts.plan.micro_step_count; ++m) {
      at_[static_cast<std::size_t>(l * parts.plan.micro_step_count + m)] =
          static_cast<std::int32_t>(kept_.size());
      Kept& kept = kept_.emplace_back(parts.runtime, LayerId{l}, m);
      kept.size_bytes = parts.plan.layer_bytes(LayerId{l});
      kept.is_in_host = parts.plan.is_in_host(LayerId{l}, m);
      for (const std::int64_t size_bytes : blocks)
        kept.blocks.push_back({.size_bytes = size_bytes});
    }
  }
}

ActivationCarrier::Kept* ActivationCarrier::find(LayerId layer, int micro_step) {
  const std::int32_t at =
      at_[static_cast<std::size_t>(index_of(layer) * parts_.plan.micro_step_count + micro_step)];
  return at < 0 ? nullptr : &kept_[static_cast<std::size_t>(at)];
}

void ActivationCarrier::begin_step() {
  CHECK_EQ(resident_bytes_, 0);
  for (const std::int64_t live_bytes : live_bytes_) CHECK_EQ(live_bytes, 0);
  places_.begin_step();
  next_ = 0;
  goes_backward_ = false;
  for (Kept& kept : kept_) {
    kept.is_wanted = kept.is_used = false;
    kept.whereabouts = Whereabouts::nowhere;
    kept.there.reset();
  }
}

void ActivationCarrier::change_resident(std::int64_t change_bytes) {
  resident_bytes_ += change_bytes;
  counts_.resident_peak_bytes = std::max(counts_.resident_peak_bytes, resident_bytes_);
  if (change_bytes >= 0) return;
  room_.set();
  if (goes_backward_) fetch_ahead();
}

void ActivationCarrier::hold(Kept& kept, ActivationTier tier, std::int64_t size_bytes) {
  std::int64_t& held_bytes = kept.held_bytes[index_of(tier)];
  change_live(tier, size_bytes - std::exchange(held_bytes, size_bytes));
}

void ActivationCarrier::change_live(ActivationTier tier, std::int64_t change_bytes) {
  if (change_bytes == 0) return;
  std::int64_t& live_bytes = live_bytes_[index_of(tier)];
  live_bytes += change_bytes;
  parts_.runtime.tell_activation_bytes(tier, live_bytes);
}

void ActivationCarrier::note_wait(ActivationWait why, LayerId layer, TimeNs from_ns) {
  counts_.layer_wait_ns[static_cast<std::size_t>(index_of(layer))][index_of(why)] +=
      parts_.runtime.tell_activation_wait(why, layer, from_ns);
}

TimeNs ActivationCarrier::Counts::wait_ns(ActivationWait why) const {
  TimeNs sum_ns = 0;
  for (const auto& waits : layer_wait_ns) sum_ns += waits[index_of(why)];
  return sum_ns;
}

// ---- after forward

runtime::Task<Status> ActivationCarrier::room(LayerId layer) {
  const TimeNs from_ns = parts_.runtime.now_ns();
  while (resident_bytes_ > parts_.plan.buffer_bytes) {
    Status status = co_await room_changes(layer);
    CO_RETURN_IF_ERROR(status);
  }
  note_wait(ActivationWait::room, layer, from_ns);
  co_return ok_status();
}

runtime::Event::Awaiter ActivationCarrier::room_changes(LayerId layer) {
  room_.reset();
  return room_.wait(waiting_for("activations to be written", layer));
}

void ActivationCarrier::leave(LayerId layer, int micro_step) {
  Kept* const kept = find(layer, micro_step);
  if (kept == nullptr) return change_live(here(), parts_.plan.layer_staying_bytes(layer));
  hold(*kept, here(), kept->size_bytes);
  change_resident(kept->size_bytes);
  kept->whereabouts = parts_.plan.stays ? Whereabouts::here : Whereabouts::leaving;
  if (parts_.plan.stays) return;
  leaving_.spawn(write(*kept));
}

runtime::Task<Status> ActivationCarrier::write(Kept& kept) {
  Result<runtime::Pool::Lease> turn = co_await turns_.acquire(
      waiting_for("activations of earlier layers to be written", kept.layer));
  CO_RETURN_IF_ERROR(turn);
  if (kept.is_wanted) {
    counts_.cancelled += 1;
    if (kept.whereabouts == Whereabouts::leaving) kept.whereabouts = Whereabouts::here;
    co_return ok_status();
  }
  kept.is_being_written = true;
  Status written = co_await write_blocks(kept);
  kept.is_being_written = false;
  CO_RETURN_IF_ERROR(written);
  // A value that was changed meanwhile may have been written as it was, or as it is.
  if (!kept.is_wanted) {
    Status released = release(kept);
    CO_RETURN_IF_ERROR(released);
  }
  end_write(kept);
  co_return ok_status();
}

Status ActivationCarrier::release(Kept& kept) {
  if (parts_.blocks == nullptr) return ok_status();
  if (!kept.is_in_host) return parts_.blocks->release(kept.layer, kept.micro_step);
  // A model that computes in host memory has them there already.
  return has_device() ? parts_.blocks->release_device(kept.layer, kept.micro_step) : ok_status();
}

runtime::Task<Status> ActivationCarrier::write_blocks(Kept& kept) {
  if (has_device()) {
    Status listed = list(kept);
    CO_RETURN_IF_ERROR(listed);
  }
  Status out = co_await cross(kept, Direction::read);
  CO_RETURN_IF_ERROR(out);
  hold(kept, ActivationTier::host, kept.size_bytes);
  if (kept.is_in_host) {
    counts_.host_bytes += kept.size_bytes;
    co_return ok_status();
  }
  const runtime::Operation summing =
      kernel(Stage::activation_sum, kept, [this, &kept] { return sum(kept); });
  Status summed = co_await summing;
  CO_RETURN_IF_ERROR(summed);
  for (Block& block : kept.blocks) block.place = places_.next(block.size_bytes);
  note_size(kept);
  counts_.written_bytes += kept.size_bytes;
  Status written = co_await move_blocks(kept, Direction::write);
  co_return written;
}

// The bytes that there are may be others than those that were planned with.
void ActivationCarrier::note_size(Kept& kept) {
  std::int64_t size_bytes = 0;
  for (const Block& block : kept.blocks) size_bytes += block.size_bytes;
  for (const ActivationTier tier : {ActivationTier::accelerator, ActivationTier::host}) {
    if (kept.held_bytes[index_of(tier)] > 0) hold(kept, tier, size_bytes);
  }
  change_resident(size_bytes - std::exchange(kept.size_bytes, size_bytes));
}

// Where in host memory a device's blocks go.
Status ActivationCarrier::list(Kept& kept) {
  ASSIGN_OR_RETURN(const std::span<const model::KeptBlock> blocks,
                   parts_.blocks->kept(kept.layer, kept.micro_step));
  take_blocks(kept, blocks);
  note_size(kept);
  return ok_status();
}

// Between host memory and the accelerators, each of which has an even part. Where the machine that
// is modelled has any, one that computes in host memory stands in for them: nothing is copied.
runtime::Task<Status> ActivationCarrier::cross(const Kept& kept, Direction direction) {
  const auto& routes = parts_.platform.accelerator_routes;
  const auto count = static_cast<std::int64_t>(routes.size());
  runtime::TaskGroup moves(parts_.runtime);
  for (std::int64_t a = 0; a < count; ++a) {
    runtime::Operation operation;
    operation.runtime = &parts_.runtime;
    operation.label.stage =
        direction == Direction::read ? Stage::activation_out : Stage::activation_in;
    operation.label.layer = kept.layer;
    operation.label.accelerator = static_cast<std::int32_t>(a);
    const std::int64_t first = kept.size_bytes * a / count;
    const model::BytePart part{first, kept.size_bytes * (a + 1) / count - first};
    operation.label.size_bytes = part.size_bytes;
    operation.cost.route = routes[static_cast<std::size_t>(a)];
    operation.cost.direction = direction;
    set_crossing_work(kept, direction, part, operation);
    moves.spawn(awaited(operation));
  }
  Status moved = co_await moves.join();
  co_return moved;
}

void ActivationCarrier::set_crossing_work(const Kept& kept, Direction direction,
                                          model::BytePart part,
                                          runtime::Operation& operation) const {
  if (!has_device()) return;
  operation.work.kind = runtime::WorkKind::external;
  operation.work.patience_ns = parts_.device_patience_ns;
  operation.work.start = [device = parts_.device, layer = kept.layer, m = kept.micro_step,
                          goes_out = direction == Direction::read,
                          part](runtime::Completion completion) {
    model::WhenDone done = [completion = std::move(completion)](Status ended) {
      completion.note(std::move(ended));
    };
    return goes_out ? device->blocks_out(layer, m, part, std::move(done))
                    : device->blocks_in(layer, m, part, std::move(done));
  };
}

runtime::Task<Status> ActivationCarrier::move_blocks(const Kept& kept, Direction direction) {
  runtime::TaskGroup moves(parts_.runtime);
  for (const Block& block : kept.blocks) moves.spawn(awaited(transfer(direction, kept, block)));
  Status moved = co_await moves.join();
  co_return moved;
}

void ActivationCarrier::end_write(Kept& kept) {
  if (kept.is_used) return drop(kept);
  if (kept.is_wanted) {
    kept.whereabouts = Whereabouts::here;
    return;
  }
  kept.whereabouts = Whereabouts::away;
  if (!kept.is_in_host) {
    hold(kept, ActivationTier::drives, kept.size_bytes);
    hold(kept, ActivationTier::host, 0);
  }
  hold(kept, ActivationTier::accelerator, 0);
  change_resident(-kept.size_bytes);
}

// ---- before backward, and after it

runtime::Task<Status> ActivationCarrier::bring_back(LayerId layer, int micro_step) {
  goes_backward_ = true;
  Kept* const kept = find(layer, micro_step);
  if (kept == nullptr) {
    fetch_ahead();
    co_return ok_status();
  }
  // Nothing that lies behind it is back yet, so what is in memory is on its way out.
  const TimeNs from_ns = parts_.runtime.now_ns();
  while (kept->whereabouts == Whereabouts::away && resident_bytes_ > parts_.plan.buffer_bytes) {
    Status has_room = co_await room_changes(layer);
    CO_RETURN_IF_ERROR(has_room);
  }
  note_wait(ActivationWait::room, layer, from_ns);
  if (next_ < kept_.size() && kept == &kept_[next_]) fetch_next();
  computing_bytes_ = kept->size_bytes;
  fetch_ahead();
  if (kept->whereabouts == Whereabouts::coming) {
    const TimeNs asked_ns = parts_.runtime.now_ns();
    Status there = co_await kept->there.wait(waiting_for("its activations", layer));
    CO_RETURN_IF_ERROR(there);
    note_wait(ActivationWait::block, layer, asked_ns);
  }
  co_return ok_status();
}

// Whatever is needed next, as far as the buffer goes.
void ActivationCarrier::fetch_ahead() {
  while (next_ < kept_.size()) {
    const Kept& kept = kept_[next_];
    const std::int64_t ahead_bytes = resident_bytes_ - computing_bytes_ + kept.size_bytes;
    const bool is_away = kept.whereabouts == Whereabouts::away;
    if (is_away && ahead_bytes > parts_.plan.buffer_bytes) return;
    fetch_next();
  }
}

void ActivationCarrier::fetch_next() {
  Kept& kept = kept_[next_++];
  if (kept.whereabouts == Whereabouts::here) return;
  if (kept.whereabouts == Whereabouts::leaving) {
    kept.is_wanted = true;
    counts_.forwarded += 1;
    return;
  }
  CHECK(kept.whereabouts == Whereabouts::away);
  kept.whereabouts = Whereabouts::coming;
  change_resident(kept.size_bytes);
  coming_.spawn(read(kept));
}

runtime::Task<Status> ActivationCarrier::read(Kept& kept) {
  if (!kept.is_in_host) {
    Status there = co_await read_blocks(kept);
    CO_RETURN_IF_ERROR(there);
  }
  Status in = co_await cross(kept, Direction::write);
  CO_RETURN_IF_ERROR(in);
  hold(kept, here(), kept.size_bytes);
  if (has_device()) {
    Status restored = parts_.blocks->restore(kept.layer, kept.micro_step);
    CO_RETURN_IF_ERROR(restored);
  }
  if (crosses()) hold(kept, ActivationTier::host, 0);
  kept.whereabouts = Whereabouts::here;
  kept.there.set();
  co_return ok_status();
}

// To host memory.
runtime::Task<Status> ActivationCarrier::read_blocks(Kept& kept) {
  Status room = make_room(kept);
  CO_RETURN_IF_ERROR(room);
  hold(kept, ActivationTier::host, kept.size_bytes);
  counts_.read_bytes += kept.size_bytes;
  Status moved = co_await move_blocks(kept, Direction::read);
  CO_RETURN_IF_ERROR(moved);
  const runtime::Operation checking =
      kernel(Stage::activation_check, kept, [this, &kept] { return check(kept); });
  Status checked = co_await checking;
  CO_RETURN_IF_ERROR(checked);
  hold(kept, ActivationTier::drives, 0);
  co_return ok_status();
}

void ActivationCarrier::done(LayerId layer, int micro_step) {
  Kept* const kept = find(layer, micro_step);
  if (kept == nullptr) return change_live(here(), -parts_.plan.layer_staying_bytes(layer));
  computing_bytes_ = 0;
  if (kept->is_being_written) {
    kept->is_used = true;
  } else {
    drop(*kept);
  }
}

void ActivationCarrier::drop(Kept& kept) {
  if (parts_.blocks != nullptr) parts_.blocks->forget(kept.layer, kept.micro_step);
  kept.whereabouts = Whereabouts::nowhere;
  for (std::size_t t = 0; t < stages::kActivationTierCount; ++t) {
    hold(kept, static_cast<ActivationTier>(t), 0);
  }
  change_resident(-kept.size_bytes);
}

runtime::Task<Status> ActivationCarrier::finish() {
  Status came = co_await coming_.join();
  Status left = co_await leaving_.join();
  co_return came.ok() ? left : came;
}

// ---- bytes

// Workers call sum() and check(); the blocks are theirs meanwhile.
Status ActivationCarrier::sum(Kept& kept) {
  if (!has_device()) {
    ASSIGN_OR_RETURN(const std::span<const model::KeptBlock> blocks,
                     parts_.blocks->kept(kept.layer, kept.micro_step));
    take_blocks(kept, blocks);
  }
  for (Block& block : kept.blocks) {
    block.checksum = state::checksum(bytes_of(block.data, block.size_bytes));
  }
  return ok_status();
}

void ActivationCarrier::take_blocks(Kept& kept, std::span<const model::KeptBlock> blocks) {
  kept.blocks.resize(blocks.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    kept.blocks[i].data = blocks[i].data;
    kept.blocks[i].size_bytes = blocks[i].size_bytes;
  }
}

Status ActivationCarrier::make_room(Kept& kept) {
  if (parts_.blocks == nullptr) return ok_status();
  ASSIGN_OR_RETURN(const std::span<const model::KeptBlock> blocks,
                   parts_.blocks->make_room(kept.layer, kept.micro_step));
  take_blocks(kept, blocks);
  return ok_status();
}

Status ActivationCarrier::check(Kept& kept) {
  for (const Block& block : kept.blocks) {
    if (state::checksum(bytes_of(block.data, block.size_bytes)) == block.checksum) continue;
    const io::File* file =
        parts_.drives[block.place.device]->files().find(stages::DriveFile::activations);
    return make_error(ErrorCode::corrupt,
                      "{}: the {} bytes at offset {} of {} are not what was written there",
                      text_of(kept), block.size_bytes, block.place.offset_bytes, file->path());
  }
  return has_device() ? ok_status() : parts_.blocks->restore(kept.layer, kept.micro_step);
}

std::string ActivationCarrier::text_of(const Kept& kept) const {
  return fmt::format("the activations of layer {} ({}), micro-batch {}", index_of(kept.layer),
                     parts_.layout.layer(kept.layer).name, kept.micro_step);
}

runtime::Operation ActivationCarrier::kernel(Stage stage, const Kept& kept,
                                             const runtime::InlineFunction& work) {
  const platform::EngineId host = parts_.platform.host_engine;
  runtime::Operation operation;
  operation.runtime = &parts_.runtime;
  operation.label.stage = stage;
  operation.label.layer = kept.layer;
  operation.cost = checksum_cost(host, parts_.platform.engine(host), kept.size_bytes);
  if (parts_.blocks == nullptr) return operation;
  operation.work.kind = runtime::WorkKind::function;
  operation.work.function = work;
  return operation;
}

runtime::Operation ActivationCarrier::transfer(Direction direction, const Kept& kept,
                                               const Block& block) const {
  const csd::Drive& drive = *parts_.drives[block.place.device];
  csd::HostTransfer moved{
      .offset_bytes = block.place.offset_bytes, .bytes = {}, .size_bytes = block.size_bytes};
  if (block.data != nullptr) {
    moved.bytes = {block.data, static_cast<std::size_t>(round_up(block.size_bytes, kPageBytes))};
  }
  return direction == Direction::write
             ? drive.host_write({.stage = Stage::activation_write, .layer = kept.layer}, moved)
             : drive.host_read({.stage = Stage::activation_read, .layer = kept.layer}, moved);
}

}  // namespace sluice::activation
