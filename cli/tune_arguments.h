#pragma once
// The arguments of `sluice tune`, for either of its searches.
//
// Thread contract: plain data.

#include <string>
#include <vector>

namespace sluice::cli {

struct TuneArguments {
  std::string start;     // a model, a run file (placement only) or a recorded run
  std::string platform;  // of a model; of a recorded run, where its database has none
  std::vector<std::string> overrides;
  std::vector<std::string> held;
  bool json = false;

  // The search of settings.
  std::string model;  // of a recorded run, where its database has none
  double density = 1;
  std::string devices;
  std::string written_platform;  // empty: none
  bool force = false;
  bool apply = false;
  bool activations = false;

  // The search of a placement.
  bool placement = false;
  std::string ranks;  // "4x2", of a cluster
  std::string state;  // with ranks: where it lies; empty: whichever is shorter
  std::int64_t commit_every = 1;
  int simulations = 600;
};

}  // namespace sluice::cli
