#pragma once
// A measured quantity: what several repeats say together, and how far apart they were.
//
// Thread contract: plain data and free functions.

#include <vector>

namespace sluice::calibrate {

struct Figure {
  double value = 0;  // their median, if nothing else is said
  double low = 0;
  double high = 0;
  int count = 0;  // repeats; 0: not measured

  bool is_measured() const { return count > 0; }
};

// The median of at least one value; for an even number the mean of the middle two.
Figure figure_of(std::vector<double> values);

}  // namespace sluice::calibrate
