#pragma once
// In which modes the steps of a run ran (D8). A live change of method or a resume by another clock
// begins another stretch; what once stood in for hardware, or gave other numbers (overlap=local,
// state_format=compact), is named for as long as the file exists.
//
// Thread contract: plain data and free functions.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "storage/rundb/rows.h"

namespace sluice::analyze {

struct ModeStretch {
  std::int64_t first_step = 0;
  std::int64_t last_step = -1;  // -1: it is the last stretch
  std::string line = {};        // "csd · nbuffer · 4 devices · EMULATED CLOCK x12, EMULATED CSDs"
  std::string method = {};      // of it: "csd · nbuffer · 4 devices"
  std::string other_numbers = {};  // what in it changes numbers; "": nothing
  std::string stand_ins = {};  // of it: "EMULATED CLOCK x12, EMULATED CSDs"; "": nothing stands in
};

struct RunMode {
  std::vector<ModeStretch> stretches = {};  // in order of steps; none: the file does not say
  std::string method = {};                  // of the last stretch
  // All that ever changed numbers, with the steps where it was not the whole run.
  std::vector<std::string> other_numbers = {};
  // All that ever stood in for hardware, with the steps where it was not the whole run; "":
  // nothing.
  std::string stand_ins = {};

  // All three, on a line.
  std::string line() const;
};

RunMode run_mode(std::span<const rundb::ModeRow> rows);

}  // namespace sluice::analyze
