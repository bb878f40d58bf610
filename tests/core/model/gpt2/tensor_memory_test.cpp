// Large tensors leave no holes: what they take is bounded by what was in use at once.

#include "core/model/torch/tensor_memory.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <catch2/catch.hpp>
#include <vector>

#include "base/split_mix.h"

namespace sluice::model {
namespace {

at::Tensor bytes(std::int64_t size) { return at::empty({size}, at::kByte); }

void check_bound() {
  const TensorMemoryUse use = tensor_memory_use();
  CHECK(use.in_use_bytes + use.waiting_bytes <= use.peak_in_use_bytes + kSpareBytes);
}

TEST_CASE("tensors of any sizes in any order take no more than was in use at once") {
  use_tensor_memory();
  const std::int64_t before = tensor_memory_use().in_use_bytes;
  std::vector<at::Tensor> kept(40);
  for (std::uint64_t i = 0; i < 4000; ++i) {
    const auto which = static_cast<std::size_t>(split_mix(1, i) % kept.size());
    const auto pages = static_cast<std::int64_t>(split_mix(2, i) % 1000);
    kept[which] = at::Tensor();
    kept[which] = bytes(pages * 4096 + 1);
    check_bound();
  }
  kept.clear();
  CHECK(tensor_memory_use().in_use_bytes == before);
  check_bound();
}

TEST_CASE("a tensor lies where the last of its size lay") {
  use_tensor_memory();
  const void* first = bytes(kLargeTensorBytes).data_ptr();
  const at::Tensor other = bytes(3 * kLargeTensorBytes);
  CHECK(bytes(kLargeTensorBytes).data_ptr() == first);
}

TEST_CASE("large and small tensors keep their values") {
  use_tensor_memory();
  std::vector<at::Tensor> tensors;
  for (std::int64_t i = 0; i < 64; ++i) {
    tensors.push_back(at::full({i * (kLargeTensorBytes / 32) + 1}, i, at::kLong));
  }
  for (std::int64_t i = 0; i < 64; ++i) {
    const at::Tensor& tensor = tensors[static_cast<std::size_t>(i)];
    CHECK(tensor.min().item<std::int64_t>() == i);
    CHECK(tensor.max().item<std::int64_t>() == i);
  }
}

TEST_CASE("memory that the system does not have is an exception that the border knows") {
  use_tensor_memory();
  CHECK_THROWS_AS(bytes(std::int64_t{1} << 60), std::bad_alloc);
  check_bound();
}

}  // namespace
}  // namespace sluice::model
