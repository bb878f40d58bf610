#pragma once
// How a row of the run database is declared (detail/tables.h): a column a member. SQL text,
// reading, writing and the bounds of what is believed come from the declaration
// (detail/sql_texts.h, detail/row_io.h, detail/row_bounds.h). The tables themselves are made by
// sql/tables.sql; a test holds the two together.
//
//   struct StepRow {
//     std::int64_t id = 0;
//     double loss = 0;
//   };
//   template <>
//   inline constexpr auto kTable<StepRow> = table_of<StepRow>("step")
//                                               .number("id", &StepRow::id)
//                                               .real_or_null("loss", &StepRow::loss);
//
// Thread contract: constants and free functions.

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "base/units.h"

namespace sluice::rundb {

enum class SqlType : std::uint8_t { integer, real, text };

// The values of an integer that is read from a file of anybody's. Within these bounds the sums and
// differences that readers make stay within 64 bits, and ids fit the types that they become.
enum class Bound : std::uint8_t {
  any,     // only compared
  number,  // fits 32 bits
  time,    // at most kAmountMax from 0
  amount,  // from 0 to kAmountMax: a length of time, bytes
};
inline constexpr std::int64_t kAmountMax = std::int64_t{1} << 60;  // 36 years in ns; 1 EB

constexpr bool is_within(Bound bound, std::int64_t value) {
  switch (bound) {
    case Bound::any:
      return true;
    case Bound::number:
      return value >= std::numeric_limits<std::int32_t>::min() &&
             value <= std::numeric_limits<std::int32_t>::max();
    case Bound::time:
      return value >= -kAmountMax && value <= kAmountMax;
    case Bound::amount:
      return value >= 0 && value <= kAmountMax;
  }
  return false;
}

// A column has the name that SQL knows it by: "ts", or with a point, "knob.name", one of another
// table that a query joins. `stored` is what is bound to write the member, `take` fills the member
// from a row that is read: `source` has is_null, int64_at, double_at and text_at.

// Integers, flags and enums. `kOrNull`: less than 0 is none, and NULL in the file.
template <typename Row, typename T, bool kOrNull>
struct IntegerColumn {
  static constexpr SqlType kSqlType = SqlType::integer;
  static constexpr bool kIsNullable = kOrNull;
  std::string_view name;
  T Row::* member;
  Bound bound;

  constexpr auto stored(const Row& row) const {
    const auto value = static_cast<std::int64_t>(row.*member);
    if constexpr (kOrNull) {
      return value < 0 ? std::nullopt : std::optional(value);
    } else {
      return value;
    }
  }
  void take(Row& row, const auto& source, int at) const {
    if constexpr (kOrNull) {
      const std::int64_t value = source.int64_at(at);  // 0 of NULL: two questions are a twentieth
      row.*member = value == 0 && source.is_null(at) ? T{-1} : static_cast<T>(value);
    } else {
      row.*member = static_cast<T>(source.int64_at(at));
    }
  }
  constexpr bool is_good(const Row& row) const {
    return is_within(bound, static_cast<std::int64_t>(row.*member));
  }
};

// `kOrNull`: NaN is NULL in the file.
template <typename Row, bool kOrNull>
struct RealColumn {
  static constexpr SqlType kSqlType = SqlType::real;
  static constexpr bool kIsNullable = kOrNull;
  std::string_view name;
  double Row::* member;

  constexpr double stored(const Row& row) const { return row.*member; }
  void take(Row& row, const auto& source, int at) const { row.*member = source.double_at(at); }
  constexpr bool is_good(const Row& /*row*/) const { return true; }
};

// `kOrNull`: an empty text is NULL in the file.
template <typename Row, bool kOrNull>
struct TextColumn {
  static constexpr SqlType kSqlType = SqlType::text;
  static constexpr bool kIsNullable = kOrNull;
  std::string_view name;
  std::string Row::* member;

  constexpr auto stored(const Row& row) const {
    const std::string_view text = row.*member;
    if constexpr (kOrNull) {
      return text.empty() ? std::nullopt : std::optional(text);
    } else {
      return text;
    }
  }
  void take(Row& row, const auto& source, int at) const { row.*member = source.text_at(at); }
  constexpr bool is_good(const Row& /*row*/) const { return true; }
};

// An enum, or a flag, that stands in the file as a word. A word that is none of these is the last.
template <typename Row, typename T, std::size_t kWordCount>
struct WordColumn {
  static constexpr SqlType kSqlType = SqlType::text;
  static constexpr bool kIsNullable = false;
  std::string_view name;
  T Row::* member;
  std::array<std::string_view, kWordCount> words;  // by value

  constexpr std::string_view stored(const Row& row) const {
    return words[static_cast<std::size_t>(row.*member)];
  }
  void take(Row& row, const auto& source, int at) const {
    const std::string word = source.text_at(at);
    std::size_t value = 0;
    while (value + 1 < kWordCount && words[value] != word) ++value;
    row.*member = static_cast<T>(value);
  }
  constexpr bool is_good(const Row& /*row*/) const { return true; }
};

// A table's name and columns. Each verb adds one; the verbs differ in what the file may hold.
template <typename Row, typename... Columns>
struct Table {
  static constexpr int kColumnCount = sizeof...(Columns);
  std::string_view name;
  std::tuple<Columns...> columns = {};

  template <typename T>
  constexpr auto integer(std::string_view column, T Row::* member) const {
    return with(IntegerColumn<Row, T, false>{column, member, Bound::any});
  }
  constexpr auto integer_or_null(std::string_view column, std::int64_t Row::* member) const {
    return with(IntegerColumn<Row, std::int64_t, true>{column, member, Bound::any});
  }
  constexpr auto number(std::string_view column, std::int64_t Row::* member) const {
    return with(IntegerColumn<Row, std::int64_t, false>{column, member, Bound::number});
  }
  constexpr auto number_or_null(std::string_view column, std::int64_t Row::* member) const {
    return with(IntegerColumn<Row, std::int64_t, true>{column, member, Bound::number});
  }
  constexpr auto time(std::string_view column, TimeNs Row::* member) const {
    return with(IntegerColumn<Row, TimeNs, false>{column, member, Bound::time});
  }
  constexpr auto amount(std::string_view column, std::int64_t Row::* member) const {
    return with(IntegerColumn<Row, std::int64_t, false>{column, member, Bound::amount});
  }
  constexpr auto real(std::string_view column, double Row::* member) const {
    return with(RealColumn<Row, false>{column, member});
  }
  constexpr auto real_or_null(std::string_view column, double Row::* member) const {
    return with(RealColumn<Row, true>{column, member});
  }
  constexpr auto text(std::string_view column, std::string Row::* member) const {
    return with(TextColumn<Row, false>{column, member});
  }
  constexpr auto text_or_null(std::string_view column, std::string Row::* member) const {
    return with(TextColumn<Row, true>{column, member});
  }
  template <typename T, std::size_t kWordCount>
  constexpr auto word(std::string_view column, T Row::* member,
                      const std::array<std::string_view, kWordCount>& words) const {
    return with(WordColumn<Row, T, kWordCount>{column, member, words});
  }

 private:
  template <typename Column>
  constexpr auto with(const Column& column) const {
    return Table<Row, Columns..., Column>{name, std::tuple_cat(columns, std::tuple(column))};
  }
};
template <typename Row>
constexpr Table<Row> table_of(std::string_view name) {
  return {name};
}

}  // namespace sluice::rundb
