#include "cli/samples_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/escaped_text.h"
#include "base/figure_text.h"
#include "base/kernel_text.h"
#include "base/units.h"
#include "cli/terminal.h"
#include "profiler/analyze/answer.h"

namespace sluice::cli {
namespace {

using analyze::SampledFunction;
using analyze::SampledFunctions;

constexpr std::size_t kThreadsShown = 8;
constexpr std::size_t kStagesShown = 6;
constexpr std::size_t kFunctionsOfStage = 5;
// From here on a line names the function's library.
constexpr int kLibraryFromColumns = 76;
constexpr int kLibraryColumns = 18;

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

// "  43 % +-3   at::native::...            libtorch_cpu.so"
std::string function_line(const SampledFunctions& of, const SampledFunction& function,
                          std::int64_t count, int columns) {
  const bool has_library = columns >= kLibraryFromColumns;
  const int name_columns = std::max(12, columns - 16 - (has_library ? kLibraryColumns + 1 : 0));
  std::string name = escaped_for_terminal(
      short_kernel_name(what_runs(function.name), static_cast<std::size_t>(name_columns)));
  name = cut_to(name, static_cast<std::size_t>(name_columns));
  std::string line = fmt::format("  {:>5} +-{:<4} {}", percent(of.share(count)),
                                 fmt::format("{:.0f}", of.uncertain_points(count)), name);
  if (has_library && !function.library.empty() && !function.name.starts_with(function.library)) {
    line = padded(line, columns - kLibraryColumns) +
           cut_to(escaped_for_terminal(function.library), kLibraryColumns);
  }
  return line + "\n";
}

std::string functions_text(const SampledFunctions& of, const std::vector<SampledFunction>& list,
                           std::int64_t SampledFunction::* count, std::size_t count_max,
                           int columns) {
  std::string text;
  for (std::size_t i = 0; i < std::min(list.size(), count_max); ++i)
    text += function_line(of, list[i], list[i].*count, columns);
  return text;
}

std::string threads_text(const analyze::SampledTime& time, int columns) {
  const int name_columns = std::clamp(columns - 42, 8, 24);
  std::string text = fmt::format("  {:<{}} {:>8} {:>9} {:>8} {:>8}\n", "thread", name_columns,
                                 "running", "preempted", "waiting", "samples");
  for (std::size_t i = 0; i < std::min(time.threads.size(), kThreadsShown); ++i) {
    const analyze::SampledThread& thread = time.threads[i];
    const std::string name = fmt::format(
        "{} {}", escaped_for_terminal(thread.name.empty() ? "thread" : thread.name), thread.tid);
    text += fmt::format("  {} {:>8} {:>9} {:>8} {:>8}\n",
                        padded(cut_to(name, static_cast<std::size_t>(name_columns)), name_columns),
                        percent(thread.shares.running), percent(thread.shares.preempted),
                        percent(thread.shares.waiting), format_whole(thread.sample_count));
  }
  const std::size_t left_out = time.thread_count - std::min(time.thread_count, kThreadsShown);
  if (left_out > 0)
    text += wrapped(fmt::format("  and {} more that ran less (--json lists them)", left_out),
                    columns, "  ");
  return text;
}

std::string head_of(const analyze::SampledTime& time) {
  const std::string steps = time.steps ? analyze::name_of(*time.steps) : "the whole record";
  return fmt::format("Processor samples of {}, {}: {} in {} of running threads", steps,
                     format_duration(time.dur), format_whole(time.functions.sample_count),
                     format_duration(time.running_ns));
}

}  // namespace

std::string samples_text(const analyze::SampledTime& time, int columns) {
  if (!time.why_none.empty() && time.threads.empty())
    return wrapped("Processor samples: " + time.why_none + ".", columns, "  ");
  std::string text = wrapped(head_of(time) + ".", columns, "  ");
  if (time.lost_count > 0)
    text += wrapped(
        fmt::format("{} more records were lost in the whole run.", format_whole(time.lost_count)),
        columns, "  ");
  text += threads_text(time, columns);
  if (!time.why_none.empty())
    return text + wrapped(analyze::sentence_of(time.why_none), columns, "  ");
  text += "Functions by their own time, +- points of uncertainty:\n";
  text += functions_text(time.functions, time.functions.by_self, &SampledFunction::self_count,
                         analyze::kSampledFunctionsMax, columns);
  text += "By their time with what they called:\n";
  text += functions_text(time.functions, time.functions.by_total, &SampledFunction::total_count,
                         analyze::kSampledFunctionsMax, columns);
  for (std::size_t i = 0; i < std::min(time.stages.size(), kStagesShown); ++i) {
    const analyze::SampledStage& stage = time.stages[i];
    const std::string threads =
        stage.threads.empty() ? "all threads" : fmt::format("threads named {}", stage.threads);
    text += wrapped(
        fmt::format("While {} was under way, {} samples of {}:", escaped_for_terminal(stage.name),
                    format_whole(stage.functions.sample_count), threads),
        columns, "  ");
    text += functions_text(stage.functions, stage.functions.by_self, &SampledFunction::self_count,
                           kFunctionsOfStage, columns);
  }
  return text;
}

}  // namespace sluice::cli
