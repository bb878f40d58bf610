// The parts that this machine has, and advice about the missing ones. Every line is found out by
// trying, not by looking for a file.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/escaped_text.h"
#include "base/process_limits.h"
#include "base/shell_quoted.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "core/model/model_library.h"
#include "hls/host/xrt_devices.h"
#include "profiler/cupti/cupti_recording.h"
#include "storage/io/io_engine.h"
#include "storage/io/page_aligned_buffer.h"

namespace sluice::cli {
namespace {

constexpr int kFindingColumn = 34;
constexpr const char* kWindowSeconds = "20";  // a display that cannot be reached may never answer

void print_line(bool good, const std::string& what, const std::string& finding) {
  std::string head = fmt::format("  {}  {:<26} ", good ? "yes" : "no ", what);
  if (columns_of(head) > kFindingColumn) {  // a long folder has a line of its own
    head += "\n" + std::string(kFindingColumn, ' ');
  }
  print_lines(head + in_column(finding, std::min(80, terminal_columns()), kFindingColumn));
}

void check_engine(io::IoEngineKind kind, const char* name) {
  io::IoEngineOptions options;
  options.kind = kind;
  const auto engine = io::open_io_engine(options);
  print_line(engine.ok(), name,
             engine.ok() ? "transfers can be submitted" : engine.error().message());
}

void check_direct_io(const std::string& directory) {
  const std::string path =
      (std::filesystem::path(directory) / fmt::format(".sluice-doctor-{}", getpid())).string();
  const auto file = io::File::open(path, {io::FileAccess::create_new, io::Caching::direct});
  if (!file.ok()) {
    print_line(false, "O_DIRECT", directory + ": " + file.error().message());
    return;
  }
  auto buffer = io::PageAlignedBuffer::allocate(kPageBytes);
  const Status written = buffer.ok() ? file->write_exactly(0, buffer->bytes()) : ok_status();
  unlink(path.c_str());
  print_line(
      written.ok(), "O_DIRECT",
      directory + ": " +
          (written.ok() ? "a page was written around the page cache" : written.error().message()));
}

// A run of the smallest sample takes a quarter of a gigabyte and 20 files.
void check_limits(const ProcessFacts& process) {
  constexpr std::int64_t kFewFiles = 256;
  const ProcessLimit processors = processor_limit(process);
  print_line(true, "processors",
             fmt::format("{} of {} ({})", processors.count, process.machine_processor_count,
                         processors.what));
  const ProcessLimit memory = memory_limit(process);
  print_line(memory.count > (2LL << 30), "memory",
             fmt::format("{} ({})", format_bytes(memory.count), memory.what));
  const ProcessLimit files = open_file_limit(process);
  print_line(files.count >= kFewFiles, "open files",
             files.is_limited() ? fmt::format("{} ({})", files.count, files.what) : "no limit");
  const ProcessLimit size = file_size_limit(process);
  print_line(!size.is_limited(), "size of a file",
             size.is_limited()
                 ? fmt::format("{} ({}): a run needs files as large as a device's part "
                               "of the state",
                               format_bytes(size.count), size.what)
                 : "no limit");
}

void check_locked_memory() {
  rlimit limit = {};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  const bool unlimited = limit.rlim_cur == RLIM_INFINITY || geteuid() == 0;
  print_line(unlimited || limit.rlim_cur > (1ULL << 30), "locked memory",
             unlimited ? "no limit: transfers can use registered buffers"
                       : fmt::format("limit {}: raise it with `ulimit -l` for registered buffers",
                                     format_bytes(static_cast<std::int64_t>(limit.rlim_cur))));
}

// Its first line ends in the version: "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06".
void check_driver() {
  constexpr const char* kPath = "/proc/driver/nvidia/version";
  std::ifstream file(kPath);
  std::string line;
  const bool is_there = static_cast<bool>(std::getline(file, line));
  print_line(is_there, "NVIDIA driver",
             is_there ? escaped_for_terminal(line)
                      : fmt::format("there is no {}: device=cuda needs the driver", kPath));
}

std::string gpu_text(const model::DeviceReport& report) {
  if (!report.has_cuda_build) {
    return "not asked: this libtorch computes on the processor (scripts/cuda_build builds against "
           "one that does not)";
  }
  if (!report.problem.empty()) return report.problem;
  if (report.gpus.empty()) return "none that libtorch can use: is the driver loaded?";
  std::string text = fmt::format("{} for device=cuda:", report.gpus.size());
  for (std::size_t i = 0; i < report.gpus.size(); ++i) {
    text += fmt::format("{} cuda:{} {} free of {}", i == 0 ? "" : ",", i,
                        format_bytes(report.gpus[i].free_bytes),
                        format_bytes(report.gpus[i].memory_bytes));
  }
  return text;
}

std::string peer_text(const model::DeviceReport& report) {
  const std::size_t count = report.gpus.size();
  if (count < 2) return "not asked: it takes two GPUs";
  if (!report.peer_pairs) return "not asked: the CUDA runtime beside libtorch does not answer";
  return fmt::format("{} of {} pairs reach each other's memory", *report.peer_pairs,
                     count * (count - 1));
}

void check_accelerators() {
  check_driver();
  const auto models = model::load_model_library();
  if (!models.ok()) {
    print_line(false, "libtorch", escaped_for_terminal(models.error().message()));
    return;
  }
  const model::DeviceReport report = (*models)->report_devices();
  std::string build = "libtorch " + report.torch_version;
  build += !report.has_cuda_build ? ", a CPU build" : ", a CUDA build";
  if (report.cuda_version > 0) {
    build +=
        fmt::format(" (CUDA {}.{})", report.cuda_version / 1000, report.cuda_version % 1000 / 10);
  }
  print_line(report.has_cuda_build, "libtorch with CUDA", build);
  print_line(!report.gpus.empty(), "GPU (device=cuda)", gpu_text(report));
  print_line(report.peer_pairs.value_or(0) > 0, "GPU to GPU", peer_text(report));
  const auto tracing = cupti::probe();
  print_line(tracing.ok(), "CUPTI (GPU activity)",
             tracing.ok() ? *tracing + ": device=cuda records it with record=all"
                          : tracing.error().message());
  print_line(report.soft_problem.empty(), "device=soft",
             escaped_for_terminal(report.soft_problem.empty()
                                      ? "the software accelerator: " + report.soft_library
                                      : report.soft_problem));
}

void check_hardware(const std::string& directory, const std::string& xclbin) {
  check_accelerators();
  for (const hls_host::XrtFinding& finding : hls_host::examine_xrt(directory, xclbin)) {
    print_line(finding.is_good, finding.what, escaped_for_terminal(finding.text));
  }
}

std::string text_of(std::FILE* pipe) {
  std::string text;
  std::array<char, 4096> piece{};
  for (std::size_t size = 0; (size = std::fread(piece.data(), 1, piece.size(), pipe)) > 0;) {
    text.append(piece.data(), size);
  }
  return text;
}

// By opening a window that is not shown.
void check_window() {
  constexpr const char* kWindow = "window (sluice-gui)";
  std::error_code error;
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / "sluice-gui";
  if (access(program.c_str(), X_OK) != 0) {
    print_line(
        false, kWindow,
        fmt::format("there is no {}: build the target sluice-gui (scripts/setup installs "
                    "what it needs); `sluice show` and `sluice report` say the same of a run",
                    program.string()));
    return;
  }
  const std::string command = fmt::format("timeout {} {} --check 2>/dev/null", kWindowSeconds,
                                          shell_quoted(program.string()));
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) {
    print_line(false, kWindow,
               fmt::format("{} cannot be run: {}", program.string(), std::strerror(errno)));
    return;
  }
  std::string said = text_of(pipe);
  const int status = pclose(pipe);
  while (!said.empty() && said.back() == '\n') said.pop_back();
  const bool is_late = WIFEXITED(status) && WEXITSTATUS(status) == 124;
  if (is_late) said = fmt::format("the display does not answer within {} s", kWindowSeconds);
  print_line(status == 0, kWindow, escaped_for_terminal(said));
}

}  // namespace

void add_doctor_command(CLI::App& app, int& exit_code) {
  auto directory = std::make_shared<std::string>(".");
  auto xclbin = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("doctor", "What this machine has, and what to do about the rest");
  command->add_option("directory", *directory, "where the state would lie (default: here)");
  command->add_option("--xclbin", *xclbin, "a file for backend=xrt, to look at its kernels");
  command->footer("Example: sluice doctor /mnt/nvme0");
  command->callback([directory, xclbin, &exit_code] {
    std::error_code error;
    if (!std::filesystem::is_directory(*directory, error)) {
      exit_code =
          report_error(make_error(ErrorCode::not_found, "there is no folder {}", *directory));
      return;
    }
    const ProcessFacts process = process_facts();
    print("sluice {}, {} processors\n", SLUICE_VERSION, processor_limit(process).count);
    check_engine(io::IoEngineKind::io_uring, "io_uring");
    check_engine(io::IoEngineKind::posix, "posix (io_engine=posix)");
    check_direct_io(*directory);
    const auto space = std::filesystem::space(*directory, error);
    if (!error) {
      const auto free_bytes = static_cast<std::int64_t>(space.available);
      print_line(true, "space in " + *directory,
                 fmt::format("{} free: room for the state of {} parameters (28 B each with adamw)",
                             format_bytes(free_bytes),
                             format_count(static_cast<double>(free_bytes) / 28)));
    }
    check_limits(process);
    check_locked_memory();
    check_hardware(*directory, *xclbin);
    check_window();
  });
}

}  // namespace sluice::cli
