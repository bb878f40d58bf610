#include "profiler/report/chrome_trace.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "profiler/report/detail/lanes.h"
#include "tests/profiler/report/made_run.h"

namespace sluice::report {
namespace {

struct Trace {
  nlohmann::json json;
  ChromeTraceCounts counts;

  std::vector<nlohmann::json> events(const std::string& ph) const {
    std::vector<nlohmann::json> found;
    for (const auto& event : json["traceEvents"]) {
      if (event["ph"] == ph) found.push_back(event);
    }
    return found;
  }
};

Trace trace_of(const MadeRun& made, const RunPart& part = {}) {
  const rundb::TempFolder folder;
  write_made_run(folder.file("run.db"), made);
  const auto reader = require_ok(rundb::Reader::open(folder.file("run.db")));
  OutputFile file = require_ok(OutputFile::create(folder.file("trace.json"), IfExists::refuse));
  Trace trace;
  trace.counts = require_ok(write_chrome_trace(*reader, file, part, {}));
  require_ok(file.close());
  trace.json = nlohmann::json::parse(text_of_file(folder.file("trace.json")));
  return trace;
}

}  // namespace

TEST_CASE("lanes: the first free line, free again at the instant of an end") {
  detail::Lanes lanes;
  CHECK(lanes.place(0, 10) == 0);
  CHECK(lanes.place(5, 10) == 1);
  CHECK(lanes.place(10, 1) == 0);
  CHECK(lanes.place(10, 1) == 2);
  CHECK(lanes.place(20, 0) == 0);
  CHECK(lanes.place(20, 0) == 0);
}

TEST_CASE("a validation is a sample of a counter beside the steps, in its part of the run") {
  const MadeRun made{.validations = {{.ts = 90 * kMs, .step_id = 0, .loss = 2.75},
                                     {.ts = 290 * kMs, .step_id = 2, .loss = 2.25},
                                     {.ts = 291 * kMs, .step_id = 2, .loss = kNone}}};
  const auto losses_of = [](const Trace& trace) {
    std::vector<double> losses;
    for (const auto& event : trace.events("C")) {
      if (event["name"] == "validation loss") losses.push_back(event["args"]["value"]);
    }
    return losses;
  };
  CHECK(losses_of(trace_of(made)) == std::vector<double>{2.75, 2.25});
  const RunPart part{.first_step_id = 1, .last_step_id = 2, .begin = 100 * kMs, .end = 300 * kMs};
  CHECK(losses_of(trace_of(made, part)) == std::vector<double>{2.25});
  CHECK(trace_of(made).events("X")[0]["args"]["lr"] == 1e-3);
}

TEST_CASE("every span is an event, with its arguments and nothing rounded") {
  const Trace trace = trace_of({.step_count = 2});
  CHECK(trace.counts.spans == 18);
  CHECK(trace.events("X").size() == 18 + 2);  // and the steps
  const auto spans = trace.events("X");
  const auto read = std::ranges::find_if(spans, [](const nlohmann::json& event) {
    return event["name"] == "state_read" && event["args"]["bytes"] == 20'000'000 &&
           event["args"]["step"] == 2;
  });
  REQUIRE(read != spans.end());
  CHECK((*read)["ts"] == 150'000.0);
  CHECK((*read)["dur"] == 20'000.0);
  CHECK((*read)["args"]["subgroup"] == 4);
  CHECK((*read)["args"]["padding_bytes"] == 4096);
}

// Steps of 100 ms: the second is 100 to 200. A kernel of a step begins at each step's begin.
TEST_CASE("of a part go out its steps, what was under way in them, and samples within") {
  const MadeRun made{.step_count = 4,
                     .changes = {{.ts = 100 * kMs,
                                  .step_id = 1,
                                  .knob = "buffers",
                                  .old_value = "2",
                                  .new_value = "3",
                                  .who = "somebody \"else\""},
                                 {.ts = 300 * kMs,
                                  .step_id = 3,
                                  .knob = "queue_depth",
                                  .old_value = "3",
                                  .new_value = "4",
                                  .who = "x"}}};
  const RunPart part{.first_step_id = 1, .last_step_id = 2, .begin = 100 * kMs, .end = 300 * kMs};
  const Trace trace = trace_of(made, part);
  CHECK(trace.counts.spans == 18);
  CHECK(trace.counts.flows_left_out == 0);
  for (const auto& event : trace.events("X")) {
    CHECK(event["ts"] >= 100'000.0);
    CHECK(event["ts"] < 300'000.0);
  }
  std::vector<nlohmann::json> changes;
  for (const auto& event : trace.events("i")) {
    if (event["cat"] == "knob") changes.push_back(event);
  }
  REQUIRE(changes.size() == 1);
  CHECK(changes[0]["name"] == "buffers 2 -> 3");
  CHECK(changes[0]["args"]["who"] == "somebody \"else\"");
  CHECK(changes[0]["args"]["step"] == 2);
  CHECK(trace.events("C").size() < trace_of(made).events("C").size());
  CHECK(trace_of(made).counts.spans == 36);
}

TEST_CASE("slices of one thread do not overlap, and threads have names") {
  const Trace trace = trace_of({});
  std::map<std::int64_t, std::vector<std::pair<double, double>>> by_thread;
  for (const auto& event : trace.events("X")) {
    const double ts = event["ts"];
    by_thread[event["tid"]].emplace_back(ts, ts + event["dur"].get<double>());
  }
  std::set<std::int64_t> named;
  for (const auto& event : trace.events("M")) {
    if (event["name"] == "thread_name") named.insert(event["tid"].get<std::int64_t>());
  }
  for (auto& [tid, slices] : by_thread) {
    CHECK(named.contains(tid));
    std::ranges::sort(slices);
    for (std::size_t i = 1; i < slices.size(); ++i)
      CHECK(slices[i].first >= slices[i - 1].second - 1e-6);
  }
}

TEST_CASE("each flow begins inside its cause and ends where its effect begins") {
  const Trace trace = trace_of({.step_count = 2});
  const auto begins = trace.events("s");
  const auto ends = trace.events("f");
  CHECK(trace.counts.flows == 12);
  CHECK(trace.counts.flows_left_out == 0);
  REQUIRE(begins.size() == 12);
  REQUIRE(ends.size() == 12);
  const auto slices = trace.events("X");
  const auto slice_at = [&](const nlohmann::json& flow) {
    return std::ranges::any_of(slices, [&](const nlohmann::json& slice) {
      return slice["tid"] == flow["tid"] && slice["pid"] == flow["pid"] &&
             slice["ts"] <= flow["ts"] &&
             flow["ts"].get<double>() < slice["ts"].get<double>() + slice["dur"].get<double>();
    });
  };
  for (std::size_t i = 0; i < begins.size(); ++i) {
    CHECK(begins[i]["id"] == ends[i]["id"]);
    CHECK(ends[i]["bp"] == "e");
    CHECK(slice_at(begins[i]));
    CHECK(slice_at(ends[i]));
  }
}

TEST_CASE("counters that are numbers are events; names are escaped") {
  const Trace trace = trace_of({.name = "a \"quoted\" \n name", .step_count = 2});
  CHECK(trace.events("C").size() == 2);  // those that are NULL are not
  CHECK(trace.json["otherData"]["name"] == "a \"quoted\" \n name");
}

TEST_CASE("a run without steps is a trace without slices") {
  CHECK(trace_of({.step_count = 0}).events("X").empty());
}

TEST_CASE("a file that is there is refused, and one that was not closed leaves nothing") {
  const rundb::TempFolder folder;
  std::ofstream(folder.file("there.json")) << "mine";
  const auto refused = OutputFile::create(folder.file("there.json"), IfExists::refuse);
  REQUIRE(!refused.ok());
  CHECK(refused.error().code() == ErrorCode::config);
  CHECK(refused.error().message().find("--force") != std::string::npos);
  {
    OutputFile file = require_ok(OutputFile::create(folder.file("there.json"), IfExists::replace));
    require_ok(file.write("half"));
  }
  CHECK(text_of_file(folder.file("there.json")) == "mine");
  CHECK(!std::filesystem::exists(unfinished_path(folder.file("there.json"))));
  const auto nowhere = OutputFile::create(folder.file("no/such.json"), IfExists::refuse);
  REQUIRE(!nowhere.ok());
  CHECK(nowhere.error().code() == ErrorCode::not_found);
}

}  // namespace sluice::report
