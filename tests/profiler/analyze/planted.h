#pragma once
// Databases of made-up programs with one planted bottleneck each, its near miss, and healthy ones,
// with exact times and no clock.
//
// Thread contract: free functions that write files.

#include <string>
#include <vector>

namespace sluice::analyze {

struct Planted {
  std::string name;   // of its file, without ".db"
  std::string kind;   // of the finding; "": nothing is to be found
  std::string never;  // of a near miss: the finding that must not be there
  // Names of the operations that are to be the evidence; empty: steps are.
  std::vector<std::string> names;
};
// Each writes FOLDER/NAME.db.
std::vector<Planted> write_planted(const std::string& folder);

}  // namespace sluice::analyze
