#pragma once
// A vector that is indexed by an id type: `IdVector<SubgroupId, SlotId> slots; slots[subgroup]`.
// The id of one list does not index another, and no cast stands where an element is read. An id
// outside the list (kNoSubgroup is one) is a programmer error and aborts.
//
// Id: an enum over std::int32_t, 0-based.
// Thread contract: that of std::vector.

#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.h"

namespace sluice {

template <typename Id, typename T>
class IdVector {
  static_assert(std::is_same_v<std::underlying_type_t<Id>, std::int32_t>);

 public:
  using value_type = T;

  IdVector() = default;
  explicit IdVector(std::int32_t count) : values_(static_cast<std::size_t>(count)) {}
  IdVector(std::int32_t count, const T& value) : values_(static_cast<std::size_t>(count), value) {}
  IdVector(std::initializer_list<T> values) : values_(values) {}
  explicit IdVector(std::vector<T> values) : values_(std::move(values)) {}

  decltype(auto) operator[](Id id) { return values_[place_of(id)]; }
  decltype(auto) operator[](Id id) const { return values_[place_of(id)]; }

  std::int32_t count() const { return static_cast<std::int32_t>(values_.size()); }
  bool empty() const { return values_.empty(); }
  // The id that the next push_back() will have.
  Id next_id() const { return Id{count()}; }

  void reserve(std::int32_t count) { values_.reserve(static_cast<std::size_t>(count)); }
  void resize(std::int32_t count) { values_.resize(static_cast<std::size_t>(count)); }
  void assign(std::int32_t count, const T& value) {
    values_.assign(static_cast<std::size_t>(count), value);
  }
  void clear() { values_.clear(); }
  void push_back(T value) { values_.push_back(std::move(value)); }
  template <typename... Arguments>
  decltype(auto) emplace_back(Arguments&&... arguments) {
    return values_.emplace_back(std::forward<Arguments>(arguments)...);
  }

  decltype(auto) front() { return values_.front(); }
  decltype(auto) front() const { return values_.front(); }
  decltype(auto) back() { return values_.back(); }
  decltype(auto) back() const { return values_.back(); }
  auto begin() { return values_.begin(); }
  auto end() { return values_.end(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  // For algorithms that want the values alone.
  const std::vector<T>& values() const { return values_; }

  bool operator==(const IdVector&) const = default;

 private:
  std::size_t place_of(Id id) const {
    const auto place = static_cast<std::size_t>(static_cast<std::int32_t>(id));
    CHECK_LT(place, values_.size());  // -1 is above every size
    return place;
  }

  std::vector<T> values_;
};

// Every id of a list of `count`: `for (const SubgroupId subgroup : all_ids<SubgroupId>(count))`.
template <typename Id>
class IdRange {
 public:
  explicit constexpr IdRange(std::int32_t count) : count_(count) {}

  class Iterator {
   public:
    explicit constexpr Iterator(std::int32_t index) : index_(index) {}
    constexpr Id operator*() const { return Id{index_}; }
    constexpr Iterator& operator++() {
      ++index_;
      return *this;
    }
    constexpr bool operator==(const Iterator&) const = default;

   private:
    std::int32_t index_;
  };
  constexpr Iterator begin() const { return Iterator(0); }
  constexpr Iterator end() const { return Iterator(count_); }

 private:
  std::int32_t count_;
};

template <typename Id>
constexpr IdRange<Id> all_ids(std::int32_t count) {
  return IdRange<Id>(count);
}
template <typename Id, typename T>
constexpr IdRange<Id> ids_of(const IdVector<Id, T>& list) {
  return IdRange<Id>(list.count());
}

}  // namespace sluice
