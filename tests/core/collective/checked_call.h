#pragma once
// A collective call with memory of its own, of which every byte is checked: what comes out against
// a plain loop over what all ranks put in, what goes in, what lies before and behind. Once the call
// has ended its memory is filled with something else, which must stay: whoever still reads or
// writes it shows.
//
// Thread contract: one thread.

#include <cstdint>
#include <string>
#include <vector>

#include "core/collective/call.h"

namespace sluice::collective {

enum class Place : std::uint8_t { apart, in_place };

struct CallPlan {
  Kind kind = Kind::all_gather;
  GroupId group = kWorld;
  ElementType type = ElementType::fp32;
  std::int64_t count = 0;
  int root = 0;
  Place place = Place::apart;
  std::uint64_t salt = 0;  // makes the numbers; the same on all ranks
  std::int64_t unit = 1;   // of shards
};

class CheckedCall {
 public:
  CheckedCall(const CallPlan& plan, std::span<const int> ranks, int rank);

  const Call& call() const { return call_; }
  // What is wrong after the call has ended well; empty: nothing.
  std::string problem() const;
  // The memory is the caller's again.
  void fill();
  std::string problem_after_fill() const;

 private:
  struct Memory {
    std::vector<std::byte> bytes;
    std::span<std::byte> inner;
  };
  static Memory memory_of(std::int64_t size_bytes);
  std::byte filling() const;
  void make_spans(std::int64_t own_first, std::int64_t own_count);

  CallPlan plan_;
  std::vector<int> ranks_;
  int rank_;
  Memory in_;
  Memory out_;  // empty where the call works in place in in_
  std::vector<std::byte> given_;
  Call call_;
};

// What rank `rank` puts in at element `index`, as it is stored.
std::uint64_t given_bits(const CallPlan& plan, int rank, std::int64_t index);
// The plain sum in the order of `ranks`, rounded once.
std::uint64_t plain_sum_bits(const CallPlan& plan, std::span<const int> ranks, std::int64_t index);

}  // namespace sluice::collective
