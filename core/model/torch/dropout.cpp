#include "core/model/torch/dropout.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full_like.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/split_mix.h"
#include "core/model/torch/kept_drop.h"

namespace sluice::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// A value stays where its number is at least the dropped share of 2^31. The number is mixed from
// its index and two numbers of window and place, by the finalizer of MurmurHash3 (Appleby); the
// second comes in half way, since streams that the first alone tells apart are parts of one.
constexpr std::uint32_t kIndexStep = 0x9e3779b1u;
constexpr std::uint32_t kMixFirst = 0x85ebca6bu;
constexpr std::uint32_t kMixSecond = 0xc2b2ae35u;
constexpr std::uint32_t kNumberBits = 0x7fffffffu;

std::uint32_t mixed(std::uint32_t h, std::uint32_t between) {
  h = ((h ^ (h >> 16)) * kMixFirst) ^ between;
  h = (h ^ (h >> 13)) * kMixSecond;
  return h ^ (h >> 16);
}

// The two numbers of a place, which a window's key is mixed with.
struct PlaceNumbers {
  explicit PlaceNumbers(const DropPlace& place) {
    const std::uint64_t bits =
        mix64(static_cast<std::uint64_t>(place.layer) * 256 + place.in_layer + 1);
    first = static_cast<std::uint32_t>(bits);
    second = static_cast<std::uint32_t>(bits >> 32);
  }
  std::uint32_t first = 0;
  std::uint32_t second = 0;
};

std::int32_t least_that_stays(double share) {
  return static_cast<std::int32_t>(std::ceil(share * 0x1p31));
}

at::Tensor stays_in_host_memory(const at::Tensor& keys, const DropRange& range,
                                const DropPlace& place) {
  const PlaceNumbers numbers(place);
  const std::int32_t least = least_that_stays(place.share);
  const at::Tensor stays = at::empty({range.windows, range.count}, at::kBool);
  bool* into = stays.mutable_data_ptr<bool>();
  const std::int64_t* const key = keys.const_data_ptr<std::int64_t>() + range.first_window;
  for (std::int64_t w = 0; w < range.windows; ++w, into += range.count) {
    const auto window = static_cast<std::uint32_t>(key[w]);
    const std::uint32_t add = mixed(window, numbers.first);
    const std::uint32_t between = mixed(window, numbers.second);
    const auto first = static_cast<std::uint32_t>(range.first);
    for (std::int64_t i = 0; i < range.count; ++i) {
      const std::uint32_t index = first + static_cast<std::uint32_t>(i);
      const std::uint32_t number = mixed(index * kIndexStep + add, between);
      into[i] = static_cast<std::int32_t>(number & kNumberBits) >= least;
    }
  }
  return stays;
}

// ---- by operations of libtorch, whose 32-bit integers wrap around

at::Scalar wrapped(std::uint32_t number) { return std::bit_cast<std::int32_t>(number); }

void fold_(const at::Tensor& h, int bits) {
  const std::uint32_t without_sign = std::numeric_limits<std::uint32_t>::max() >> bits;
  h.bitwise_xor_(h.__rshift__(bits).bitwise_and_(wrapped(without_sign)));
}

at::Tensor mixed_(at::Tensor h, const at::Tensor& between) {
  fold_(h, 16);
  h.mul_(wrapped(kMixFirst)).bitwise_xor_(between);
  fold_(h, 13);
  h.mul_(wrapped(kMixSecond));
  fold_(h, 16);
  return h;
}

at::Tensor mixed_with(const at::Tensor& window, std::uint32_t between) {
  return mixed_(window.clone(), at::full_like(window, wrapped(between)));
}

// ---- rows

at::Tensor dropped(const at::Tensor& rows, const KeptDrop& drop) {
  const std::int64_t windows = drop.keys.size(0);
  const at::Tensor stays =
      Dropout(drop.keys).stays({0, windows, 0, rows.numel() / windows}, drop.place);
  return (rows * stays.view(rows.sizes())).mul_(1 / (1 - drop.place.share));
}

struct Dropped : torch::autograd::Function<Dropped> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& rows,
                            const KeptDrop& drop) {
    drop.keep(context);
    return dropped(rows, drop);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {dropped(gradients[0], KeptDrop::kept_in(context)), {}};
  }
};

}  // namespace

at::Tensor Dropout::of_rows(const at::Tensor& rows, const DropPlace& place) const {
  return drops(place) ? Dropped::apply(rows, KeptDrop{keys_, place}) : rows;
}

at::Tensor Dropout::stays(const DropRange& range, const DropPlace& place) const {
  if (keys_.is_cpu()) return stays_in_host_memory(keys_, range, place);
  return stays_by_tensors(range, place);
}

at::Tensor Dropout::stays_by_tensors(const DropRange& range, const DropPlace& place) const {
  const PlaceNumbers numbers(place);
  const at::Tensor window =
      keys_.narrow(0, range.first_window, range.windows).to(at::kInt).unsqueeze(1);
  const at::Tensor index = at::arange(range.count, window.options())
                               .add_(wrapped(static_cast<std::uint32_t>(range.first)))
                               .mul_(wrapped(kIndexStep));
  const at::Tensor number =
      mixed_(index + mixed_with(window, numbers.first), mixed_with(window, numbers.second));
  return number.bitwise_and_(wrapped(kNumberBits)).ge(least_that_stays(place.share));
}

}  // namespace sluice::model
