#pragma once
// The compute units of a loaded xclbin: a thread each, which takes the oldest run that may go to
// it, calls the kernel and hands the outcome to Completions.
//
// Thread contract: any thread. The destructor waits for kernels that run; whatever has not begun,
// or hangs, is told as aborted. Errors: config for a unit or a register that is not there.

#include <bitset>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "hls/link/soft_bitstream.h"
#include "soft/smartssd/completions.h"
#include "soft/smartssd/rates.h"
#include "soft/smartssd/settings.h"

namespace sluice::soft_smartssd {

// One start of a unit.
struct Run {
  std::shared_ptr<Buffer> packet;  // null: the host wrote the unit's registers
  std::vector<std::uint32_t> registers;
  std::bitset<hls_link::kUnitsMax> eligible;
  std::uint64_t number = 0;  // of the device, 1-based
  // The draw of the run's number from the seed: where memory breaks, how late its notice is.
  std::uint64_t random = 0;
  bool hangs = false;
  bool breaks_memory = false;
};

class ComputeUnits {
 public:
  // `rates`, `memory` and `completions` outlive this.
  ComputeUnits(hls_link::SoftBitstream bitstream, std::vector<hls_link::ComputeUnit> units,
               const Settings& settings, const Rates& rates, DeviceMemory& memory,
               Completions& completions);
  ~ComputeUnits();
  ComputeUnits(const ComputeUnits&) = delete;
  ComputeUnits& operator=(const ComputeUnits&) = delete;

  int count() const { return static_cast<int>(units_.size()); }
  void start(Run run);
  // A run that has not begun, or hangs, ends as aborted; another ends by itself.
  void abort(const Buffer* packet);

  // AXI4-Lite, as xrt::ip reaches it. Reading the control register clears its done bit.
  Result<std::uint32_t> read_register(int unit, std::uint32_t offset_bytes);
  // True: this write started the unit; the caller calls start() with run_of_registers().
  Result<bool> write_register(int unit, std::uint32_t offset_bytes, std::uint32_t value);
  Run run_of_registers(int unit);

 private:
  struct Unit {
    std::string name;
    const SluiceSoftKernel* kernel = nullptr;
    std::vector<std::uint32_t> registers;
    const Buffer* packet = nullptr;  // of the run that is on it
    bool is_busy = false;
    bool is_done = false;
    std::thread thread;
  };

  void serve(int unit);
  bool take(int unit, Run& run);  // false: it is over
  void let_go(int unit);
  void execute(const Unit& unit, const Run& run);
  void hang(const Run& run);
  ert_cmd_state call_kernel(const Unit& unit, const Run& run);
  ert_cmd_state check_buffers(const Unit& unit, const Run& run);
  void wait_for_model_time(const Unit& unit, const Run& run, SteadyTime begin);
  void tell(const Run& run, ert_cmd_state state);

  const hls_link::SoftBitstream bitstream_;
  const Settings settings_;
  const Rates& rates_;
  DeviceMemory& memory_;
  Completions& completions_;

  Mutex mutex_;
  CondVar changed_;
  std::deque<Run> waiting_ GUARDED_BY(mutex_);
  std::vector<const Buffer*> aborted_ GUARDED_BY(mutex_);  // of hung runs
  bool is_ending_ GUARDED_BY(mutex_) = false;
  std::vector<Unit> units_;  // the list is fixed; registers and flags are guarded
};

// One line on stderr, which says whose it is.
void log_soft_device(std::string_view message);

}  // namespace sluice::soft_smartssd
