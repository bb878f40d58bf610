#include "python/machine.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <tuple>

#include "base/process_limits.h"
#include "base/split_mix.h"
#include "core/optimizer/vector_instructions.h"
#include "storage/io/io_engine.h"
#include "storage/io/page_aligned_buffer.h"

namespace nb = nanobind;

namespace sluice::python {
namespace {

constexpr std::int64_t kRequestBytes = 1 << 20;  // a run's default (io_bytes)

// Count and the limit that it comes from; -1: there is none.
using Limit = std::pair<std::int64_t, std::string>;

Limit as_pair(const ProcessLimit& limit) {
  return {limit.is_limited() ? limit.count : -1, limit.what};
}

Limit locked_memory_limit() {
  rlimit limit = {};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  if (limit.rlim_cur == RLIM_INFINITY || geteuid() == 0) return {-1, ""};
  return {static_cast<std::int64_t>(limit.rlim_cur), "RLIMIT_MEMLOCK, ulimit -l"};
}

std::vector<std::pair<std::string, Limit>> limits() {
  const ProcessFacts facts = process_facts();
  return {{"processors", as_pair(processor_limit(facts))},
          {"memory", as_pair(memory_limit(facts))},
          {"open files", as_pair(open_file_limit(facts))},
          {"size of a file", as_pair(file_size_limit(facts))},
          {"locked memory", locked_memory_limit()}};
}

Result<std::unique_ptr<io::IoEngine>> engine_named(const std::string& name) {
  io::IoEngineOptions options;
  options.kind = name == "posix" ? io::IoEngineKind::posix : io::IoEngineKind::io_uring;
  return io::open_io_engine(options);
}

std::string engine_problem(const std::string& name) {
  const auto engine = engine_named(name);
  return engine.ok() ? "" : engine.error().message();
}

// Without a name from the beginning, so that nothing is left however the process ends.
Result<io::File> nameless_file(const std::string& folder, bool is_direct) {
  const std::filesystem::path name = fmt::format(".sluice-doctor-{}", getpid());
  const std::string path = (folder / name).string();
  auto file = io::File::open(
      path, {io::FileAccess::create_new, is_direct ? io::Caching::direct : io::Caching::buffered});
  unlink(path.c_str());
  return file;
}

// All of the memory to or from the file, a request of 1 MiB each.
Status transfer(io::IoEngine& engine, const io::File& file, std::span<std::byte> memory,
                io::IoDirection direction) {
  std::vector<io::IoRequest> requests;
  for (std::size_t at = 0; at < memory.size(); at += kRequestBytes) {
    const std::size_t size = std::min<std::size_t>(kRequestBytes, memory.size() - at);
    requests.push_back(
        {&file, static_cast<std::int64_t>(at), memory.subspan(at, size), direction, 0});
  }
  Status status = ok_status();
  std::span<const io::IoRequest> waiting = requests;
  while (!waiting.empty() || engine.inflight_count() > 0) {
    waiting = waiting.subspan(engine.submit(waiting));
    std::array<io::IoCompletion, 64> completions;
    const std::size_t count = engine.reap(completions, 1);
    for (std::size_t i = 0; i < count; ++i) {
      if (!completions[i].status.ok() && status.ok()) status = completions[i].status;
    }
  }
  return status;
}

// Numbers that no drive makes less of: value `index` of a stream.
void for_each_word(std::span<std::byte> memory, auto&& action) {
  const std::span words(reinterpret_cast<std::uint64_t*>(memory.data()),
                        memory.size() / sizeof(std::uint64_t));
  for (std::size_t i = 0; i < words.size(); ++i) action(words[i], split_mix(1, i));
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

struct Times {
  double write_seconds = 0;
  double read_seconds = 0;
};

Result<Times> time_in(const std::string& folder, bool is_direct, const std::string& engine_name,
                      std::int64_t size_bytes) {
  ASSIGN_OR_RETURN(const io::File file, nameless_file(folder, is_direct));
  RETURN_IF_ERROR(file.allocate(size_bytes));
  ASSIGN_OR_RETURN(io::PageAlignedBuffer memory, io::PageAlignedBuffer::allocate(size_bytes));
  ASSIGN_OR_RETURN(const std::unique_ptr<io::IoEngine> engine, engine_named(engine_name));
  for_each_word(memory.bytes(), [](std::uint64_t& word, std::uint64_t value) { word = value; });
  Times times;
  auto begin = std::chrono::steady_clock::now();
  RETURN_IF_ERROR(transfer(*engine, file, memory.bytes(), io::IoDirection::write));
  RETURN_IF_ERROR(file.sync_data());
  times.write_seconds = seconds_since(begin);

  for_each_word(memory.bytes(), [](std::uint64_t& word, std::uint64_t) { word = 0; });
  begin = std::chrono::steady_clock::now();
  RETURN_IF_ERROR(transfer(*engine, file, memory.bytes(), io::IoDirection::read));
  times.read_seconds = seconds_since(begin);
  bool is_same = true;
  for_each_word(memory.bytes(), [&](std::uint64_t word, std::uint64_t value) {
    is_same = is_same && word == value;
  });
  if (is_same) return times;
  return make_error(ErrorCode::corrupt, "{}: other bytes were read than were written", folder);
}

std::tuple<std::string, double, double> time_transfers(const std::string& folder, bool is_direct,
                                                       const std::string& engine,
                                                       std::int64_t size_bytes) {
  const nb::gil_scoped_release others_run;
  const auto times = time_in(folder, is_direct, engine, size_bytes);
  if (!times.ok()) return {times.error().message(), 0, 0};
  return {"", times->write_seconds, times->read_seconds};
}

// A page to the drive, around the page cache.
std::string direct_io_problem(const std::string& folder) {
  const auto file = nameless_file(folder, true);
  if (!file.ok()) return file.error().message();
  const auto memory = io::PageAlignedBuffer::allocate(1);
  if (!memory.ok()) return memory.error().message();
  const Status written = file->write_exactly(0, memory->bytes());
  return written.ok() ? "" : written.error().message();
}

}  // namespace

void add_machine(nb::module_& module) {
  module.attr("version") = SLUICE_VERSION;
  module.def("vector_instructions", &optimizer::vector_instructions);
  module.def("limits", &limits);
  module.def("engine_problem", &engine_problem, nb::arg("name"));
  module.def("direct_io_problem", &direct_io_problem, nb::arg("folder"));
  module.def("time_transfers", &time_transfers, nb::arg("folder"), nb::arg("is_direct"),
             nb::arg("engine"), nb::arg("size_bytes"));
}

}  // namespace sluice::python
