#include "base/parameter_span.h"

#include "base/check.h"

namespace sluice {

Float16Kind float16_kind(ParameterKind kind) {
  CHECK(has_16_bits(kind));
  return kind == ParameterKind::bf16 ? Float16Kind::bf16 : Float16Kind::fp16;
}

ParameterSpan ParameterSpan::subspan(std::int64_t first, std::int64_t count) const {
  CHECK_GE(first, 0);
  CHECK_LE(first + count, size_);
  return {has_memory() ? data_ + first * bytes_of(kind_) : nullptr, count, kind_};
}

std::span<std::uint16_t> ParameterSpan::values_16bit() const {
  CHECK(has_16_bits(kind_));
  return {reinterpret_cast<std::uint16_t*>(data_), static_cast<std::size_t>(size_)};
}

std::span<float> ParameterSpan::values_fp32() const {
  CHECK(!has_16_bits(kind_));
  return {reinterpret_cast<float*>(data_), static_cast<std::size_t>(size_)};
}

}  // namespace sluice
