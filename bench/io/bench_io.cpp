// Sequential bandwidth of one file through an IoEngine: a full queue, each completion replaced at
// once. bench/io/against_fio.py runs it in turn with fio.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "storage/io/file.h"
#include "storage/io/io_engine.h"
#include "storage/io/page_aligned_buffer.h"

namespace sluice::io {
namespace {

enum class Mix { read, write, mixed };

struct Settings {
  std::string dir = ".";
  std::int64_t size_bytes = std::int64_t{1} << 30;
  std::int64_t block_bytes = 1 << 20;
  std::size_t queue_depth = 16;
  double seconds = 3;
  Mix mix = Mix::read;
  IoEngineKind engine = IoEngineKind::io_uring;
  std::size_t thread_count = 4;
  bool registers_buffers = true;
  bool json = false;
};

struct Measured {
  std::int64_t read_bytes = 0;
  std::int64_t written_bytes = 0;
  TimeNs dur_ns = 0;

  double rate() const {
    return static_cast<double>(read_bytes + written_bytes) / (static_cast<double>(dur_ns) / 1e9);
  }
};

// One stream of blocks a direction, each from the start of the file and round again, as fio's
// `rw=rw`; in a mixed run a fixed seed draws the direction.
class Stream {
 public:
  Stream(const Settings& settings, const File& file) : settings_(settings), file_(file) {}

  IoRequest next(std::span<std::byte> block, std::uint64_t user_data) {
    const bool writes =
        settings_.mix == Mix::write || (settings_.mix == Mix::mixed && generator_() % 2 == 0);
    std::int64_t& position = writes ? write_position_ : read_position_;
    const std::int64_t offset_bytes = position;
    position += settings_.block_bytes;
    if (position + settings_.block_bytes > settings_.size_bytes) position = 0;
    return {.file = &file_,
            .offset_bytes = offset_bytes,
            .data = block,
            .direction = writes ? IoDirection::write : IoDirection::read,
            .user_data = user_data};
  }

 private:
  const Settings& settings_;
  const File& file_;
  std::mt19937 generator_{1};
  std::int64_t read_position_ = 0;
  std::int64_t write_position_ = 0;
};

// An old file of the right size is used again: reading needs blocks that were written once.
Result<File> prepare_file(const Settings& settings) {
  const std::string path = settings.dir + "/bench_io.data";
  std::error_code absent;
  const std::uintmax_t found_bytes = std::filesystem::file_size(path, absent);
  if (!absent && found_bytes == static_cast<std::uintmax_t>(settings.size_bytes))
    return File::open(path, {.access = FileAccess::read_write});
  std::filesystem::remove(path, absent);
  ASSIGN_OR_RETURN(File file, File::open(path, {.access = FileAccess::create_new}));
  RETURN_IF_ERROR(file.allocate(settings.size_bytes));
  ASSIGN_OR_RETURN(PageAlignedBuffer block, PageAlignedBuffer::allocate(settings.block_bytes));
  std::mt19937_64 generator(1);
  for (std::byte& byte : block.bytes()) byte = static_cast<std::byte>(generator());
  for (std::int64_t at = 0; at < settings.size_bytes; at += settings.block_bytes)
    RETURN_IF_ERROR(file.write_exactly(at, block.bytes()));
  RETURN_IF_ERROR(file.sync_data());
  return file;
}

Result<Measured> run(const Settings& settings, IoEngine& engine, const File& file,
                     PageAlignedBuffer& memory) {
  const auto block_bytes = static_cast<std::size_t>(settings.block_bytes);
  Stream stream(settings, file);
  std::vector<IoRequest> requests(settings.queue_depth);
  std::vector<IoRequest> batch;
  batch.reserve(settings.queue_depth);
  std::vector<IoCompletion> completions(settings.queue_depth);
  const auto renew = [&](std::uint64_t block) {
    requests[block] = stream.next(memory.bytes().subspan(block * block_bytes, block_bytes), block);
    batch.push_back(requests[block]);
  };

  Measured measured;
  const TimeNs start_ns = monotonic_now_ns();
  const TimeNs end_ns = start_ns + static_cast<TimeNs>(settings.seconds * 1e9);
  for (std::uint64_t block = 0; block < settings.queue_depth; ++block) renew(block);
  engine.submit(batch);
  while (engine.inflight_count() > 0) {
    const std::size_t count = engine.reap(completions, 1);
    const bool goes_on = monotonic_now_ns() < end_ns;
    batch.clear();
    for (IoCompletion& completion : std::span(completions).first(count)) {
      RETURN_IF_ERROR(std::move(completion.status));
      const bool wrote = requests[completion.user_data].direction == IoDirection::write;
      (wrote ? measured.written_bytes : measured.read_bytes) += settings.block_bytes;
      if (goes_on) renew(completion.user_data);
    }
    engine.submit(batch);
  }
  measured.dur_ns = monotonic_now_ns() - start_ns;
  return measured;
}

Result<Measured> measure(const Settings& settings) {
  ASSIGN_OR_RETURN(const File file, prepare_file(settings));
  ASSIGN_OR_RETURN(PageAlignedBuffer memory,
                   PageAlignedBuffer::allocate(settings.block_bytes *
                                               static_cast<std::int64_t>(settings.queue_depth)));
  ASSIGN_OR_RETURN(const std::unique_ptr<IoEngine> engine,
                   open_io_engine({.kind = settings.engine,
                                   .queue_depth = settings.queue_depth,
                                   .thread_count = settings.thread_count}));
  const std::span<std::byte> bytes = memory.bytes();
  if (settings.registers_buffers) RETURN_IF_ERROR(engine->register_buffers(std::span(&bytes, 1)));
  return run(settings, *engine, file, memory);
}

Status check(const Settings& settings) {
  if (settings.block_bytes > 0 && settings.block_bytes % kPageBytes == 0 &&
      settings.size_bytes % settings.block_bytes == 0 && settings.size_bytes > 0)
    return ok_status();
  return make_error(ErrorCode::config,
                    "--block must be a multiple of {} bytes and --size a multiple of --block",
                    kPageBytes);
}

void print(const Settings& settings, const Measured& measured) {
  if (settings.json) {
    fmt::print(
        "{{\"read_bytes\": {}, \"written_bytes\": {}, \"seconds\": {:.6f}, \"rate\": {:.0f}}}\n",
        measured.read_bytes, measured.written_bytes, static_cast<double>(measured.dur_ns) / 1e9,
        measured.rate());
    return;
  }
  fmt::print("{}: {} (read {}, written {}, in {})\n",
             settings.engine == IoEngineKind::io_uring ? "io_uring" : "posix",
             format_rate(measured.rate()), format_bytes(measured.read_bytes),
             format_bytes(measured.written_bytes), format_duration(measured.dur_ns));
}

}  // namespace
}  // namespace sluice::io

int main(int argument_count, char** arguments) {
  using namespace sluice;
  io::Settings settings;
  std::string size = "1 GiB";
  std::string block = "1 MiB";
  CLI::App app("Sequential bandwidth of one file (DIR/bench_io.data) through an I/O engine.");
  app.footer("Example: bench_io --dir /mnt/nvme0 --mix rw --depth 16 --seconds 3");
  app.add_option("--dir", settings.dir, "folder on the drive to measure")->capture_default_str();
  app.add_option("--size", size, "of the file")->capture_default_str();
  app.add_option("--block", block, "of one request")->capture_default_str();
  app.add_option("--depth", settings.queue_depth, "requests in flight")->capture_default_str();
  app.add_option("--seconds", settings.seconds, "how long")->capture_default_str();
  app.add_option("--mix", settings.mix, "read, write or rw (half and half)")
      ->transform(CLI::CheckedTransformer(std::map<std::string, io::Mix>{
          {"read", io::Mix::read}, {"write", io::Mix::write}, {"rw", io::Mix::mixed}}));
  app.add_option("--engine", settings.engine, "io_uring or posix")
      ->transform(CLI::CheckedTransformer(std::map<std::string, io::IoEngineKind>{
          {"io_uring", io::IoEngineKind::io_uring}, {"posix", io::IoEngineKind::posix}}));
  app.add_option("--threads", settings.thread_count, "of the posix engine")->capture_default_str();
  app.add_flag("!--no-registered-buffers", settings.registers_buffers, "plain reads and writes");
  app.add_flag("--json", settings.json, "print one JSON object");
  CLI11_PARSE(app, argument_count, arguments);

  const auto fail = [](const Error& error, int exit_code) {
    fmt::print(stderr, "bench_io: {}\n", error.message());
    return exit_code;
  };
  const auto size_bytes = parse_bytes(size);
  if (!size_bytes.ok()) return fail(size_bytes.error(), 2);
  const auto block_bytes = parse_bytes(block);
  if (!block_bytes.ok()) return fail(block_bytes.error(), 2);
  settings.size_bytes = *size_bytes;
  settings.block_bytes = *block_bytes;
  if (const Status usable = io::check(settings); !usable.ok()) return fail(usable.error(), 2);
  const auto measured = io::measure(settings);
  if (!measured.ok()) return fail(measured.error(), 1);
  io::print(settings, *measured);
  return 0;
}
