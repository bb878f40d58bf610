// Each planted bottleneck is found first or second, with the planted operations as evidence; near
// misses of it are not, and healthy runs have no finding. SLUICE_PLANTED_FOLDER=DIR keeps the
// databases there, with planted.csv: name, kind, what is never to be found, names of operations;
// and in ranks/ those of a run with a late rank.

#include "tests/profiler/analyze/planted.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "profiler/analyze/advice.h"
#include "profiler/analyze/run_analysis.h"
#include "storage/rundb/span_reader.h"
#include "tests/profiler/made_ranks.h"

namespace sluice::analyze {
namespace {

using rundb::require_ok;

void write_list(const std::string& folder, const std::vector<Planted>& all) {
  std::ofstream list(folder + "/planted.csv");
  for (const Planted& planted : all) {
    list << planted.name << "," << planted.kind << "," << planted.never << ",";
    for (const std::string& name : planted.names) list << name << " ";
    list << "\n";
  }
}

// As a run's output folder has them.
void keep_ranks(const std::vector<std::string>& paths) {
  const char* kept = std::getenv("SLUICE_PLANTED_FOLDER");
  if (kept == nullptr) return;
  for (std::size_t rank = 0; rank < paths.size(); ++rank) {
    const auto folder = std::filesystem::path(kept) / "ranks" / fmt::format("rank-{}", rank);
    std::filesystem::create_directories(folder);
    std::filesystem::copy_file(paths[rank], folder / "run.db");
  }
}

std::string kinds_of(const RunAnalysis& analysis) {
  std::string kinds;
  for (const Finding& finding : analysis.findings) kinds += finding.kind + "; ";
  return kinds;
}

void check_evidence(rundb::Reader& reader, const Finding& finding, const Planted& planted) {
  CHECK(finding.share >= kFindingShare);
  CHECK(finding.share <= 1);
  CHECK(finding.spans.size() <= kEvidenceMax);
  CHECK(finding.steps.size() <= kEvidenceMax);
  CHECK_FALSE(finding.steps.empty());
  CHECK(finding.spans.empty() == planted.names.empty());
  const RunInfo info = require_ok(load_run_info(reader));
  for (const std::int64_t id : finding.spans) {
    require_ok(rundb::SpanReader(reader).each_span_of_ids(id, id, [&](const rundb::SpanRow& span) {
      CHECK(std::ranges::count(planted.names, info.strings.at(span.name_id)) == 1);
    }));
  }
}

}  // namespace

TEST_CASE("planted bottlenecks are found, near misses are not, healthy runs have none") {
  const rundb::TempFolder temporary;
  const char* kept = std::getenv("SLUICE_PLANTED_FOLDER");
  const std::string folder = kept != nullptr ? kept : temporary.file(".");
  const std::vector<Planted> all = write_planted(folder);
  write_list(folder, all);
  for (const Planted& planted : all) {
    INFO(planted.name);
    const auto reader = require_ok(rundb::Reader::open(folder + "/" + planted.name + ".db"));
    const RunInfo info = require_ok(load_run_info(*reader));
    const RunAnalysis analysis = require_ok(analyze_run(*reader, info));
    INFO(kinds_of(analysis));
    INFO(analysis.why_unknown);
    if (!planted.kind.empty()) {
      const auto found = std::ranges::find(analysis.findings, planted.kind, &Finding::kind);
      CHECK(found != analysis.findings.end());
      if (found == analysis.findings.end()) continue;
      CHECK(found - analysis.findings.begin() < 2);
      CHECK(worst_findings(analysis)
                .at(static_cast<std::size_t>(found - analysis.findings.begin()))
                .text.find(found->words) != std::string::npos);
      check_evidence(*reader, *found, planted);
    } else if (!planted.never.empty()) {
      CHECK(std::ranges::count(analysis.findings, planted.never, &Finding::kind) == 0);
    } else {
      CHECK(analysis.findings.empty());
    }
    CHECK(std::ranges::count(analysis.answers, true, &Answer::is_of_finding) == 20);
  }
}

TEST_CASE("a rank that the others wait for is a finding, and none where all are in time") {
  const rundb::TempFolder folder;
  for (const TimeNs late_ns : {TimeNs{40'000'000}, TimeNs{0}}) {
    MadeRanks made;
    made.late_ns = {0, 0, late_ns};
    const std::vector<std::string> paths = write_made_ranks(folder, made);
    if (late_ns > 0) keep_ranks(paths);
    const auto records = require_ok(open_rank_records(paths));
    RunAnalysis analysis = require_ok(analyze_run(*records[0].reader, *records[0].info));
    analysis.ranks = require_ok(analyze_ranks(records, analysis.steps));
    find_again(analysis, *records[0].info, records[0].steps);
    INFO(kinds_of(analysis));
    const auto late = std::ranges::find(analysis.findings, "straggling rank", &Finding::kind);
    CHECK((late != analysis.findings.end()) == (late_ns > 0));
    if (late == analysis.findings.end()) continue;
    CHECK(late - analysis.findings.begin() < 2);
    CHECK_FALSE(late->spans.empty());
  }
}

}  // namespace sluice::analyze
