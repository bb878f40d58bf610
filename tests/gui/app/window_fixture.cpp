#include "tests/gui/app/window_fixture.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <memory>

#include "gui/views/session.h"
#include "tests/gui/app/virtual_display.h"
#include "tests/made_stages.h"
#include "tests/skip.h"
#include "tests/storage/rundb/rundb_fixture.h"

namespace sluice::gui {
namespace {

// A thread that is found in `product`, which `layer` calls, each 10 ms.
void sample(rundb::Batch& batch, bool is_first, TimeNs begin, TimeNs dur) {
  constexpr TimeNs kInterval = 10'000'000;
  if (is_first) {
    batch.samples.threads = {{1, 11, "compute"}};
    batch.samples.functions = {{1, "layer", "models.so"}, {2, "product", "math.so"}};
    batch.samples.calls = {{1, -1, 1}, {2, 1, 2}};
  }
  for (TimeNs ts = begin + kInterval / 2; ts < begin + dur; ts += kInterval)
    batch.samples.samples.push_back({1, ts, 0, 2});
  batch.samples.times.push_back({.thread_id = 1, .ts = begin, .dur = dur, .running = dur});
}

struct Place {
  std::string why_not;
  std::unique_ptr<VirtualDisplay> display;
  rundb::TempFolder folder;
  std::string text;

  Place() {
    display = VirtualDisplay::start(why_not);
    text = folder.file("text.txt");
    std::ofstream out(text);
    for (const auto& entry : fs::directory_iterator(std::string(SLUICE_SOURCE_DIR) + "/docs")) {
      if (entry.path().extension() == ".md") out << std::ifstream(entry.path()).rdbuf();
    }
  }
};

Place& place() {
  static Place the_place;
  return the_place;
}

}  // namespace

std::string sluice_program() {
  const char* build = std::getenv("SLUICE_BUILD");
  return (build == nullptr ? program_folder() : std::string(build) + "/bin") + "/sluice";
}

std::string gui_program() {
  // What drivers that it unloads leave would be called its leaks (sanitized.cpp).
  return "env ASAN_OPTIONS=detect_leaks=0 " + program_folder() + "/sluice-gui";
}

bool can_run() {
  // Built without libtorch, it does not train.
  static const bool trains = ChildProcess(sluice_program() + " train --help").wait() == 0;
  std::string why = place().why_not;
  if (why.empty() && !trains)
    why = "there is no program sluice that trains (" + sluice_program() + ")";
  if (why.empty()) return true;
  skip_test(why);
  return false;
}

std::string test_path(const std::string& name) { return place().folder.file(name); }
std::string text_file() { return place().text; }

std::string train_command(const std::string& name, int steps) {
  // A test may change the folder before the command is run.
  return sluice_program() + " train " + fs::absolute(SLUICE_SOURCE_DIR).string() +
         "/sample_models/runs/tiny.toml --set text=" + text_file() +
         " --set batch=2 --set sequence=32 --set validation_every=0 --set record=all" +
         " --set time_scale=4 --at 4:buffers=2 --set steps=" + std::to_string(steps) +
         " --set output=" + test_path(name);
}

std::string trained_run() {
  static const std::string path = [] {
    CHECK(ChildProcess(train_command("done", 8)).wait() == 0);
    return test_path("done") + "/run.db";
  }();
  return path;
}

std::string run_with_slow_step() {
  const std::string path = test_path("slow.db");
  const auto writer = rundb::require_ok(rundb::Writer::create(path, rundb::IfExists::replace));
  rundb::require_ok(writer->write_facts(
      {.meta = {{"name", "slow"}, {"clock", "real"}}, .stages = made_stages(*writer)}));
  const std::int64_t compute = writer->track_id({}, "compute", "compute");
  TimeNs now = 1000;
  for (std::int64_t s = 0; s < 12; ++s) {
    const TimeNs dur = s == 8 ? 400'000'000 : 100'000'000;
    rundb::Batch batch;
    batch.spans.push_back({.track_id = compute,
                           .name_id = writer->string_id("backward"),
                           .submit_ts = now,
                           .ts = now,
                           .dur = dur,
                           .step_id = s});
    batch.steps.push_back({.id = s, .ts = now, .dur = dur, .tokens = 10});
    sample(batch, s == 0, now, dur);
    rundb::require_ok(writer->append(batch));
    now += dur;
  }
  rundb::require_ok(writer->close());
  return path;
}

AppOptions options_for(const std::string& database) {
  AppOptions options;
  if (!database.empty()) options.databases = {database};
  options.window.width = 1920;
  options.window.height = 1080;
  options.settings_path = "-";
  options.scale = 1;
  options.sluice = sluice_program();  // a sanitizer's build has none beside its window
  options.gives_way = false;  // other tests run beside (spare_time_test.cpp is about giving way)
  return options;
}

std::string picture_folder() {
  const fs::path folder = fs::path(program_folder()).parent_path() / "gui_pictures";
  fs::create_directories(folder);
  return folder.string();
}

void await_live_run(const Drive& d) {
  Session& session = d.session();
  IM_CHECK(d.comes_true(
      [&] { return session.pieces.has_facts() && session.pieces.steps().size() >= 6; }));
  IM_CHECK(d.comes_true([&] { return session.control.choice.can_turn(); }));
  session.foreground.bring("Knobs");
  d.test->Yield(4);
}

std::string drive_live(const std::string& name, AppOptions options, int steps,
                       const std::function<void(const Drive&)>& script) {
  ChildProcess training(train_command(name, steps));
  options.databases = {test_path(name) + "/run.db"};
  return drive(options, [&](const Drive& d) {
    await_live_run(d);
    script(d);
  });
}

std::string value_in_force(const Drive& d, const std::string& key) {
  const control::Knob* knob = d.session().control.choice.state()->knob(key);
  return knob == nullptr ? "no such knob" : knob->value;
}

}  // namespace sluice::gui
