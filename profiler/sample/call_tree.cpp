#include "profiler/sample/call_tree.h"

namespace sluice::sample {
namespace {

// The innermost address is the one that was about to run.
std::uint64_t code_of(std::span<const std::uint64_t> chain, std::size_t i) {
  return i == 0 || chain[i] == 0 ? chain[i] : chain[i] - 1;
}

}  // namespace

void CallTree::add_addresses(std::span<const std::uint64_t> chain,
                             std::vector<std::uint64_t>& into) {
  for (std::size_t i = 0; i < chain.size(); ++i) into.push_back(code_of(chain, i));
}

std::int64_t CallTree::call_of(std::span<const std::uint64_t> chain, const FunctionNames& functions,
                               std::vector<rundb::CallRow>& rows) {
  std::vector<std::int64_t> path;  // the innermost first
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const std::int64_t function = functions.function_of(code_of(chain, i));
    if (function == kUnknownFunction && i > 0) break;
    path.push_back(function);
  }
  std::int64_t call = 0;
  for (std::size_t i = path.size(); i-- > 0;) {
    static_assert(kCallsMax < (std::size_t{1} << 32) && FunctionNames::kFunctionsMax < (1u << 31));
    const std::uint64_t key =
        static_cast<std::uint64_t>(call) << 32 | static_cast<std::uint64_t>(path[i]);
    const auto known = calls_.find(key);
    if (known != calls_.end()) {
      call = known->second;
      continue;
    }
    if (calls_.size() >= kCallsMax && call != 0) {
      ++cut_count_;
      return call;
    }
    const auto id = static_cast<std::int64_t>(calls_.size()) + 1;
    rows.push_back({id, call == 0 ? -1 : call, path[i]});
    calls_.emplace(key, id);
    call = id;
  }
  return call;
}

}  // namespace sluice::sample
