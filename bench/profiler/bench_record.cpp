// What recording costs: a span begun and ended, on two threads at once, with recording on and off,
// beside the clock that it reads twice; and how many records a second the collector brings from
// rings to rows on disk, with what processor time and memory.
//
//   bench_record spans
//   bench_record ingest [--seconds 60] [--rate 500000] [--database /tmp/bench_record.db] [--keep]
//   bench_record read DATABASE       of what --keep left: opened, drawn, analysed

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <thread>

#include "bench/contenders.h"
#include "profiler/analyze/critical_path.h"
#include "profiler/collect/collector.h"
#include "profiler/record/scoped_span.h"
#include "storage/rundb/catalog_reader.h"
#include "storage/rundb/timeline_reader.h"

namespace sluice::bench {
namespace {

constexpr std::int64_t kSpansARound = 2'000'000;

struct Producer {
  record::Ring* ring;
  record::TrackId track;
};

// A consumer that only throws away, so that rings do not fill.
class Discarding {
 public:
  explicit Discarding(record::Recorder& recorder)
      : thread_([this, &recorder] {
          std::vector<record::Record> records;
          while (!stop_.load(std::memory_order_relaxed)) {
            for (record::Ring* ring : recorder.rings()) {
              records.clear();
              ring->drain(records, 1 << 16);
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
        }) {}
  ~Discarding() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// What a span needs stands in locals: a lambda would load its captures anew for each span, which is
// not the span's own cost.
void push_spans(const record::Recorder& recorder, const Producer& producer, record::NameId name) {
  record::Ring& ring = *producer.ring;
  const record::TrackId track = producer.track;
  for (std::int64_t i = 0; i < kSpansARound; ++i) {
    const record::ScopedSpan span(recorder, ring, {.name = name, .track = track});
  }
}

double ns_each(const Contender& contender) {
  return median(contender.seconds) * 1e9 / static_cast<double>(kSpansARound);
}

void bench_spans() {
  record::Recorder recorder;
  const record::NameId name = recorder.intern("work");
  std::vector<Producer> producers;
  for (int t = 0; t < 2; ++t) {
    producers.push_back({&recorder.add_ring(1 << 16),
                         recorder.add_track(record::kNoTrack, "thread", std::to_string(t))});
  }
  const Discarding discarding(recorder);
  const auto on_both = [&](const std::function<void(const Producer&)>& work) {
    std::thread other([&] { work(producers[1]); });
    work(producers[0]);
    other.join();
  };
  const auto spans = [&](const Producer& producer) { push_spans(recorder, producer, name); };
  std::atomic<std::int64_t> sink{0};
  std::vector<Contender> contenders;
  contenders.push_back({"two readings of the clock", [&](std::int64_t) {
                          on_both([&](const Producer&) {
                            std::int64_t sum = 0;
                            for (std::int64_t i = 0; i < kSpansARound; ++i) {
                              sum += record::span_now_ns();
                              sum -= record::span_now_ns();
                            }
                            sink += sum;
                          });
                        }});
  contenders.push_back({"a span, recording on", [&](std::int64_t) {
                          recorder.set_level(record::Level::all);
                          on_both(spans);
                        }});
  contenders.push_back({"a span, recording off", [&](std::int64_t) {
                          recorder.set_level(record::Level::off);
                          on_both(spans);
                        }});
  measure(contenders, 11);
  fmt::print("{}, two threads at once, {} million spans each, medians of 11\n", cpu_model(),
             kSpansARound / 1'000'000);
  for (const Contender& contender : contenders) {
    fmt::print("  {:<28} {:6.2f} ns\n", contender.name, ns_each(contender));
  }
  std::uint64_t dropped = 0;
  for (const Producer& producer : producers) dropped += producer.ring->dropped_count();
  fmt::print("  ({} records dropped by full rings)\n", dropped);
}

double cpu_seconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t total = 0;
  std::int64_t resident = 0;
  file >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// Some ten thousand operations at a time, like a step: on tracks of a machine with ten devices.
int bench_ingest(int seconds, std::int64_t rate, const std::string& path, bool keeps) {
  std::filesystem::remove(path);
  const std::int64_t memory_before = resident_bytes();
  record::Recorder recorder;
  // Four seconds: what a drive may stall before anything is lost.
  record::Ring& ring = recorder.add_ring(1 << 21);
  std::vector<record::TrackId> tracks;
  for (int t = 0; t < 50; ++t) {
    tracks.push_back(recorder.add_track(record::kNoTrack, "device", std::to_string(t)));
  }
  const record::NameId name = recorder.intern("work");
  auto writer = rundb::Writer::create(path, rundb::IfExists::refuse);
  if (!writer.ok()) {
    fmt::print(stderr, "{}\n", writer.error().message());
    return 1;
  }
  auto collector =
      collect::Collector::start(recorder, std::move(*writer), {}, {.cost_share_max = 100});
  CHECK(collector.ok());
  std::int64_t pushed = 0;
  double own_seconds = 0;  // of the producer
  std::int64_t memory_peak = 0;
  const TimeNs start = monotonic_now_ns();
  const double cpu_before = cpu_seconds();
  for (int tick = 0; tick < seconds * 100; ++tick) {
    const TimeNs begin = monotonic_now_ns();
    for (std::int64_t i = 0; i < rate / 100; ++i) {
      const TimeNs ts = begin + i * 20;
      ring.try_push(record::SpanRecord{.device = static_cast<std::int16_t>(i % 10),
                                       .name = name,
                                       .track = tracks[static_cast<std::size_t>(i % 50)],
                                       .step = tick / 50,
                                       .subgroup = static_cast<std::int32_t>(i % 400),
                                       .submit_ts = ts - 1000,
                                       .ts = ts,
                                       .dur = 15'000 + i % 1000,
                                       .bytes = 1 << 20});
      pushed += 1;
    }
    if (tick % 50 == 49) {
      const TimeNs step_dur = 500'000'000;
      ring.try_push(record::StepRecord{
          .step = tick / 50, .ts = monotonic_now_ns() - step_dur, .dur = step_dur});
    }
    own_seconds += static_cast<double>(monotonic_now_ns() - begin) / 1e9;
    memory_peak = std::max(memory_peak, resident_bytes() - memory_before);
    const TimeNs next = start + TimeNs{tick + 1} * 10'000'000;
    const TimeNs now = monotonic_now_ns();
    if (now < next) std::this_thread::sleep_for(std::chrono::nanoseconds(next - now));
  }
  const double wall = static_cast<double>(monotonic_now_ns() - start) / 1e9;
  const double cpu = cpu_seconds() - cpu_before - own_seconds;
  const Status stopped = (*collector)->stop();
  CHECK(stopped.ok());
  const auto size = static_cast<double>(std::filesystem::file_size(path));
  fmt::print(
      "{}: {:.0f} records/s for {:.0f} s, dropped {}; collector {:.0f} % of a processor, "
      "{} of memory at most, the ring's among it; {:.1f} bytes a span on disk\n",
      cpu_model(), static_cast<double>(pushed) / wall, wall, ring.dropped_count(), 100 * cpu / wall,
      format_bytes(memory_peak), size / static_cast<double>(pushed));
  if (!keeps) std::filesystem::remove(path);
  return 0;
}

// So that the next reads come from the drive; needs root, without it they are warm.
bool drop_caches() {
  ::sync();
  std::ofstream file("/proc/sys/vm/drop_caches");
  file << "3\n";
  file.flush();
  return static_cast<bool>(file);
}

double seconds_of(const std::function<void()>& work) {
  const TimeNs start = monotonic_now_ns();
  work();
  return static_cast<double>(monotonic_now_ns() - start) / 1e9;
}

template <typename T>
T checked(Result<T> result) {
  CHECK(result.ok());
  return std::move(*result);
}

// All tracks at the level at which the whole run fits a screen.
void read_overview(rundb::Reader& reader, const std::vector<rundb::TrackRow>& tracks,
                   const std::vector<rundb::StepRow>& steps) {
  const TimeNs begin = steps.front().ts;
  const TimeNs end = steps.back().ts + steps.back().dur;
  const int level = rundb::lod_level_for((end - begin) / 1000);
  for (const rundb::TrackRow& track : tracks) {
    (void)checked(rundb::TimelineReader(reader).lod(track.id, level, begin, end));
    (void)checked(rundb::TimelineReader(reader).long_spans(track.id, level, begin, end));
  }
}

// How many rows a track is drawn from on a thousand columns: bins and long spans where a bin is no
// wider than a column, else all of its spans.
std::size_t read_track(rundb::Reader& reader, std::int64_t track, TimeNs begin, TimeNs end) {
  rundb::TimelineReader timeline(reader);
  const TimeNs column_ns = (end - begin) / 1000;
  if (column_ns < rundb::lod_width_ns(0))
    return checked(timeline.spans_of_track(track, begin, end)).size();
  const int level = rundb::lod_level_for(column_ns);
  return checked(timeline.lod(track, level, begin, end)).size() +
         checked(timeline.long_spans(track, level, begin, end)).size();
}

// A window in the middle of the run on a thousand columns, ever shorter: of some tracks the
// slowest, each with cold caches.
void bench_zoom(const std::string& path, const std::vector<rundb::TrackRow>& tracks, TimeNs begin,
                TimeNs end) {
  constexpr std::size_t kTracks = 5;
  for (TimeNs width = end - begin; width > 100'000; width /= 4) {
    const TimeNs from = begin + (end - begin - width) / 2;
    double slowest = 0;
    std::size_t rows = 0;
    bool is_cold = true;
    for (std::size_t t = 0; t < kTracks; ++t) {
      // A new reader has no pages of its own, either.
      const auto reader = checked(rundb::Reader::open(path));
      const std::int64_t track = tracks[tracks.size() * (t + 1) / (kTracks + 1)].id;
      is_cold = drop_caches() && is_cold;
      const double seconds =
          seconds_of([&] { rows = read_track(*reader, track, from, from + width); });
      slowest = std::max(slowest, seconds);
    }
    fmt::print("  {:>12} of a track: {:6.1f} ms, {} rows{}\n", format_duration(width),
               slowest * 1e3, rows, is_cold ? "" : " (warm)");
  }
}

int bench_read(const std::string& path) {
  const bool is_cold = drop_caches();
  std::unique_ptr<rundb::Reader> reader;
  std::vector<rundb::TrackRow> tracks;
  std::vector<rundb::StepRow> steps;
  const double overview = seconds_of([&] {
    reader = checked(rundb::Reader::open(path));
    tracks = checked(rundb::CatalogReader(*reader).tracks());
    steps = checked(reader->steps());
    read_overview(*reader, tracks, steps);
  });
  fmt::print("{}: opened, and the whole run read for a screen: {:.0f} ms{}\n", cpu_model(),
             overview * 1e3, is_cold ? "" : " (warm)");
  bench_zoom(path, tracks, steps.front().ts, steps.back().ts + steps.back().dur);
  const analyze::RunInfo info = checked(analyze::load_run_info(*reader));
  std::size_t spans = 0;
  double loading = 0;
  analyze::StepData step;
  const double verdicts = seconds_of([&] {
    for (const rundb::StepRow& row : steps) {
      const TimeNs load_begin = monotonic_now_ns();
      CHECK(analyze::load_step_into(*reader, info, row, step).ok());
      loading += static_cast<double>(monotonic_now_ns() - load_begin) / 1e9;
      spans += step.spans.size();
      CHECK_GE(analyze::verdict_of(step).dur, 0);
    }
  });
  fmt::print("verdicts on {} steps with {} spans: {:.1f} s, of which reading them {:.1f} s\n",
             steps.size(), spans, verdicts, loading);
  return 0;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  CLI::App app("What recording costs.");
  app.require_subcommand(1);
  CLI::App* spans = app.add_subcommand("spans", "a span begun and ended");
  CLI::App* ingest = app.add_subcommand("ingest", "from rings to rows on disk");
  int seconds = 60;
  std::int64_t rate = 500'000;
  std::string database = "/tmp/bench_record.db";
  ingest->add_option("--seconds", seconds, "how long");
  ingest->add_option("--rate", rate, "records a second");
  ingest->add_option("--database", database, "where; removed in the end");
  bool keeps = false;
  ingest->add_flag("--keep", keeps, "leave the database");
  CLI::App* read = app.add_subcommand("read", "open, draw and analyse what `ingest --keep` left");
  read->add_option("database", database)->required();
  CLI11_PARSE(app, argc, argv);
  if (*spans) sluice::bench::bench_spans();
  if (*read) return sluice::bench::bench_read(database);
  return *ingest ? sluice::bench::bench_ingest(seconds, rate, database, keeps) : 0;
}
