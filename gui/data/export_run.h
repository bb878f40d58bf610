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
  trace,   // Trace Event Format, for Perfetto, compressed
  tables,  // a folder with a CSV file for each table
};

// Steps as people count them, from 1; both included.
struct ExportSteps {
  std::int64_t first = 0;
  std::int64_t last = 0;
  bool is_whole_run() const { return first == 0; }
  bool operator==(const ExportSteps&) const = default;
};

// run.html, run.trace.json.gz or run-tables of run.db, with -steps-11-20 after the name for a part
// of it, else the first of run-2.html and so on that is not there.
std::string export_path(const std::string& database, ExportForm form,
                        const ExportSteps& steps = {});

struct Exported {
  std::string path;
  std::string problem;  // empty: it is there
};
// The database that is exported, and the one beside which and after which the result is named: the
// same, but for a merged record, which is named as if it were OUTPUT/run.db.
struct ExportSource {
  std::string database;
  std::string beside;
};
// `program`: the command `sluice`; empty: find_sluice(). A report is of the whole run.
Exported export_run(const std::string& program, const ExportSource& source, ExportForm form,
                    const ExportSteps& steps = {});

}  // namespace sluice::gui
