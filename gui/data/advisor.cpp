#include "gui/data/advisor.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/check.h"
#include "base/mutex.h"
#include "gui/data/child_process.h"
#include "gui/data/published.h"

namespace sluice::gui {
namespace {

using nlohmann::json;

std::vector<std::string> arguments_of(const std::string& program, const std::string& database,
                                      Question question, const std::vector<std::string>& settings) {
  std::vector<std::string> arguments = {program};
  arguments.push_back(question == Question::tune    ? "tune"
                      : question == Question::knobs ? "knobs"
                                                    : "predict");
  arguments.insert(arguments.end(), {database, "--json"});
  if (question == Question::knobs) arguments.emplace_back("--recorded");
  arguments.insert(arguments.end(), settings.begin(), settings.end());
  return arguments;
}

template <typename Read>
Result<Advice> read_json(const std::string& text, Read&& read) {
  try {
    return read(json::parse(text));
  } catch (const json::exception& error) {
    return make_error(ErrorCode::corrupt, "its answer cannot be read: {}", error.what());
  }
}

analyze::PredictedChange change_of(const json& one) {
  return {.settings = one.at("settings").get<std::vector<std::string>>(),
          .from = one.at("from").get<std::vector<std::string>>(),
          .seconds = one.at("seconds").get<double>(),
          .change = one.at("change").get<double>(),
          .why = one.value("why", ""),
          .needs_new_run = one.at("needs_new_run").get<bool>()};
}

// "serial, handover, nbuffer"
std::vector<std::string> words_of(const std::string& values) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < values.size();) {
    const std::size_t comma = std::min(values.find(", ", begin), values.size());
    words.push_back(values.substr(begin, comma - begin));
    begin = comma + 2;
  }
  return words;
}

Result<Advice> parsed_answer(Question question, const std::string& text) {
  if (question == Question::tune) return parse_proposal(text);
  return question == Question::knobs ? parse_knobs(text) : parse_prediction(text);
}

}  // namespace

Result<Advice> parse_prediction(const std::string& text) {
  return read_json(text, [](const json& all) {
    Advice advice;
    // Where nothing can be predicted yet, there is a reason and no figures.
    advice.problem = all.value("unavailable", "");
    if (!advice.problem.empty()) return advice;
    analyze::PredictedChanges& predicted = advice.predicted;
    predicted.fit_error = all.at("fit_error").get<double>();
    predicted.simulated_count = all.at("simulated_count").get<int>();
    predicted.caution = all.value("caution", "");
    for (const json& one : all.at("predictions")) predicted.each.push_back(change_of(one));
    const auto together = all.find("together");
    if (together != all.end() && !together->is_null()) predicted.together = change_of(*together);
    return advice;
  });
}

Result<Advice> parse_proposal(const std::string& text) {
  return read_json(text, [](const json& all) {
    Advice advice;
    const double before = all.at("seconds").at("before").get<double>();
    analyze::PredictedChange change;
    change.seconds = all.at("seconds").at("after").get<double>();
    change.change = before > 0 ? change.seconds / before - 1 : 0;
    for (const json& one : all.at("changes")) {
      const auto key = one.at("key").get<std::string>();
      change.settings.push_back(key + "=" + one.at("to").get<std::string>());
      change.from.push_back(key + "=" + one.at("from").get<std::string>());
    }
    // A recorded run, to which the platform was fitted, says how well that went.
    const auto fit = all.find("fit");
    if (fit != all.end()) {
      advice.predicted.fit_error = fit->at("seconds").at("total").at("error").get<double>();
      for (const json& caveat : fit->at("caveats"))
        advice.predicted.caution += caveat.get<std::string>();
    }
    if (!change.settings.empty()) advice.predicted.each.push_back(std::move(change));
    return advice;
  });
}

// As core/control/messages.h has them, but words, which stand in `values` only.
Result<Advice> parse_knobs(const std::string& text) {
  return read_json(text, [](const json& all) {
    Advice advice;
    for (const json& one : all.at("knobs")) {
      control::Knob& knob = advice.knobs.emplace_back();
      knob.key = one.at("key").get<std::string>();
      knob.type = one.at("type").get<std::string>();
      if (one.contains("min")) knob.min = one["min"].get<double>();
      if (one.contains("max")) knob.max = one["max"].get<double>();
      knob.values = one.value("values", "");
      knob.unit = one.value("unit", "");
      knob.default_value = one.value("default", "");
      knob.help = one.value("help", "");
      knob.value = one.value("value", "");
      if (knob.type == "word") knob.words = words_of(knob.values);
    }
    return advice;
  });
}

struct Advisor::Shared {
  Shared(std::string path, AdvisorOptions advisor_options)
      : database(std::move(path)),
        options(std::move(advisor_options)),
        stop(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    CHECK_GE(stop, 0);
  }
  ~Shared() { ::close(stop); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  struct Asked {
    std::uint64_t number = 0;
    std::vector<std::string> settings;
    bool waits = false;
  };

  void work();
  // The one that a person waits for most; none: it is over.
  std::optional<Question> next(Asked& asked);
  Advice answer(Question question, const std::vector<std::string>& settings);

  const std::string database;
  const AdvisorOptions options;
  const int stop;  // readable: what is under way is no longer wanted
  std::array<Published<Advice>, kQuestions> answers;
  Mutex mutex;
  CondVar changed;
  std::array<Asked, kQuestions> asked GUARDED_BY(mutex);
  std::uint64_t last_number GUARDED_BY(mutex) = 0;
  bool is_over GUARDED_BY(mutex) = false;
  std::thread thread;
};

std::optional<Question> Advisor::Shared::next(Asked& taken) {
  const MutexLock lock(mutex);
  while (!is_over) {
    for (const Question question :
         {Question::knobs, Question::what_if, Question::tune, Question::suggest}) {
      Asked& one = asked[static_cast<std::size_t>(question)];
      if (!one.waits) continue;
      one.waits = false;
      taken = one;
      return question;
    }
    changed.wait(mutex);
  }
  return std::nullopt;
}

Advice Advisor::Shared::answer(Question question, const std::vector<std::string>& settings) {
  Advice advice;
  const std::string program = options.program.empty() ? find_sluice() : options.program;
  if (program.empty()) {
    advice.problem =
        "The program `sluice` is neither beside sluice-gui nor in PATH; it does the simulation.";
    return advice;
  }
  const auto output = run_child(arguments_of(program, database, question, settings), stop);
  if (!output.ok()) {
    advice.problem = output.error().message();
  } else if (output->exit_code != 0) {
    advice.problem = why_failed(program, *output);
  } else {
    Result<Advice> parsed = parsed_answer(question, output->out);
    if (parsed.ok()) return *std::move(parsed);
    advice.problem = parsed.error().with_context(program).message();
  }
  return advice;
}

void Advisor::Shared::work() {
  Asked taken;
  for (auto question = next(taken); question; question = next(taken)) {
    Advice advice = answer(*question, taken.settings);
    advice.number = taken.number;
    advice.settings = taken.settings;
    answers[static_cast<std::size_t>(*question)].publish(
        std::make_shared<const Advice>(std::move(advice)));
    options.wake();
  }
}

Advisor::Advisor(const std::string& database, AdvisorOptions options)
    : shared_(std::make_unique<Shared>(database, std::move(options))) {
  shared_->thread = std::thread([shared = shared_.get()] { shared->work(); });
}

Advisor::~Advisor() {
  {
    const MutexLock lock(shared_->mutex);
    shared_->is_over = true;
    shared_->changed.notify_all();
  }
  const std::uint64_t once = 1;
  [[maybe_unused]] const ssize_t written = ::write(shared_->stop, &once, sizeof once);
  shared_->thread.join();
}

std::uint64_t Advisor::ask(Question question, std::vector<std::string> settings) {
  const MutexLock lock(shared_->mutex);
  Shared::Asked& asked = shared_->asked[static_cast<std::size_t>(question)];
  asked = {++shared_->last_number, std::move(settings), true};
  shared_->changed.notify_all();
  return asked.number;
}

std::shared_ptr<const Advice> Advisor::advice(Question question) const {
  return shared_->answers[static_cast<std::size_t>(question)].latest();
}

bool Advisor::is_working(Question question) const {
  const std::shared_ptr<const Advice> last = advice(question);
  const MutexLock lock(shared_->mutex);
  const std::uint64_t number = shared_->asked[static_cast<std::size_t>(question)].number;
  return number != 0 && (last == nullptr || last->number != number);
}

}  // namespace sluice::gui
