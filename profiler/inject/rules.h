#pragma once
// What names of ranges and paths of files mean: the rules that `sluice record` read from
// record_rules.toml and of a person's own files.
//
// Thread contract: read once, ahead of the program's own code; then any thread.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "profiler/c_api/sluice_record.h"

namespace sluice::inject {

// Their file, which SLUICE_RECORD_RULES names, has a line a rule, words separated by tabs:
// "range PATTERN KIND PLACE PHASE CAUSE", "file PATTERN NAME CAUSE", "step PATTERN". Patterns are
// those of fnmatch(3); the first rule that fits holds.
class Rules {
 public:
  using FileRule = std::uint8_t;  // 0: no rule; 1: the first
  struct File {
    std::string name;  // of what is in the file: "optimizer state"
    std::int32_t cause = SLUICE_BY_PLACE;
  };

  // No file, no rules. A line that says nothing is passed over: `sluice record` has checked them.
  static Rules read(const std::string& path);

  // None: the range is to be seen, and is no operation.
  std::optional<sluice_stage> meaning_of_range(const std::string& name) const;
  // Each range of that name is a step.
  bool is_step(const std::string& name) const;
  bool has_steps() const;
  FileRule rule_of_file(const std::string& path) const;
  // Null: that of no rule.
  const File* file(FileRule rule) const;
  bool has_files() const;

 private:
  struct Parts;
  // Leaked: a program records until it is gone.
  const Parts* parts_ = nullptr;
};

// Those of this process; none until they are read.
const Rules& rules();
void read_rules(const std::string& path);

}  // namespace sluice::inject
