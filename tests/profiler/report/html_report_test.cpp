#include "profiler/report/html_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/colour.h"
#include "profiler/analyze/phase.h"
#include "profiler/report/detail/analysis_json.h"
#include "profiler/report/detail/counters.h"
#include "profiler/report/detail/curves.h"
#include "profiler/report/detail/timeline.h"
#include "tests/profiler/report/made_run.h"

namespace sluice::report {
namespace {

class Folder : public rundb::TempFolder {
 public:
  std::string page_of(const MadeRun& made) const {
    write_made_run(file("run.db"), made);
    const auto reader = require_ok(rundb::Reader::open(file("run.db")));
    return require_ok(html_report(*reader));
  }
};

nlohmann::json data_of(const std::string& page) {
  const std::string begin = R"(<script type="application/json" id="data">)";
  const std::size_t from = page.find(begin);
  REQUIRE(from != std::string::npos);
  const std::size_t data = from + begin.size();
  return nlohmann::json::parse(page.substr(data, page.find("</script>", data) - data));
}

std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++count;
  return count;
}

std::vector<rundb::StepRow> steps_of(std::int64_t count) {
  std::vector<rundb::StepRow> steps;
  for (std::int64_t i = 0; i < count; ++i)
    steps.push_back({.id = i, .ts = i * 100, .dur = 50 + i % 7, .loss = 1});
  return steps;
}

}  // namespace

TEST_CASE("the page has the verdict, links, devices and the steps of the run") {
  const nlohmann::json data = data_of(Folder().page_of({}));
  CHECK(data["name"] == "made");
  CHECK(data["is_stand_in"] == true);
  CHECK(data["verdict"]["dur"] == 100e6);
  double share = 0;
  for (const auto& cause : data["verdict"]["causes"]) share += cause["share"].get<double>();
  CHECK(share == Approx(1));
  CHECK(data["verdict"]["causes"][0]["cause"] == "compute");
  CHECK(data["verdict"]["causes"][0]["ns"] == 50e6);
  CHECK(data["links"]["rows"].size() == 4);
  // csd0 reads 25 MB and two pages of padding in 20 ms.
  const auto& link = data["links"]["rows"][0];
  CHECK(link["bytes"] == 25'008'192);
  CHECK(link["bytes_per_s"] == Approx(25'008'192 / 0.02));
  CHECK(link["share"] == Approx(25'008'192 / 2e9 / 0.1));
  const auto& devices = data["devices"]["rows"];
  REQUIRE(devices.size() == 2);
  CHECK(devices[0]["read_bytes"] == 25'008'192);
  CHECK(devices[1]["written_bytes"] == 20'004'096);
  CHECK(devices[1]["update_ns"] == 10e6);
  CHECK(devices[1]["busy_ns"] == 50e6);
  CHECK(data["curves"]["points"].size() == 3);
  CHECK(data["timeline"]["steps"][0]["spans"].size() == 9);  // none of its neighbours
}

TEST_CASE("the page gets the colours of stages, causes and phases, for both themes") {
  const nlohmann::json data = data_of(Folder().page_of({}));
  const auto& colours = data["colours"];
  CHECK(colours["causes"].size() == analyze::kCauseCount);
  CHECK(colours["causes"]["host link"]["dark"] == colour_text(palette::kHostLink));
  CHECK(colours["causes"]["buffers"]["dark"] == colour_text(palette::kWaiting.dark));
  CHECK(colours["causes"]["buffers"]["light"] == colour_text(palette::kWaiting.light));
  CHECK(colours["phases"].size() == analyze::kPhaseCount);
  for (const auto& cause : data["verdict"]["causes"])
    CHECK(colours["causes"].contains(cause["label"].get<std::string>()));
  for (const char* table : {"stages", "causes", "phases"}) {
    REQUIRE_FALSE(colours[table].empty());
    for (const auto& colour : colours[table]) {
      CHECK(parse_colour(colour["dark"].get<std::string>()));
      CHECK(parse_colour(colour["light"].get<std::string>()));
    }
  }
}

TEST_CASE("links and their limits are of the run's own clock, as all its times are") {
  MadeRun made;
  // One by one: a list of two pairs of texts could also be one row of two strings.
  made.more_meta.push_back({"clock", "emulated"});
  made.more_meta.push_back({"time_scale", "4"});
  const nlohmann::json data = data_of(Folder().page_of(made));
  const auto& link = data["links"]["rows"][0];
  CHECK(link["bytes_per_s_max"] == 2e9 / 4);
  CHECK(link["bytes_per_s"] == Approx(25'008'192 / 0.02));
  CHECK(link["share"] == Approx(25'008'192 / 2e9 / 0.1 * 4));
  CHECK(data["clock_note"] == "emulated clock, 4 times slower than the platform");
  CHECK(data_of(Folder().page_of({}))["clock_note"] == "");
}

TEST_CASE("text of the database is data: none of it becomes HTML or a script") {
  const std::string hostile = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&";
  const Folder folder;
  const std::string plain = folder.page_of({});
  const std::string page = folder.page_of(
      {.name = hostile, .mode = hostile, .more_meta = {{"model", hostile}, {hostile, hostile}}});
  CHECK(count_of(page, "<script") == count_of(plain, "<script"));
  CHECK(count_of(page, "</script") == count_of(plain, "</script"));
  CHECK(page.find("<img") == std::string::npos);
  CHECK(data_of(page)["name"] == hostile);
  CHECK(page.find("<title>&lt;/script&gt;") != std::string::npos);
}

TEST_CASE("no name of the page turns the direction of what stands beside it") {
  const std::string name = "a\u202eb\u009bc\u2028d";
  const std::string page = Folder().page_of({.name = name, .more_meta = {{name, name}}});
  for (const std::string part : {"\u202e", "\u009b", "\u2028"}) CHECK(count_of(page, part) == 0);
  CHECK(data_of(page)["name"] == "a\\xe2\\x80\\xaeb\\xc2\\x9bc\\xe2\\x80\\xa8d");
}

TEST_CASE("text that fills a place of the frame is not filled again") {
  const std::string page = Folder().page_of({.name = "{{script}} {{data}}"});
  CHECK(data_of(page)["name"] == "{{script}} {{data}}");
}

TEST_CASE("bytes that are no UTF-8 become marks, not an error") {
  CHECK(data_of(Folder().page_of({.name = "caf\xe9"}))["name"] == "caf\xef\xbf\xbd");
}

TEST_CASE("a page needs nothing from a network") {
  const std::string page = Folder().page_of({});
  CHECK(page.find("http://") == page.find("http://www.w3.org/2000/svg"));  // a name, not an address
  CHECK(page.find("https://") == std::string::npos);
  CHECK(page.find("default-src 'none'") != std::string::npos);
  CHECK(page.find("<link") == std::string::npos);
  CHECK(page.find(" src=") == std::string::npos);
}

TEST_CASE("a run without steps has a page that says so") {
  const nlohmann::json data = data_of(Folder().page_of({.step_count = 0}));
  CHECK(data["step_count"] == 0);
  for (const char* part : {"verdict", "links", "devices", "phases", "timeline"})
    CHECK(data[part]["why_empty"] == "No step has ended.");
}

TEST_CASE("a run of one step, and one without operations, say what there is") {
  const nlohmann::json one = data_of(Folder().page_of({.step_count = 1}));
  CHECK(one["timeline"]["steps"][0]["why"] == "only");
  CHECK(one["verdict"]["step_count"] == 1);
  const nlohmann::json bare = data_of(Folder().page_of({.has_spans = false}));
  for (const char* part : {"verdict", "links", "devices", "phases", "timeline"}) {
    INFO(part);
    CHECK(bare[part]["why_empty"].get<std::string>().find("record=") != std::string::npos);
  }
}

TEST_CASE("a loss that is no number is null") {
  const nlohmann::json data = data_of(Folder().page_of({.loss = kNone}));
  CHECK(data["curves"]["points"][0][2].is_null());
}

TEST_CASE("the page has each step's learning rate, and the losses of validations") {
  const nlohmann::json curves =
      data_of(Folder().page_of({.step_count = 3,
                                .validations = {{.step_id = 0, .loss = 2.75},
                                                {.step_id = 1, .loss = 0.5, .accuracy = 0.75},
                                                {.step_id = 2, .loss = kNone}}}))["curves"];
  CHECK(curves["rates"] == nlohmann::json({0.001, 0.0005, 0.000333333}));
  REQUIRE(curves["validations"].size() == 3);
  CHECK(curves["validations"][0] == nlohmann::json({0, 2.75}));
  CHECK(curves["validations"][1] == nlohmann::json({1, 0.5, 0.75}));
  CHECK(curves["validations"][2][1].is_null());
}

TEST_CASE("what was lost while recording stands in the page") {
  const nlohmann::json data = data_of(Folder().page_of({.lost_count = 7}));
  REQUIRE(data["losses"].size() == 1);
  CHECK(data["losses"][0]["value"] == 7);
}

TEST_CASE("findings say nothing that the shares say") {
  const nlohmann::json data = data_of(Folder().page_of({}));
  std::string text;
  for (const nlohmann::json& finding : data["verdict"]["findings"])
    text += finding["text"].get<std::string>() + "\n";
  CHECK_THAT(text, !Catch::Contains("of a step is"));
  // The link of the second largest cause is news.
  CHECK_THAT(text, Catch::Contains("csd0.internal reads at 1.25 GB/s of 2.00 GB/s"));
}

TEST_CASE("what to turn next is in the page as predicted, or why it is not, or not at all") {
  const Folder folder;
  CHECK_FALSE(data_of(folder.page_of({})).contains("next"));
  const auto reader = require_ok(rundb::Reader::open(folder.file("run.db")));
  const auto next = [&](const analyze::PredictedChanges& predicted) -> nlohmann::json {
    return data_of(require_ok(html_report(*reader, [&] { return predicted; })))["next"];
  };
  const analyze::PredictedChange buffers{{"buffers=6"}, {"buffers=3"}, 0.09, -0.1, "reads wait"};
  const analyze::PredictedChange devices{{"devices=5"}, {"devices=4"}, 0.08, -0.2, "less", true};
  const nlohmann::json with =
      next({.each = {devices, buffers}, .simulated_count = 9, .fit_error = 0.02});
  REQUIRE(with["groups"].size() == 2);
  CHECK(with["groups"][0]["heading"] == "");
  CHECK(with["groups"][0]["rows"][0]["words"] == "buffers 3 \u2192 6");
  CHECK(with["groups"][0]["rows"][0]["ns"] == 0.09 * 1e9);
  CHECK(with["groups"][1]["heading"] == "Another run");
  CHECK(with["groups"][1]["rows"][0]["change"] == -0.2);
  CHECK(with["none"] == "");
  CHECK_THAT(with["note"].get<std::string>(), Catch::Contains("2.0 % off"));
  const nlohmann::json none = next({.simulated_count = 9});
  CHECK_THAT(none["none"].get<std::string>(),
             Catch::Contains("No single change gains 2 % (9 simulated)"));
  CHECK(next({.unavailable = "no model"})["unavailable"] == "no model");
}

TEST_CASE("a step of the timeline has its counters") {
  const nlohmann::json data = data_of(Folder().page_of({}));
  const nlohmann::json& counters = data["timeline"]["steps"][0]["counters"];  // of step 1
  REQUIRE(counters.size() == 1);
  CHECK(counters[0]["name"] == "made counter");
  // The last sample before it, then its own; NaN is null.
  CHECK(counters[0]["samples"].dump() ==
        "[[-99000000,null],[0,1.5],[1000000,null],[100000000,1.5]]");
}

TEST_CASE("of many samples the extremes of each stretch are kept, in order") {
  std::vector<rundb::CounterRow> samples;
  for (std::int64_t i = 0; i < 10'000; ++i)
    samples.push_back({1, i, static_cast<double>(i * 37 % 1009)});
  samples[5000].value = 1e6;
  samples[7000].value = -5;
  samples[100].value = kNone;
  const auto kept = detail::thinned(samples, 200);
  CHECK(kept.size() <= 200);
  CHECK(std::ranges::is_sorted(kept, {}, &rundb::CounterRow::ts));
  CHECK(std::ranges::count(kept, 1e6, &rundb::CounterRow::value) == 1);
  CHECK(std::ranges::count(kept, -5, &rundb::CounterRow::value) == 1);
  CHECK(detail::thinned(samples, 10'000).size() == 10'000);
}

TEST_CASE("tracks of a device are drawn together, whenever they were made") {
  const nlohmann::json data = data_of(Folder().page_of({}));
  std::map<std::size_t, std::string> group_at;
  for (const nlohmann::json& track : data["timeline"]["tracks"]) {
    group_at[track["order"].get<std::size_t>()] = track["group"];
  }
  std::vector<std::string> groups;
  for (const auto& [order, group] : group_at) {
    if (groups.empty() || groups.back() != group) groups.push_back(group);
  }
  CHECK(groups == std::vector<std::string>{"compute", "csd0", "csd1"});
}

TEST_CASE("a GPU's streams have rows, and leave the verdict as it is") {
  const nlohmann::json plain = data_of(Folder().page_of({}));
  const nlohmann::json data = data_of(Folder().page_of({.has_gpu = true}));
  CHECK(data["verdict"]["causes"] == plain["verdict"]["causes"]);
  const auto& tracks = data["timeline"]["tracks"];
  const auto stream = std::ranges::find_if(
      tracks, [](const nlohmann::json& track) { return track["name"] == "stream 7"; });
  REQUIRE(stream != tracks.end());
  CHECK((*stream)["group"] == "GPU0");
  // Below computing, above the devices.
  for (const nlohmann::json& track : tracks) {
    if (track["kind"] == "compute") CHECK(track["order"] < (*stream)["order"]);
    if (track["kind"] == "device") CHECK(track["order"] > (*stream)["order"]);
  }
  CHECK(data["timeline"]["steps"][0]["spans"].size() == 10);
}

TEST_CASE("a page of a hundred thousand steps is small, and peaks are drawn") {
  std::vector<rundb::StepRow> steps = steps_of(100'000);
  steps[54'321].dur = 9'999;
  steps[12'345].dur = 1;
  steps[77'777].loss = 50;
  steps[33'333].loss = kNone;
  const std::vector<std::size_t> drawn = detail::drawn_steps(steps, 800);
  CHECK(drawn.size() <= 3200);
  CHECK(std::ranges::is_sorted(drawn));
  for (const std::size_t peak : {54'321, 12'345, 77'777})
    CHECK(std::ranges::find(drawn, peak) != drawn.end());
  CHECK(detail::curves_json(steps, {}).dump().size() < 300'000);
  std::vector<rundb::ValidationRow> validations;
  for (std::int64_t i = 0; i < 50'000; ++i) validations.push_back({.step_id = 2 * i, .loss = 3});
  const auto curves = detail::curves_json(steps, validations);
  CHECK(curves["rates"].size() == curves["points"].size());
  CHECK(curves["validations"].size() <= 2001);
  CHECK(curves["validations"].back()[0] == 99'998);
}

TEST_CASE("few steps are all drawn") {
  CHECK(detail::drawn_steps(steps_of(0), 800).empty());
  CHECK(detail::drawn_steps(steps_of(1), 800).size() == 1);
  CHECK(detail::drawn_steps(steps_of(1000), 800).size() == 1000);
}

TEST_CASE("of more operations than a page holds the longest are shown, and it says of how many") {
  const nlohmann::json data =
      data_of(Folder().page_of({.step_count = 1, .more_kernel_count = 21'000}));
  for (const nlohmann::json& step : data["timeline"]["steps"]) {
    CHECK(step["spans"].size() == detail::kTimelineSpansMax);
    CHECK(step["span_count"] == 21'009);
    const auto& spans = step["spans"];
    CHECK(std::ranges::count_if(spans, [](const nlohmann::json& s) { return s[4] > 1000; }) == 9);
  }
}

TEST_CASE("the timeline's steps stand once, with all that they are") {
  std::vector<rundb::StepRow> steps = steps_of(4);
  steps[3].dur = 500;
  const auto chosen = detail::chosen_steps(steps);
  REQUIRE(chosen.size() == 3);
  CHECK(chosen[0].why == "first full");
  CHECK(chosen[2].why == "slowest, last");
  CHECK(detail::chosen_steps({}).empty());
}

TEST_CASE("the timeline's steps are among those whose operations were kept") {
  const rundb::TempFolder folder;
  write_made_run(folder.file("run.db"), {.step_count = 5});
  const auto reader = require_ok(rundb::Reader::open(folder.file("run.db")));
  std::vector<rundb::StepRow> steps = require_ok(reader->steps());
  CHECK(require_ok(analyze::steps_with_operations(*reader, steps)).size() == 5);
  for (rundb::StepRow& step : steps) step.ts -= 300 * kMs;  // as if operations began later
  const auto kept = require_ok(analyze::steps_with_operations(*reader, steps));
  REQUIRE(kept.size() == 2);
  CHECK(kept.front().id == 3);
}

}  // namespace sluice::report
