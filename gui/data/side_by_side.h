#pragma once
// Two runs, or two stretches of one, read for being shown side by side.
//
// Thread contract: free functions, not the frame thread: each opens its files itself and takes as
// long as reading takes.

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "profiler/analyze/cause_pairs.h"
#include "profiler/analyze/comparison.h"

namespace sluice::gui {

struct RunPair {
  std::string a;  // databases; of the folder of a run of several ranks rank 0's
  std::string b;
  analyze::Comparison comparison;
  std::vector<analyze::CausePair>
      causes;           // the largest first; none where operations were not recorded
  std::string problem;  // not empty: why there is nothing
};
RunPair compare_two_runs(const std::string& database_a, const std::string& database_b);

struct Stretch {
  TimeNs begin = 0;
  TimeNs end = 0;
  bool operator==(const Stretch&) const = default;
};
struct NameSum {
  std::int64_t count = 0;
  double busy_ns = 0;  // as far as it lies in the stretch; operations side by side count each
  double bytes = 0;    // of what lies there, in proportion
};
struct NamePair {
  std::string name;
  NameSum a;
  NameSum b;
};
struct StretchPair {
  Stretch a;
  Stretch b;
  std::vector<NamePair> names;  // the longest first
  std::string problem;
};
StretchPair compare_two_stretches(const std::string& database, Stretch a, Stretch b);

}  // namespace sluice::gui
