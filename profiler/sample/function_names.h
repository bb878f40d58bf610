#pragma once
// The functions that addresses of this process lie in, each asked for once: a name from the
// library's file where that has one, else "library+0xoffset" of where the function begins, and
// never the name of a neighbour.
//
// Thread contract: one thread at a time.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "profiler/sample/loaded_code.h"
#include "storage/rundb/rows.h"

namespace sluice::sample {

// The first function: code that no library has, such as what a program makes as it runs. A chain
// ends there, since what follows may be no call at all.
inline constexpr std::int64_t kUnknownFunction = 1;

class ElfSymbols;

class FunctionNames {
 public:
  // Functions that are told apart; what comes later is unknown code, and counted.
  static constexpr std::size_t kFunctionsMax = 1 << 16;

  FunctionNames();
  ~FunctionNames();

  // Looks up those that are not known; new functions are appended to `rows`. Reads files, so it
  // takes tens of milliseconds when a large library comes up for the first time.
  void learn(std::vector<std::uint64_t> addresses, std::vector<rundb::SampledFunctionRow>& rows);
  // Only after learn().
  std::int64_t function_of(std::uint64_t address) const;
  std::int64_t left_out_count() const { return left_out_count_; }

 private:
  struct Code {
    std::uint64_t end = 0;
    std::int64_t function = kUnknownFunction;
  };

  struct File;

  bool is_known(std::uint64_t address) const;
  void learn_of_file(std::span<const std::uint64_t> addresses, std::span<const CodePlace> places,
                     std::vector<rundb::SampledFunctionRow>& rows);
  const ElfSymbols& symbols_of(const CodePlace& place);
  std::int64_t id_of(const std::string& name, const std::string& library,
                     std::vector<rundb::SampledFunctionRow>& rows);

  std::map<std::uint64_t, Code> code_;                  // by its begin
  std::map<std::string, std::unique_ptr<File>> files_;  // by their paths
  std::unordered_map<std::string, std::int64_t> ids_;
  std::int64_t left_out_count_ = 0;
};

}  // namespace sluice::sample
