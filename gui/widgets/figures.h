#pragma once
// Figures as the report writes them: three digits, a thin space before the unit, thousands grouped
// by thin spaces.
//
// Thread contract: free functions.

#include <cstdint>
#include <string>

#include "base/units.h"

namespace sluice::gui {

std::string grouped_text(std::int64_t value);            // "1 234 567"
std::string time_text(TimeNs dur_ns);                    // "1.84 s", "2 min 05 s", "350 us"
std::string bytes_text(double bytes);                    // "2.62 MB" (powers of 1000)
std::string rate_text(double bytes_per_s);               // "17.7 MB/s"
std::string count_text(double count);                    // "41.8 k"
std::string percent_text(double share, int digits = 0);  // "46 %"
std::string step_text(std::int64_t step_id);             // as people count: from 1
std::string figure_text(double value, int digits);       // "-" for what is no number

// The text with a thin space between each figure and its unit, where no line is broken: "2 %.".
std::string with_units_kept(const std::string& text);

// A round distance between marks on an axis, at least `least`: 1, 2 or 5 times a power of ten.
double tick_distance(double least);

}  // namespace sluice::gui
