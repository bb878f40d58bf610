#pragma once
// Whether two recorded runs did the same work on the same machine, measured in the same way, so
// that a difference between their figures comes from the settings that somebody turned. Whoever
// shows a comparison says this first.
//
// Thread contract: free functions and plain data.

#include <map>
#include <string>
#include <vector>

namespace sluice::analyze {

// A fact that a comparison rests on and that is another in each run.
struct Mismatch {
  std::string what;     // "batch"
  std::string a;        // "8"; kNotRecorded: the database does not say
  std::string b;        // of a long text (model, platform): the lines that the other has not
  std::string meaning;  // what it does to the figures, in a sentence
};
inline constexpr const char* kNotRecorded = "not recorded";

struct Comparability {
  std::vector<Mismatch> mismatches;  // none: the runs can be compared
  std::vector<std::string> same;     // what was looked at and is the same
  std::vector<std::string> unknown;  // what neither database says
  std::vector<std::string>
      cautions;  // sentences: true of figures that can be compared all the same
  bool is_comparable() const { return mismatches.empty(); }
};

// `meta` of both, by key. Looked at are model, text, batch, sequence, micro-batches, optimizer,
// precision, clock and level of recording; platform where a clock charges it, time scale where both
// clocks are emulated, text and processor where one is not simulated, and what the devices are
// where both update on devices. Settings that somebody turns (method, pipeline, buffers, ...) are
// what a comparison is of. The cautions are left to compare_runs().
Comparability comparability_of(const std::map<std::string, std::string>& a,
                               const std::map<std::string, std::string>& b);

// "batch", "batch and clock", "batch, clock and text".
std::string names_of(const std::vector<Mismatch>& mismatches);
std::string listed(const std::vector<std::string>& names);

}  // namespace sluice::analyze
