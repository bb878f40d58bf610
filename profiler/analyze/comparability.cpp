#include "profiler/analyze/comparability.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "profiler/analyze/settings_text.h"

namespace sluice::analyze {
namespace {

using Facts = std::map<std::string, std::string>;

std::string value_of(const Facts& facts, const std::string& key) {
  const auto found = facts.find(key);
  return found == facts.end() ? std::string() : found->second;
}

class Judge {
 public:
  Judge(const Facts& a, const Facts& b) : a_(a), b_(b) {}

  void fact(const char* what, const std::string& a, const std::string& b, const char* meaning) {
    if (a.empty() && b.empty()) {
      found_.unknown.emplace_back(what);
    } else if (a == b) {
      found_.same.emplace_back(what);
    } else {
      found_.mismatches.push_back(
          {what, a.empty() ? kNotRecorded : a, b.empty() ? kNotRecorded : b, meaning});
    }
  }

  void setting(const char* what, const char* key, const char* meaning) {
    fact(what, value_of(a_, key), value_of(b_, key), meaning);
  }

  // A TOML file as it was when the run began; its comments and its name do not count.
  void file(const char* what, const char* key, const char* meaning) {
    const std::vector<std::string> a = settings_in(value_of(a_, key));
    const std::vector<std::string> b = settings_in(value_of(b_, key));
    if (a.empty() || b.empty() || a == b) {
      fact(what, a.empty() ? "" : "recorded", b.empty() ? "" : "recorded", meaning);
      return;
    }
    found_.mismatches.push_back({what, only_in(a, b), only_in(b, a), meaning});
  }

  Comparability found() && { return std::move(found_); }

 private:
  // The lines that the other has not, a few of them.
  static std::string only_in(const std::vector<std::string>& lines,
                             const std::vector<std::string>& other) {
    constexpr std::size_t kShown = 4;
    std::vector<std::string> own;
    std::ranges::set_difference(lines, other, std::back_inserter(own));
    if (own.empty()) return "without these lines";
    const std::size_t more = own.size() > kShown ? own.size() - kShown : 0;
    own.resize(own.size() - more);
    const std::string text = fmt::format("{}", fmt::join(own, ", "));
    return more == 0 ? text : fmt::format("{}, and {} more", text, more);
  }

  const Facts& a_;
  const Facts& b_;
  Comparability found_;
};

bool has_clock(const Facts& facts, std::string_view clock) {
  return value_of(facts, "clock") == clock;
}

// "out/data/kjv.txt" and "/elsewhere/out/data/kjv.txt" may be one file, and are taken for one.
bool is_end_of(const std::string& end, const std::string& path) {
  return path.ends_with("/" + end);
}

void judge_text(const Facts& a, const Facts& b, Judge& judge) {
  const std::string of_a = value_of(a, "text");
  const std::string of_b = value_of(b, "text");
  const bool is_one =
      !of_a.empty() && !of_b.empty() && (is_end_of(of_a, of_b) || is_end_of(of_b, of_a));
  judge.fact("text", of_a, is_one ? of_a : of_b,
             "Losses are of different text; times and bytes are not touched by it.");
}

// The processor and how many there are, without the kernel's version.
std::string processor_of(const Facts& facts) {
  const std::string machine = value_of(facts, "machine");
  const std::size_t end = machine.rfind(" processors, ");
  return end == std::string::npos ? machine : machine.substr(0, end) + " processors";
}

void judge_work(const Facts& a, const Facts& b, Judge& judge) {
  const char* const model =
      "Another model is other work: times, bytes and losses differ by that alone.";
  if (value_of(a, "model_text").empty() || value_of(b, "model_text").empty()) {
    judge.setting("model", "parameters", model);
  } else {
    judge.file("model", "model_text", model);
  }
  if (!has_clock(a, "simulated") || !has_clock(b, "simulated")) judge_text(a, b, judge);
  const char* const amount =
      "A step is another amount of work, so its times and bytes say nothing "
      "about what was turned.";
  judge.setting("batch", "batch", amount);
  judge.setting("sequence", "sequence", amount);
  judge.setting("micro-batches", "grad_accum_steps", amount);
  judge.setting(
      "optimizer", "optimizer",
      "The optimizer state has another size and the update other arithmetic: times, bytes "
      "and losses change with it.");
  judge.setting("precision", "precision",
                "Parameters and gradients are other numbers: times and losses change with them.");
}

void judge_machine(const Facts& a, const Facts& b, Judge& judge) {
  if (!has_clock(a, "real") || !has_clock(b, "real")) {
    judge.file("platform", "platform_text",
               "Times are charged by another platform file: they differ by the hardware that it "
               "describes.");
  }
  if (!has_clock(a, "simulated") || !has_clock(b, "simulated")) {
    judge.fact("processor", processor_of(a), processor_of(b),
               "What is computed here takes other times on another processor.");
  }
  if (value_of(a, "method") == "csd" && value_of(b, "method") == "csd") {
    judge.setting("devices' kind", "backend",
                  "Cards update in one run, emulated devices in the other: the update is of other "
                  "hardware.");
  }
}

void judge_measuring(const Facts& a, const Facts& b, Judge& judge) {
  judge.setting("clock", "clock", "Seconds of different clocks cannot be compared.");
  if (has_clock(a, "emulated") && has_clock(b, "emulated")) {
    judge.setting("time scale", "time_scale",
                  "A second of the platform is recorded as a different time in each run.");
  }
  judge.setting("recording", "record",
                "Recording another level costs another time, and the lower one lacks operations.");
}

}  // namespace

Comparability comparability_of(const Facts& a, const Facts& b) {
  Judge judge(a, b);
  judge_work(a, b, judge);
  judge_machine(a, b, judge);
  judge_measuring(a, b, judge);
  return std::move(judge).found();
}

std::string listed(const std::vector<std::string>& names) {
  if (names.empty()) return "";
  const std::string last = names.back();
  if (names.size() == 1) return last;
  return fmt::format("{} and {}", fmt::join(names.begin(), names.end() - 1, ", "), last);
}

std::string names_of(const std::vector<Mismatch>& mismatches) {
  std::vector<std::string> names;
  for (const Mismatch& mismatch : mismatches) names.push_back(mismatch.what);
  return listed(names);
}

}  // namespace sluice::analyze
