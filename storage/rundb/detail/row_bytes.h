#pragma once
// Rows as bytes, column by column as their tables declare them (storage/rundb/detail/tables.h): an
// integer as the difference from the row before, in as few bytes as it needs; a real number as its
// eight bytes; a text behind its length. docs/following.md describes them.
//
// Thread contract: free functions and plain owners.

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "storage/rundb/detail/row_bounds.h"
#include "storage/rundb/detail/tables.h"

namespace sluice::rundb::detail {

inline void put_number(std::string& bytes, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(number | 0x80);
  bytes += static_cast<char>(number);
}

// Small ones, whatever their sign, are short.
constexpr std::uint64_t folded(std::uint64_t difference) {
  return difference << 1 ^ (difference >> 63 == 0 ? 0 : ~std::uint64_t{0});
}
constexpr std::uint64_t unfolded(std::uint64_t number) {
  return number >> 1 ^ ((number & 1) == 0 ? 0 : ~std::uint64_t{0});
}

inline void put_real(std::string& bytes, double value) {
  if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(bits >> shift);
}

template <typename Row>
class RowEncoder {
 public:
  void add(const Row& row, std::string& bytes) {
    std::size_t at = 0;
    std::apply([&](const auto&... columns) { (put(columns, row, at++, bytes), ...); },
               kTable<Row>.columns);
  }

 private:
  template <typename Column>
  void put(const Column& column, const Row& row, std::size_t at, std::string& bytes) {
    if constexpr (Column::kSqlType == SqlType::integer) {
      auto value = static_cast<std::int64_t>(row.*column.member);
      if (Column::kIsNullable && value < 0) value = -1;
      const auto number = static_cast<std::uint64_t>(value);
      put_number(bytes, folded(number - before_[at]));
      before_[at] = number;
    } else if constexpr (Column::kSqlType == SqlType::real) {
      put_real(bytes, row.*column.member);
    } else {
      std::string_view text;
      if constexpr (std::is_same_v<decltype(column.stored(row)), std::optional<std::string_view>>) {
        text = column.stored(row).value_or("");
      } else {
        text = column.stored(row);
      }
      put_number(bytes, text.size());
      bytes += text;
    }
  }

  std::array<std::uint64_t, static_cast<std::size_t>(kTable<Row>.kColumnCount)> before_ = {};
};

// What a column takes a value from, as from a statement.
struct ReadCell {
  std::int64_t integer = 0;
  double real = 0;
  std::string text = {};
  bool is_none = false;

  bool is_null(int /*at*/) const { return is_none; }
  std::int64_t int64_at(int /*at*/) const { return is_none ? 0 : integer; }
  double double_at(int /*at*/) const { return real; }
  const std::string& text_at(int /*at*/) const { return text; }
};

class ByteSource {
 public:
  explicit ByteSource(std::string_view bytes) : bytes_(bytes) {}
  bool is_empty() const { return at_ == bytes_.size(); }

  // Each false: the bytes end before, or the number has more than 64 bits.
  bool take_number(std::uint64_t& number) {
    number = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (is_empty()) return false;
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      if (shift == 63 && byte > 1) return false;
      number |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool take_real(double& value) {
    if (bytes_.size() - at_ < 8) return false;
    std::uint64_t bits = 0;
    for (int shift = 0; shift < 64; shift += 8)
      bits |= std::uint64_t{static_cast<unsigned char>(bytes_[at_++])} << shift;
    value = std::bit_cast<double>(bits);
    return true;
  }
  bool take_text(std::string& text) {
    std::uint64_t size = 0;
    if (!take_number(size) || size > bytes_.size() - at_) return false;
    text = bytes_.substr(at_, static_cast<std::size_t>(size));
    at_ += static_cast<std::size_t>(size);
    return true;
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

template <typename Row>
class RowDecoder {
 public:
  // False: no such row.
  bool take(ByteSource& source, Row& row) {
    std::size_t at = 0;
    const auto take_all = [&](const auto&... columns) {
      return (take_column(columns, source, row, at++) && ...);
    };
    return std::apply(take_all, kTable<Row>.columns) && is_within_bounds(row);
  }

 private:
  template <typename Column>
  bool take_column(const Column& column, ByteSource& source, Row& row, std::size_t at) {
    if constexpr (Column::kSqlType == SqlType::integer) {
      std::uint64_t number = 0;
      if (!source.take_number(number)) return false;
      before_[at] += unfolded(number);
      cell_.integer = static_cast<std::int64_t>(before_[at]);
      cell_.is_none = Column::kIsNullable && cell_.integer == -1;
      column.take(row, cell_, 0);
      return static_cast<std::int64_t>(row.*column.member) == cell_.integer;  // it fits
    } else if constexpr (Column::kSqlType == SqlType::real) {
      if (!source.take_real(cell_.real)) return false;
      column.take(row, cell_, 0);
      return Column::kIsNullable || !std::isnan(cell_.real);
    } else {
      if (!source.take_text(cell_.text)) return false;
      column.take(row, cell_, 0);
      return is_stored_as(column.stored(row), cell_.text);
    }
  }
  static bool is_stored_as(std::string_view stored, std::string_view text) {
    return stored == text;
  }
  static bool is_stored_as(std::optional<std::string_view> stored, std::string_view text) {
    return stored.value_or("") == text;
  }

  std::array<std::uint64_t, static_cast<std::size_t>(kTable<Row>.kColumnCount)> before_ = {};
  ReadCell cell_;
};

}  // namespace sluice::rundb::detail
