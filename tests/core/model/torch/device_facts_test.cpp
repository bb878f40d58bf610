// What is known of devices without one: whether a name is there, what libtorch takes for itself,
// and what is said where memory is out.

#include <c10/util/Exception.h>

#include <catch2/catch.hpp>
#include <numeric>

#include "core/model/torch/devices.h"
#include "core/model/torch/head_loss.h"
#include "core/model/torch/torch_border.h"
#include "core/model/torch/torch_device.h"

namespace sluice::model {
namespace {

using Catch::Contains;

std::int64_t total(const MemoryItems& items) {
  return std::accumulate(
      items.begin(), items.end(), std::int64_t{0},
      [](std::int64_t sum, const MemoryItem& item) { return sum + item.size_bytes; });
}

TEST_CASE("a GPU that is not there is refused with those that are") {
  const auto said = [](int index, int count) {
    const Status status = check_is_there({DeviceKind::cuda, index}, count);
    CHECK(status.error().code() == ErrorCode::not_found);
    return status.error().message();
  };
  CHECK(check_is_there({DeviceKind::cuda, 1}, 2).ok());
  CHECK(said(7, 1) == "device = \"cuda:7\": there is cuda:0 alone here; name that one");
  CHECK(said(7, 4) == "device = \"cuda:7\": there is cuda:0 to cuda:3 here; name one of them");
  CHECK_THAT(said(0, 0), Contains("no GPU that libtorch can use") && Contains("driver"));
}

TEST_CASE("the plan of a GPU has what libtorch takes for itself, that of another device has not") {
  const ModelShape shape{"small", 3, 64, 4, 32, 256};
  const ModelOptions options{.batch = 4, .sequence = 32};
  const DeviceOwnMemory own = own_memory_of(at::Device("cuda:0"));
  CHECK(own.workspace_bytes >= std::int64_t{2} * 32 << 20);  // two threads multiply
  CHECK(own.segment_bytes >= std::int64_t{3} * 20 << 20);    // three streams
  CHECK(own_memory_of(at::Device("cpu")).workspace_bytes == 0);
  const auto planned = [&](const char* device) {
    return total(torch_device_memory(shape, options, at::Device(device)));
  };
  CHECK(planned("cuda:0") >= own.workspace_bytes + own.segment_bytes);
  // The software accelerator may have pieces of widened products besides.
  CHECK(planned("cuda:0") <= own.workspace_bytes + own.segment_bytes + planned("privateuseone:0"));
  CHECK(library_bytes_of(at::Device("cuda:0")) > std::int64_t{1} << 30);
  CHECK(library_bytes_of(at::Device("privateuseone:0")) == 0);
}

TEST_CASE("pieces of the loss are bounded where they are launched, and small where not") {
  CHECK(launched_piece_bytes(1024, 50257, at::Device("cpu")) == 0);
  CHECK(launched_piece_bytes(1024, 50257, at::Device("cuda:0")) == std::int64_t{128} << 20);
  CHECK(launched_piece_bytes(32, 256, at::Device("cuda:0")) == 32 * 256 * 16);
}

// As libtorch says it of a GPU (2.11).
TEST_CASE("a device without memory left fails the run, which says what to give it") {
  const auto failing = []() -> Status {
    TORCH_CHECK_WITH(OutOfMemoryError, false,
                     "CUDA out of memory. Tried to allocate 32.00 MiB. 107.00 MiB allowed; 52.00 "
                     "MiB is allocated. If reserved but unallocated memory is large try setting "
                     "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
    return ok_status();
  };
  const Status status = at_torch_border("backward of layer h.3", failing);
  REQUIRE(!status.ok());
  CHECK(status.error().code() == ErrorCode::internal);
  CHECK_THAT(status.error().message(),
             Contains("backward of layer h.3") && Contains("accelerator_memory") &&
                 Contains("Tried to allocate 32.00 MiB") && !Contains("PYTORCH_CUDA_ALLOC_CONF"));
}

}  // namespace
}  // namespace sluice::model
