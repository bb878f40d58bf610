#pragma once
// Parameters that a model computes with: their number format, and a stretch of memory that holds
// some of them. In 16 bits they are a rounded copy of the fp32 master weights; in fp32 they are the
// master weights.
//
// Thread contract: plain values; what a span points to has its owner's.

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice {

enum class Float16Kind : std::uint8_t { bf16, fp16 };  // converted in base/float16.h
enum class ParameterKind : std::uint8_t { bf16, fp16, fp32 };

constexpr std::int64_t bytes_of(ParameterKind kind) { return kind == ParameterKind::fp32 ? 4 : 2; }
// Whether they are a copy that the update rounds to 16 bits.
constexpr bool has_16_bits(ParameterKind kind) { return kind != ParameterKind::fp32; }
Float16Kind float16_kind(ParameterKind kind);  // of one that has 16 bits
constexpr ParameterKind parameter_kind(Float16Kind kind) {
  return kind == Float16Kind::bf16 ? ParameterKind::bf16 : ParameterKind::fp16;
}

// Where there is no payload a span has a size and no memory, or is empty.
class ParameterSpan {
 public:
  ParameterSpan() = default;
  ParameterSpan(std::byte* data, std::int64_t size, ParameterKind kind)
      : data_(data), size_(size), kind_(kind) {}
  ParameterSpan(std::span<std::uint16_t> values, Float16Kind kind)
      : ParameterSpan(reinterpret_cast<std::byte*>(values.data()), std::ssize(values),
                      parameter_kind(kind)) {}
  explicit ParameterSpan(std::span<float> values)
      : ParameterSpan(reinterpret_cast<std::byte*>(values.data()), std::ssize(values),
                      ParameterKind::fp32) {}

  ParameterKind kind() const { return kind_; }
  std::int64_t size() const { return size_; }  // elements
  std::int64_t size_bytes() const { return size_ * bytes_of(kind_); }
  bool has_memory() const { return data_ != nullptr; }
  std::byte* data() const { return data_; }
  std::span<std::byte> bytes() const { return {data_, static_cast<std::size_t>(size_bytes())}; }

  ParameterSpan subspan(std::int64_t first, std::int64_t count) const;
  // The same memory as numbers of the kind that it has.
  std::span<std::uint16_t> values_16bit() const;
  std::span<float> values_fp32() const;

 private:
  std::byte* data_ = nullptr;
  std::int64_t size_ = 0;
  ParameterKind kind_ = ParameterKind::bf16;
};

}  // namespace sluice
