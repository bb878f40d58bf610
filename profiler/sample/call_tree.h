#pragma once
// The chains of calls that samples found, as a tree: chains that begin with the same callers share
// them, so the tree ends growing when a program has been everywhere.
//
// Thread contract: one thread at a time.

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "profiler/sample/function_names.h"
#include "storage/rundb/rows.h"

namespace sluice::sample {

class CallTree {
 public:
  // Calls that are told apart: some MiB. What would be one more counts for its caller.
  static constexpr std::size_t kCallsMax = 1 << 17;

  // The addresses of a chain whose functions are to be known: a call returns behind the instruction
  // that made it, which may be another function's begin.
  static void add_addresses(std::span<const std::uint64_t> chain, std::vector<std::uint64_t>& into);

  // The call that the innermost address of a chain is in; new ones are appended to `rows`. The
  // chain ends at code that no library has.
  std::int64_t call_of(std::span<const std::uint64_t> chain, const FunctionNames& functions,
                       std::vector<rundb::CallRow>& rows);
  // Chains that lost their innermost calls, because the tree is full.
  std::int64_t cut_count() const { return cut_count_; }

 private:
  // By caller and function.
  std::unordered_map<std::uint64_t, std::int64_t> calls_;
  std::int64_t cut_count_ = 0;
};

}  // namespace sluice::sample
