#pragma once
// Steps of a model through the seam of a compute device, in the order and with the overlap that the
// schedule has: a layer's parameters come while the layer before is computed, and its gradients
// leave while the next one is.
//
// Thread contract: one thread.

#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/model/library/models.h"
#include "tests/core/model/gpt2/batches.h"

namespace sluice::model {

// Work that was started; its end can be waited for once.
class Started {
 public:
  Started() = default;
  explicit Started(const std::function<Status(WhenDone)>& start);
  // How it ended, or why it could not be started. Fails the test after a minute.
  Status wait();

 private:
  std::shared_ptr<std::promise<Status>> ended_;
  Status refused_;
};

struct StepNumbers {
  std::vector<double> losses;
  std::vector<std::byte> gradients;  // as they come, all layers in flat order
  friend bool operator==(const StepNumbers&, const StepNumbers&) = default;
};

class DeviceStep {
 public:
  DeviceStep(const ModelShape& shape, const ModelOptions& options, const ModelFactory& factory,
             double weight_scale = 1);

  Result<StepNumbers> run(const std::vector<Batch>& micro_batches, double gradient_scale);
  // What layers keep leaves the device after their forward and is back before their backward,
  // through a file of the host's; and the bytes that left, so far.
  void move_blocks() { moves_blocks_ = true; }
  std::int64_t moved_bytes() const { return moved_bytes_; }
  ComputeDevice& device() { return *built_.device; }
  TrainableModel& model() { return *built_.model; }
  // Nothing of it is under way then, as far as the device holds to that.
  void give_up_device() { built_.device.reset(); }

 private:
  Status forward(int micro_step_count);
  Status backward(int micro_step_count, double gradient_scale, std::vector<std::byte>& gradients);
  Started bring(LayerId layer);
  Status leave(LayerId layer, int micro_step);
  Status come_back(LayerId layer, int micro_step);
  // In two parts, of which the first ends within a block.
  Status cross(LayerId layer, int micro_step, std::int64_t size_bytes, bool goes_out);

  ModelShape shape_;
  ModelOptions options_;
  io::PinnedBuffer parameters_;
  std::vector<io::PinnedBuffer> layer_gradients_;
  BuiltModel built_;
  bool moves_blocks_ = false;
  std::int64_t moved_bytes_ = 0;
  std::map<std::pair<LayerId, int>, std::vector<std::byte>> away_;
  std::map<std::pair<LayerId, int>, std::int64_t> in_host_bytes_;
};

// The same by the model in host memory.
StepNumbers step_in_host_memory(const ModelShape& shape, const ModelOptions& options,
                                const std::vector<Batch>& micro_batches, double gradient_scale,
                                double weight_scale = 1);

// The software accelerator with the settings, opened the first time; its counters begin anew.
ModelFactory soft_factory(const std::string& settings, std::int64_t cap_bytes = 0);
// Around each launch of the software accelerator from now on; empty: none.
void set_soft_region(const LaunchRegion& region);
// What its memory holds now, of earlier steps' threads too.
std::int64_t soft_used_bytes();
// What it has kept of mistakes, and forgets with that; empty: none.
std::string kept_error();

}  // namespace sluice::model
