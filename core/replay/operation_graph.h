#pragma once
// A recorded stretch as a graph: what each operation did, on what, and what let it begin. The rules
// of its edges are in docs/replay.md.
//
// Thread contract: plain data and a free function. Deterministic.

#include <cstdint>
#include <string>
#include <vector>

#include "core/replay/link_model.h"
#include "core/replay/recorded_window.h"

namespace sluice::replay {

// What an operation waits for. An edge leads to a node that began later in the record, so there is
// no cycle.
struct Edge {
  std::int32_t from = -1;   // -1: the begin of the stretch
  bool from_begin = false;  // of it; else from its end
  TimeNs delay_ns = 0;      // what the program took from there until it asked
};

struct Node {
  std::int64_t span_id = -1;
  std::int32_t name = 0;     // of OperationGraph::names
  std::int32_t route = -1;   // of `routes`; -1: it moves nothing
  std::int32_t engine = -1;  // of `engines`; -1: a transfer
  std::int32_t device = -1;
  // From the begin of the stretch on. What was under way there begins there, with the part of its
  // bytes that is its share of the time.
  TimeNs asked_ns = 0;
  TimeNs begin_ns = 0;
  TimeNs end_ns = 0;
  TimeNs delay_ns = 0;  // from asked to begun, without anything that held its link or engine
  double size_bytes = 0;
  std::int32_t first_edge = 0;
  std::int32_t edge_count = 0;

  TimeNs dur_ns() const { return end_ns - begin_ns; }
};

// What a name means, as far as the record says.
struct OperationName {
  std::string text;
  std::string drive_file;  // that it moves: "state", "gradients", ...; else empty
};

// A track of kernels, or a thread of a program.
struct Engine {
  std::string name;
  std::string device;      // whose it is; empty: none's
  std::int32_t units = 1;  // that ran at the same time
  bool is_thread = false;  // one operation follows the other by an edge
  double speed = 1;        // of the recorded one
};

struct OperationGraph {
  std::vector<Node> nodes;  // in order of begin
  std::vector<Edge> edges;  // of each node side by side
  std::vector<OperationName> names;
  std::vector<Engine> engines;
  LinkModel links;
  std::vector<std::string> drives;  // devices that bytes came from or went to
  std::vector<Edge> end;            // of the stretch
  TimeNs dur_ns = 0;
  std::size_t step_count = 1;
  double time_scale = 1;  // recorded seconds for one of the platform's
  double busy_share = 0;  // of the stretch, in which an operation was under way
};

OperationGraph build_graph(const RecordedWindow& window);

}  // namespace sluice::replay
