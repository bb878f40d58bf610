#include "bench/optimizer/touch_streams.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/optimizer/touch_streams.cpp"
#include "hwy/foreach_target.h"
// The order matters: what follows is compiled once for each target.
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::bench {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void touch_for_target(const optimizer::UpdateArrays& arrays) {
  const hn::ScalableTag<std::uint32_t> d;
  const hn::Rebind<std::uint16_t, decltype(d)> d_half;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto* weights = reinterpret_cast<std::uint32_t*>(arrays.state[0]);
  auto* exp_avg = reinterpret_cast<std::uint32_t*>(arrays.state[1]);
  auto* exp_avg_sq = reinterpret_cast<std::uint32_t*>(arrays.state[2]);
  const auto* gradient = static_cast<const std::uint32_t*>(arrays.gradient);
  std::uint16_t* const parameters = arrays.parameters;
  const std::int64_t count = arrays.element_count;
  // Flips the lowest bit or not, as the gradient's says: the floats stay what they were.
  const auto one = hn::Set(d, 1u);
  for (std::int64_t i = 0; i + lanes <= count; i += lanes) {
    const auto flip = hn::And(hn::LoadU(d, gradient + i), one);
    const auto p = hn::Xor(hn::LoadU(d, weights + i), flip);
    hn::StoreU(hn::Xor(hn::LoadU(d, exp_avg + i), flip), d, exp_avg + i);
    hn::StoreU(hn::Xor(hn::LoadU(d, exp_avg_sq + i), flip), d, exp_avg_sq + i);
    hn::StoreU(p, d, weights + i);
    const auto upper = hn::BitCast(hn::RebindToSigned<decltype(d)>(), hn::ShiftRight<16>(p));
    hn::Stream(hn::DemoteTo(d_half, upper), d_half, parameters + i);
  }
  hwy::FlushStream();
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::bench {

HWY_EXPORT(touch_for_target);

void touch_streams(const optimizer::UpdateArrays& arrays) {
  HWY_DYNAMIC_DISPATCH(touch_for_target)(arrays);
}

}  // namespace sluice::bench
#endif
