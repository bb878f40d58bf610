#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <random>
#include <regex>

#include "base/figure_text.h"
#include "base/program_name.h"
#include "base/shell_quoted.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/record_rules.h"
#include "profiler/sample/perf_rings.h"
#include "storage/rundb/query.h"
#include "storage/rundb/reader.h"
#include "storage/rundb/writer.h"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

struct RecordArguments {
  std::string output = "run.db";
  std::string step_marker;
  std::vector<std::string> rules;  // files
  int samples_per_second = 0;      // 0: none
  std::vector<std::string> command;
};

// Everything that is said here is said on stderr: stdout is the command's.
template <typename... Values>
void say(fmt::format_string<Values...> text, Values&&... values) {
  const std::string line = fmt::format(text, std::forward<Values>(values)...);
  std::fprintf(stderr, "sluice record: %s\n", escaped_for_terminal(line).c_str());
}

// Beside the databases; the processes are told by SLUICE_RECORD_RULES.
constexpr const char* kRulesFile = "rules";

fs::path folder_of(const std::string& output) { return output + ".processes"; }

// 1234.db, 1234.2.db and what SQLite puts beside them: nobody else's files are touched.
bool is_of_a_process(const fs::path& file) {
  static const std::regex name(R"(\d+(\.\d+)?\.db(-wal|-shm|-writer)?)");
  if (file.filename() == kRulesFile) return true;
  return std::regex_match(file.filename().string(), name);
}

Status make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return make_error(ErrorCode::config, "{}: cannot make the folder: {}", folder.string(),
                      error.message());
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (is_of_a_process(entry.path())) fs::remove(entry.path(), error);
  }
  return ok_status();
}

// What names mean, for the processes. Rules of the person come first, and so hold.
Result<std::string> rules_of(const RecordArguments& arguments, const std::string& library) {
  std::vector<std::string> files = arguments.rules;
  files.push_back((fs::path(library).parent_path() / "record_rules.toml").string());
  ASSIGN_OR_RETURN(const std::string lines, rule_lines(files));
  if (arguments.step_marker.empty()) return lines;
  ASSIGN_OR_RETURN(const std::string step, step_line(arguments.step_marker));
  return lines + step;
}

// Whether the kernel lets a process sample itself, before the program begins.
Status check_samples(int samples_per_second) {
  if (samples_per_second == 0) return ok_status();
  const auto rings = sample::PerfRings::open({.samples_per_second = samples_per_second});
  if (rings.ok()) return ok_status();
  return make_error(rings.error().code(), "{}; without --samples the rest is recorded",
                    rings.error().message());
}

Status write_rules(const std::string& lines, const fs::path& path) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  const bool is_written =
      file != nullptr && std::fwrite(lines.data(), 1, lines.size(), file) == lines.size();
  if (file == nullptr || std::fclose(file) != 0 || !is_written)
    return make_error(ErrorCode::io, "{}: cannot write it: {}", path.string(),
                      std::strerror(errno));
  return ok_status();
}

// As execvp(3) finds it; empty: not there.
fs::path program_of(const std::string& word) {
  if (word.find('/') != std::string::npos) return word;
  const char* const path = std::getenv("PATH");
  std::string_view left = path == nullptr ? "/bin:/usr/bin" : path;
  while (!left.empty()) {
    const std::size_t end = std::min(left.find(':'), left.size());
    const fs::path file = fs::path(left.substr(0, end)) / word;
    if (::access(file.c_str(), X_OK) == 0) return file;
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return {};
}

// Nothing can be put into a program that no loader starts, or that has another's rights.
void warn_of_what_hides(const fs::path& program) {
  std::error_code error;
  const fs::perms rights = fs::status(program, error).permissions();
  if (!error && (rights & (fs::perms::set_uid | fs::perms::set_gid)) != fs::perms::none) {
    say("{} runs with its owner's rights (setuid), so that nothing of it can be recorded",
        program.string());
  }
  std::FILE* const file = std::fopen(program.c_str(), "rb");
  if (file == nullptr) return;
  Elf64_Ehdr header{};
  bool is_elf = std::fread(&header, sizeof header, 1, file) == 1 &&
                std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
                header.e_ident[EI_CLASS] == ELFCLASS64;
  bool has_loader = false;
  for (int i = 0; is_elf && i < header.e_phnum; ++i) {
    Elf64_Phdr part{};
    const auto at = static_cast<long>(header.e_phoff) + i * static_cast<long>(sizeof part);
    if (std::fseek(file, at, SEEK_SET) != 0 || std::fread(&part, sizeof part, 1, file) != 1) break;
    has_loader = has_loader || part.p_type == PT_INTERP;
  }
  std::fclose(file);
  if (is_elf && !has_loader) {
    say("{} is statically linked, so that nothing of it can be recorded, but what it starts",
        program.string());
  }
}

// The variable is a list with colons.
void put_in_front(const char* name, const std::string& word) {
  const char* const before = std::getenv(name);
  const bool is_empty = before == nullptr || *before == '\0';
  ::setenv(name, is_empty ? word.c_str() : (word + ":" + before).c_str(), 1);
}

[[noreturn]] void become(const RecordArguments& arguments, const std::string& library,
                         const fs::path& folder) {
  put_in_front("LD_PRELOAD", library);
  put_in_front("PYTHONPATH", (fs::path(library).parent_path() / "record_python").string());
  ::setenv("SLUICE_RECORD_FOLDER", fs::absolute(folder).c_str(), 1);
  ::setenv("SLUICE_RECORD_ID", fmt::format("{}-{:08x}", ::getpid(), std::random_device()()).c_str(),
           1);
  ::setenv("SLUICE_RECORD_RULES", (fs::absolute(folder) / kRulesFile).c_str(), 1);
  ::setenv("SLUICE_RECORD_SAMPLES", fmt::format("{}", arguments.samples_per_second).c_str(), 1);
  // Another tool that is to have the ranges, or the GPU, keeps them.
  ::setenv("NVTX_INJECTION64_PATH", fs::absolute(library).c_str(), 0);
  ::setenv("CUDA_INJECTION64_PATH", fs::absolute(library).c_str(), 0);
  std::vector<char*> words;
  for (const std::string& word : arguments.command)
    words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  const int error = errno;
  say("{}: {}", arguments.command.front(), std::strerror(error));
  ::_exit(error == ENOENT ? 127 : 126);
}

volatile sig_atomic_t child_id = 0;

// Ctrl-C reaches the command by itself, which decides what comes of it. The rest is handed on.
void hand_on(int signal) { ::kill(child_id, signal); }

// How a command ended, and what the system says that it moved.
struct Ended {
  int code = 0;  // or 128 and the signal that ended it, as a shell says it
  // From and to drives, with what it waited for: mapped files too, and what was read ahead; not
  // what the page cache had, or has still to write.
  std::int64_t read_from_drives = 0;
  std::int64_t written_to_drives = 0;
};

Ended ended_with(int status, const rusage& used) {
  constexpr std::int64_t kBlock = 512;  // getrusage(2)
  return {.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
          .read_from_drives = used.ru_inblock * kBlock,
          .written_to_drives = used.ru_oublock * kBlock};
}

Ended run_command(const RecordArguments& arguments, const std::string& library,
                  const fs::path& folder) {
  const pid_t child = ::fork();
  if (child < 0) {
    say("cannot start a process: {}", std::strerror(errno));
    return {.code = kFailed};
  }
  if (child == 0) become(arguments, library, folder);
  child_id = child;
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGQUIT, SIG_IGN);
  for (const int signal : {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) ::signal(signal, hand_on);
  int status = 0;
  rusage used{};
  while (::wait4(child, &status, 0, &used) < 0 && errno == EINTR) {
  }
  return ended_with(status, used);
}

// What one process left.
struct Recorded {
  fs::path file = {};
  std::string command = {};
  std::int64_t operations = 0;
  std::int64_t lost = 0;
  std::int64_t read = 0;
  std::int64_t written = 0;
};

Result<Recorded> recorded_in(const fs::path& file) {
  ASSIGN_OR_RETURN(const auto reader, rundb::Reader::open(file.string()));
  Recorded recorded{.file = file};
  ASSIGN_OR_RETURN(const auto meta, reader->meta());
  for (const rundb::MetaRow& row : meta) {
    if (row.key == "name") recorded.command = row.value;
  }
  ASSIGN_OR_RETURN(const auto links, reader->link_totals());
  for (const rundb::LinkTotals& link : links)
    (link.direction == rundb::Direction::read ? recorded.read : recorded.written) += link.bytes;
  RETURN_IF_ERROR(rundb::Query(*reader).each_row(
      "SELECT count(*) FROM span JOIN track ON track.id = track_id WHERE kind = 'thread'",
      [&recorded](std::span<const rundb::Cell> row) {
        recorded.operations = std::get<std::int64_t>(row[0]);
        return ok_status();
      }));
  ASSIGN_OR_RETURN(const auto losses, reader->losses());
  for (const rundb::StatRow& loss : losses) recorded.lost += loss.value;
  return recorded;
}

// Those that moved something, the one with the most operations first. Locks of processes that are
// gone go with them.
std::vector<Recorded> all_recorded(const fs::path& folder) {
  std::vector<fs::path> databases;
  std::error_code error;
  fs::remove(folder / kRulesFile, error);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".db-writer") fs::remove(entry.path(), error);
    if (entry.path().extension() == ".db") databases.push_back(entry.path());
  }
  std::vector<Recorded> all;
  for (const fs::path& file : databases) {
    Result<Recorded> recorded = recorded_in(file);
    if (!recorded.ok()) {
      say("{}", recorded.error().message());
    } else if (recorded->read + recorded->written > 0) {
      all.push_back(std::move(*recorded));
    } else {
      fs::remove(file, error);
    }
  }
  std::ranges::sort(all, std::greater<>(), &Recorded::operations);
  return all;
}

void remove_database(const fs::path& file) {
  std::error_code error;
  for (const char* const beside : {"", "-wal", "-shm"}) fs::remove(file.string() + beside, error);
}

void move_database(const fs::path& from, const fs::path& to) {
  for (const char* const beside : {"", "-wal", "-shm"}) {
    if (fs::exists(from.string() + beside))
      fs::rename(from.string() + beside, to.string() + beside);
  }
}

void say_what_was_recorded(const RecordArguments& arguments, const fs::path& folder,
                           const Ended& ended) {
  const std::vector<Recorded> all = all_recorded(folder);
  if (all.empty()) {
    std::error_code error;
    fs::remove(folder, error);
    say("nothing was recorded: no file was read or written by functions of the C library that can "
        "be seen (docs/recording.md, \"A program as it is\")");
    return;
  }
  const Recorded& first = all.front();
  move_database(first.file, arguments.output);
  say("{}: {} operations, {} read, {} written, of: {}", arguments.output,
      format_whole(first.operations), format_bytes(first.read), format_bytes(first.written),
      first.command);
  if (first.lost > 0) {
    say("{} more operations are lost: they came faster than they could be written",
        format_whole(first.lost));
  }
  if (all.size() == 1) {
    std::error_code error;
    fs::remove(folder, error);
  } else {
    say("{} more {} in {}; all in one: sluice merge {} -o all.db", all.size() - 1,
        all.size() == 2 ? "process is" : "processes are", folder.string(),
        shell_quoted(arguments.output));
  }
  say("by the system's count {} came from drives and {} went to them (with mapped files and "
      "reading "
      "ahead; what the page cache had came from none)",
      format_bytes(ended.read_from_drives), format_bytes(ended.written_to_drives));
  say("look: sluice show {0}; sluice-gui {0}", shell_quoted(arguments.output));
}

Result<int> record(RecordArguments arguments) {
  for (std::string& word : arguments.command) {
    if (!word.starts_with(kOthersWord))
      return make_error(ErrorCode::config, "put -- in front of the command: sluice record -- {}",
                        word);
    word.erase(0, 1);
  }
  const std::string library = path_of_library("libsluice_inject.so");
  if (!fs::exists(library))
    return make_error(ErrorCode::config, "{}: is not there; build the target sluice_inject",
                      library);
  RETURN_IF_ERROR(check_samples(arguments.samples_per_second));
  ASSIGN_OR_RETURN(const std::string rules, rules_of(arguments, library));
  RETURN_IF_ERROR(rundb::Writer::check_path(arguments.output));
  const fs::path folder = folder_of(arguments.output);
  RETURN_IF_ERROR(make_folder(folder));
  RETURN_IF_ERROR(write_rules(rules, folder / kRulesFile));
  remove_database(arguments.output);
  const fs::path program = program_of(arguments.command.front());
  if (!program.empty()) warn_of_what_hides(program);
  const Ended ended = run_command(arguments, library, folder);
  say_what_was_recorded(arguments, folder, ended);
  return ended.code;
}

}  // namespace

void add_record_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<RecordArguments>();
  CLI::App* command = app.add_subcommand(
      "record", "Runs any program and records what it moves to and from drives, and when");
  command->add_option("-o,--output", arguments->output,
                      "the database to write (default: run.db); a run database there is replaced");
  command->add_option("--step-marker", arguments->step_marker,
                      "each range of this name is a step: of NVTX, or of sluice.span()");
  command->add_option("--rules", arguments->rules,
                      "what names of ranges and files mean, before lib/record_rules.toml");
  command
      ->add_option("--samples", arguments->samples_per_second,
                   "samples of the processors: so many a second of each running thread, such as "
                   "99 (default: none)")
      ->check(CLI::Range(0, sample::kSamplesPerSecondMax));
  command->add_option("command", arguments->command, "the program and its arguments, behind --")
      ->required();
  command->footer(
      "The exit code is the command's. Its other processes are in OUTPUT.processes. What is seen:\n"
      "read, write, fsync, Linux aio, io_uring and their kin; ranges of NVTX and of "
      "sluice.span();\n"
      "with torch forward, backward and steps.\n"
      "docs/recording.md: \"A program as it is\".\n"
      "Examples:\n"
      "  sluice record -- dd if=/dev/zero of=file bs=1M count=100 oflag=direct\n"
      "  sluice record -o load.db -- python train.py --epochs 1\n"
      "  sluice record --samples 99 -- python train.py   (then: sluice show run.db --samples)\n"
      "  sluice record --step-marker train_step -- torchrun --nproc-per-node 4 train.py");
  command->callback([arguments, &exit_code] {
    const Result<int> code = record(*arguments);
    exit_code = code.ok() ? *code : report_error(code.error());
  });
}

}  // namespace sluice::cli
