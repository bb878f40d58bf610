#pragma once
// A run for other people and other programs: what `sluice report` and `sluice export` make of it,
// beside its database. Each runs as a process of its own at low priority.
//
// Thread contract: free functions, not the frame thread; export_run blocks its thread until the
// program ends.

#include <cstdint>
#include <string>

namespace sluice::gui {

enum class ExportForm : std::uint8_t {
  report,  // one HTML file
  trace,   // Trace Event Format, for Perfetto
  tables,  // a folder with a CSV file for each table
};

// run.html, run.trace.json or run-tables of run.db, else the first of run-2.html and so on that is
// not there.
std::string export_path(const std::string& database, ExportForm form);

struct Exported {
  std::string path;
  std::string problem;  // empty: it is there
};
// `program`: the command `sluice`; empty: find_sluice().
Exported export_run(const std::string& program, const std::string& database, ExportForm form);

}  // namespace sluice::gui
