#include "profiler/watch/metrics.h"

#include "tests/profiler/report/made_run.h"

namespace sluice::watch {

using rundb::require_ok;

TEST_CASE("a label's value is escaped") { CHECK(escaped_label("a\\b\"c\nd") == "a\\\\b\\\"c\\nd"); }

TEST_CASE("figures are those of the record, whether asked once or twice") {
  const rundb::TempFolder folder;
  report::write_made_run(folder.file("run.db"), {.loss = report::kNone});
  RunFollower run = require_ok(
      RunFollower::open(folder.file("run.db"), [](const std::string&) { return false; }));
  Metrics metrics;
  const std::string text = require_ok(metrics.text(run));
  const auto has = [&text](const std::string& line) {
    return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
  };
  CHECK(has("sluice_steps_total 3"));
  CHECK(has("sluice_tokens_total 192"));
  CHECK(has("sluice_loss NaN"));
  CHECK(has("sluice_step_seconds{of=\"last\"} 0.1"));
  for (const rundb::LinkTotals& link : require_ok(run.reader().link_totals())) {
    const std::string direction = link.direction == rundb::Direction::read ? "read" : "write";
    CHECK(has(fmt::format("sluice_link_bytes_total{{link=\"{}\",direction=\"{}\"}} {}", link.link,
                          direction, link.bytes)));
  }
  CHECK(require_ok(metrics.text(run)) == text);
  // Another file in its place begins anew.
  report::write_made_run(folder.file("other.db"), {.step_count = 1});
  std::filesystem::rename(folder.file("other.db"), folder.file("run.db"));
  Metrics fresh;
  const std::string other = require_ok(metrics.text(run));
  CHECK(other == require_ok(fresh.text(run)));
  CHECK(other.find("sluice_steps_total 1\n") != std::string::npos);
}

}  // namespace sluice::watch
