#pragma once
// Changes of the machine, or of what operations move, made to a graph: what a replay of it then
// takes is the answer. Changes add up in the order in which they are made.
//
// Thread contract: plain data and free functions.

#include <cstdint>
#include <string>
#include <vector>

#include "core/platform/platform.h"
#include "core/replay/operation_graph.h"

namespace sluice::replay {

enum class ChangeKind : std::uint8_t {
  link,      // its rate, in both directions
  drives,    // so many, over which each transfer is spread evenly
  on_csd,    // state is read, updated and written within the drives
  compress,  // operations of a name move a share of their bytes
  without,   // operations of a name take no time
};

struct Change {
  ChangeKind kind = ChangeKind::link;
  std::string text;             // as it was asked for: "--link host=x2"
  std::string name;             // of a link or an operation
  double factor = 0;            // of a rate or of bytes; 0: `bytes_per_s` says it
  double bytes_per_s = 0;       // by the platform's clock
  std::int32_t count = 0;       // of drives; 0: as many as there are
  double read_bytes_per_s = 0;  // between a drive and its engine; 0: what the drive gives
  double write_bytes_per_s = 0;
};

// "NAME=x2", "NAME=x0.5", "NAME=3GB/s"; "NAME=0.1". Errors (ErrorCode::config) say the form.
Result<Change> parse_link_change(const std::string& text);
Result<Change> parse_compression(const std::string& text);
// The internal links of the file's first device; `count` 0: as many as the file has.
Result<Change> csd_change(const platform::Platform& platform, std::int32_t count);

// Errors (ErrorCode::config): a name that nothing has, with the nearest one; a link whose rate
// nobody knows, to be scaled; a record that does not say what a change is about.
Status apply(const Change& change, OperationGraph& graph);

}  // namespace sluice::replay
