#include "soft/accelerator/accelerator.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <array>
#include <cstdlib>
#include <fstream>

namespace sluice::soft_accelerator {
namespace {

std::atomic<bool> opened{false};

}  // namespace

Accelerator& Accelerator::instance() {
  static auto* const accelerator = new Accelerator;
  return *accelerator;
}

bool Accelerator::is_open() { return opened; }

void Accelerator::open(const Settings& settings) {
  {
    const Lock lock(mutex_);
    TORCH_CHECK(devices_.empty(), "software accelerator: it is open already");
    for (int i = 0; i < settings.devices; ++i)
      devices_.push_back(std::make_unique<Device>(settings.cap_bytes));
    use_settings(settings);
    for (int i = 0; i < settings.devices; ++i)
      for (int stream = 0; stream < 3; ++stream) add_stream(i);
  }
  opened = true;
  // A thread that is in a kernel when the process ends would see libtorch's globals go.
  std::atexit([] { instance().stop(); });
}

void Accelerator::use_settings(const Settings& settings) {
  const int devices = static_cast<int>(devices_.size());
  settings_ = settings;
  settings_.devices = devices;
  threads_ = settings.threads > 0 ? settings.threads : at::get_num_threads();
  errors_.clear();
  blocking_jobs_.clear();
  common_.outputs = common_.moved_outputs = common_.blocking_jobs = 0;
  for (const auto& device : devices_) {
    device->cap_bytes = settings.cap_bytes;
    device->peak_bytes = device->used_bytes;
    device->allocations = device->jobs = device->copies = 0;
    device->is_lost = false;
    device->counted = {};
  }
  for (const auto& stream : streams_) stream->job_count = 0;
}

void Accelerator::reset(const Settings& settings) {
  Lock lock(mutex_);
  ++stuck_epoch_;
  for (const auto& stream : streams_) stream->work.notify_all();
  for (const auto& stream : streams_) {
    finished_.wait(lock, [&] { return stream->done == stream->enqueued; });
    host_.raise(stream->last_job());
  }
  use_settings(settings);
}

void Accelerator::stop() {
  {
    const Lock lock(mutex_);
    is_stopping_ = true;
    for (const auto& stream : streams_) stream->work.notify_all();
    finished_.notify_all();
  }
  for (const auto& stream : streams_)
    if (stream->thread.joinable()) stream->thread.join();
  write_counters();
}

// Nobody is left to tell that it cannot be written; whoever asked for the file sees it missing.
void Accelerator::write_counters() {
  if (settings_.counters_path.empty()) return;
  const SluiceSoftAcceleratorCounters counted = counters(0);
  std::ofstream file(settings_.counters_path);
  file << "in_bytes=" << counted.in_bytes << "\nin_copies=" << counted.in_copies
       << "\nout_bytes=" << counted.out_bytes << "\nout_copies=" << counted.out_copies
       << "\njobs=" << counted.jobs << "\n";
}

Accelerator::Device& Accelerator::device_at(int device) {
  TORCH_CHECK(device >= 0 && device < device_count(), "software accelerator: there is no device ",
              device, ", but ", device_count(), " of them");
  return *devices_[static_cast<std::size_t>(device)];
}

Stream& Accelerator::stream_at(int device, std::int64_t stream_id) {
  const auto found = device_at(device).streams.find(stream_id);
  TORCH_CHECK(found != device_at(device).streams.end(), "software accelerator: soft:", device,
              " has no stream ", stream_id);
  return *found->second;
}

void Accelerator::check_alive(int device) const {
  TORCH_CHECK(!devices_[static_cast<std::size_t>(device)]->is_lost,
              "software accelerator: device soft:", device, " is lost");
}

Stream& Accelerator::add_stream(int device) {
  static constexpr std::array<const char*, 3> kNames = {"compute", "in", "out"};
  Device& owner = device_at(device);
  auto made = std::make_unique<Stream>();
  Stream& stream = *made;
  stream.index = static_cast<int>(streams_.size());
  stream.device = device;
  stream.id = owner.next_stream_id++;
  const auto id = static_cast<std::size_t>(stream.id);
  stream.name = id < kNames.size() ? kNames[id] : "stream " + std::to_string(id);
  streams_.push_back(std::move(made));
  owner.streams[stream.id] = &stream;
  stream.thread = std::thread([this, &stream] { work(stream); });
  return stream;
}

void Accelerator::keep(std::string error) { errors_.push_back(std::move(error)); }

void Accelerator::throw_kept(int device) {
  check_alive(device);
  if (errors_.empty()) return;
  const std::string error = std::move(errors_.front());
  errors_.pop_front();
  TORCH_CHECK(false, error);
}

}  // namespace sluice::soft_accelerator
