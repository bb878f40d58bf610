#pragma once
// The causes that a step's time can be spent on: the words of table `verdict`, of reports and of
// the GUI, and their colours.
//
// Thread contract: plain data and free functions.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/colour.h"

namespace sluice::analyze {

enum class Cause : std::uint8_t {
  compute,           // forward, backward
  host_link,         // transfers over links that devices share, or to accelerators
  read,              // out of a drive, to what updates its state
  write,             // the other way
  update_engine,     // the optimizer's kernel on a device
  compression,       // selecting the largest gradients
  processor,         // the host's kernels: checks, staging, updates of method=host, parameters in
  activations_out,   // forward, or what follows it, waits for activations to leave
  activations_back,  // backward waits for activations to come back
  ranks,             // what crosses between ranks, and waiting for those that are late
  buffers,           // waiting for a buffer while the link had nothing else to do
  commit,            // the commit, and what waited for it
  program,           // a program's own work around forward and backward: its data, its log
  recorder,          // the recorder's own cost
  other,             // nothing recorded was running
  count_,
};
inline constexpr std::size_t kCauseCount = static_cast<std::size_t>(Cause::count_);
constexpr std::size_t index_of(Cause cause) { return static_cast<std::size_t>(cause); }

// "host link"; as in the database.
std::string_view cause_name(Cause cause);
// The cause of that name; none: there is no such cause.
std::optional<Cause> cause_named(std::string_view name);
// "host kernels": what it is called where people read it; the name where that says as much.
std::string_view cause_label(Cause cause);
// "waiting for a buffer", for a sentence: "47 % of a step is ...".
std::string_view cause_phrase(Cause cause);
ThemedColour cause_colour(Cause cause);

// Shares of 1 as whole numbers of `parts` (100: per cent) that add to those of their sum: those
// with the largest remainders are rounded up.
std::vector<int> rounded_shares(std::span<const double> shares, int parts);

}  // namespace sluice::analyze
