#include "gui/data/new_run.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/free_path.h"
#include "gui/data/child_process.h"
#include "gui/data/like_run.h"

namespace sluice::gui {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLineMax = 600;

std::string first_sentence(const fs::path& path) {
  std::ifstream file(path);
  std::string text;
  for (std::string line; std::getline(file, line) && line.starts_with('#');) {
    const std::size_t begin = line.find_first_not_of("# ");
    if (begin == std::string::npos) break;
    text += (text.empty() ? "" : " ") + line.substr(begin);
  }
  const std::size_t end = text.find(". ");
  return end == std::string::npos ? text : text.substr(0, end + 1);
}

Error no_program() {
  return make_error(ErrorCode::not_found,
                    "the program `sluice` is neither beside sluice-gui nor in PATH; it trains");
}

}  // namespace

std::vector<SampleRun> sample_runs_in(const std::string& folder) {
  std::vector<SampleRun> runs;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() != ".toml") continue;
    runs.push_back({.name = entry->path().stem().string(),
                    .path = fs::absolute(entry->path()).lexically_normal().string(),
                    .comment = first_sentence(entry->path())});
  }
  std::ranges::sort(runs, {}, &SampleRun::name);
  return runs;
}

std::vector<SampleRun> sample_runs() {
  const fs::path runs = fs::path("sample_models") / "runs";
  std::vector<SampleRun> here = sample_runs_in(runs.string());
  if (!here.empty()) return here;
  std::error_code error;
  // build/PRESET/bin/sluice-gui
  const fs::path own = fs::read_symlink("/proc/self/exe", error);
  if (error) return here;
  return sample_runs_in((own.parent_path() / ".." / ".." / ".." / runs).string());
}

Result<StartedRun> start_run(const std::string& program, const SampleRun& run,
                             const std::string& folder) {
  if (program.empty()) return no_program();
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return make_error(ErrorCode::io, "{}: {}", folder, error.message());
  const fs::path output = free_path(fs::absolute(folder), run.name);
  StartedRun started;
  started.database = (output / "run.db").string();
  started.log = output.string() + ".log";
  ASSIGN_OR_RETURN(started.process, start_detached({program, "train", run.path, "--set",
                                                    "output=" + output.string()},
                                                   started.log));
  return started;
}

std::string free_output(const LikeRun& run) {
  const fs::path database(run.database);
  if (run.is_simulated) {
    return free_path(database.parent_path(), without_number(database.stem().string()), ".db")
        .string();
  }
  // A rank's record is in a folder of its own in that of the run.
  const fs::path folder =
      run.is_of_rank ? database.parent_path().parent_path() : database.parent_path();
  return free_path(folder.parent_path(), without_number(folder.filename().string())).string();
}

Result<StartedRun> start_like(const std::string& program, const LikeRun& run) {
  if (program.empty()) return no_program();
  const std::string output = free_output(run);
  StartedRun started;
  std::vector<std::string> arguments = launcher_words(run);
  const fs::path of_first = arguments.empty() ? "run.db" : "rank-0/run.db";
  started.database = run.is_simulated ? output : (fs::path(output) / of_first).string();
  started.log = output + ".log";
  if (!arguments.empty()) {
    arguments.front() = find_program(arguments.front());
    if (arguments.front().empty()) {
      return make_error(ErrorCode::not_found,
                        "mpirun is not in PATH; it begins a run of several ranks");
    }
  }
  arguments.push_back(program);
  const std::vector<std::string> behind = like_arguments(run, output);
  arguments.insert(arguments.end(), behind.begin(), behind.end());
  ASSIGN_OR_RETURN(started.process, start_detached(arguments, started.log));
  return started;
}

std::string last_log_line(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(0, std::ios::end);
  const auto size = static_cast<std::streamoff>(file.tellg());
  if (!file || size <= 0) return {};
  constexpr std::streamoff kTail = 4096;
  file.seekg(std::max<std::streamoff>(0, size - kTail));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t end = text.find_last_not_of(" \r\n");
  if (end == std::string::npos) return {};
  const std::size_t line = text.find_last_of("\r\n", end);
  const std::size_t begin = line == std::string::npos ? 0 : line + 1;
  return text.substr(begin, std::min(kLineMax, end - begin + 1));
}

}  // namespace sluice::gui
