// Against small scripts that stand in for the program `sluice`.

#include "gui/data/advisor.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <thread>

#include "gui/data/child_process.h"
#include "tests/gui/data/feed_fixture.h"

namespace sluice::gui {
namespace {

std::string script(const TempFolder& folder, const std::string& text) {
  const std::string path = folder.file("sluice");
  std::ofstream(path) << "#!/bin/sh\n" << text;
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

std::string read_file(const std::string& path) { return report::text_of_file(path); }

std::shared_ptr<const Advice> answer_to(const Advisor& advisor, Question question,
                                        std::uint64_t number) {
  comes_true([&] {
    const auto advice = advisor.advice(question);
    return advice != nullptr && advice->number == number;
  });
  return advisor.advice(question);
}

constexpr const char* kPrediction = R"({"run":"tiny","fit_error":0.03,"recorded_seconds":1.84,
  "simulated_seconds":1.86,"simulated_count":21,"predictions":[{"settings":["buffers=4"],
  "from":["buffers=2"],"seconds":1.60,"change":-0.14,"why":"reads wait for buffers",
  "needs_new_run":false},{"settings":["devices=5"],"from":["devices=4"],"seconds":1.8,
  "change":-0.02,"why":"","needs_new_run":true}],"together":{"settings":["buffers=6","wire=native"],
  "from":["buffers=2","wire=fp32"],"seconds":1.5,"change":-0.2,"why":"","needs_new_run":false},
  "unavailable":""})";

}  // namespace

TEST_CASE("a prediction is asked of the program and read from what it prints") {
  const TempFolder folder;
  const std::string program = script(folder, "echo \"$@\" > '" + folder.file("asked") +
                                                 "'\ncat <<'END'\n" + kPrediction + "\nEND\n");
  Advisor advisor("/runs/run.db", {.program = program});
  CHECK(advisor.advice(Question::what_if) == nullptr);
  const std::uint64_t number = advisor.ask(Question::what_if, {"buffers=4", "prefetch=false"});
  const auto advice = answer_to(advisor, Question::what_if, number);
  REQUIRE(advice != nullptr);
  CHECK_FALSE(advisor.is_working(Question::what_if));
  CHECK(advice->problem.empty());
  CHECK(advice->settings == std::vector<std::string>{"buffers=4", "prefetch=false"});
  const analyze::PredictedChanges& predicted = advice->predicted;
  CHECK(predicted.fit_error == 0.03);
  CHECK(predicted.simulated_count == 21);
  REQUIRE(predicted.each.size() == 2);
  CHECK_FALSE(predicted.each[0].needs_new_run);
  CHECK(predicted.each[1].needs_new_run);
  REQUIRE(predicted.together);
  CHECK(predicted.together->settings == std::vector<std::string>{"buffers=6", "wire=native"});
  CHECK(predicted.each[0].settings == std::vector<std::string>{"buffers=4"});
  CHECK(predicted.each[0].from == std::vector<std::string>{"buffers=2"});
  CHECK(predicted.each[0].change == -0.14);
  CHECK(predicted.each[0].why == "reads wait for buffers");
  CHECK(read_file(folder.file("asked")) ==
        "predict /runs/run.db --json buffers=4 prefetch=false\n");
}

TEST_CASE("a proposal is all of its settings together") {
  const TempFolder folder;
  const std::string program = script(folder, "echo \"$@\" > '" + folder.file("asked") + R"('
echo '{"seconds":{"before":2.0,"after":1.5},"changes":[
{"key":"buffers","from":"3","to":"6","worth_seconds":0.2},
{"key":"wire","from":"fp32","to":"native","worth_seconds":null}]}')");
  Advisor advisor("/runs/run.db", {.program = program});
  const auto advice = answer_to(advisor, Question::tune,
                                advisor.ask(Question::tune, {"--hold", "subgroup_elements"}));
  REQUIRE(advice != nullptr);
  REQUIRE(advice->predicted.each.size() == 1);
  CHECK(advice->predicted.each[0].settings == std::vector<std::string>{"buffers=6", "wire=native"});
  CHECK(advice->predicted.each[0].change == Approx(-0.25));
  CHECK(read_file(folder.file("asked")) == "tune /runs/run.db --json --hold subgroup_elements\n");
}

TEST_CASE("the knobs of a run that is over come with words to choose from") {
  const TempFolder folder;
  const std::string program = script(folder, "echo \"$@\" > '" + folder.file("asked") + R"('
echo '{"run":"tiny","knobs":[{"key":"pipeline","value":"nbuffer","type":"word","unit":"",
"values":"serial, handover, nbuffer","default":"nbuffer","help":"How they overlap."},
{"key":"buffers","value":"3","type":"integer","unit":"subgroups","values":"1 to 64",
"default":"3","help":"","min":1,"max":64}]}')");
  Advisor advisor("/runs/run.db", {.program = program});
  const auto advice = answer_to(advisor, Question::knobs, advisor.ask(Question::knobs));
  REQUIRE(advice != nullptr);
  REQUIRE(advice->knobs.size() == 2);
  CHECK(advice->knobs[0].words == std::vector<std::string>{"serial", "handover", "nbuffer"});
  CHECK(advice->knobs[0].help == "How they overlap.");
  CHECK(advice->knobs[1].words.empty());
  CHECK(advice->knobs[1].max == 64);
  CHECK(read_file(folder.file("asked")) == "knobs /runs/run.db --json --recorded\n");
}

TEST_CASE("what goes wrong is said: a refusal, no JSON, no program") {
  const TempFolder folder;
  const auto problem_of = [](const std::string& program) {
    Advisor advisor("/runs/run.db", {.program = program});
    return answer_to(advisor, Question::suggest, advisor.ask(Question::suggest))->problem;
  };
  CHECK(problem_of(script(folder, "echo progress >&2\necho 'no such key' >&2\nexit 2\n")) ==
        "no such key");
  CHECK(problem_of(script(folder, "exit 3\n")).find("ended with 3") != std::string::npos);
  CHECK(problem_of(script(folder, "echo hello\n")).find("cannot be read") != std::string::npos);
  CHECK(problem_of(script(folder, "echo '{}'\n")).find("cannot be read") != std::string::npos);
  CHECK(problem_of(folder.file("none")).find("ended with 127") != std::string::npos);
  CHECK(problem_of(script(folder, R"(echo '{"fit_error":0,"predictions":[],
"unavailable":"it needs four steps"}')")) == "it needs four steps");
}

TEST_CASE("closing the advisor ends the program that is under way") {
  const TempFolder folder;
  const std::string id_file = folder.file("id");
  const std::string program = script(folder, "echo $$ > '" + id_file + ".new'; mv '" + id_file +
                                                 ".new' '" + id_file + "'\nexec sleep 1000\n");
  int process = 0;
  {
    Advisor advisor("/runs/run.db", {.program = program});
    advisor.ask(Question::suggest);
    REQUIRE(comes_true([&] { return std::filesystem::exists(id_file); }));
    process = std::stoi(read_file(id_file));
    CHECK(::kill(process, 0) == 0);
    CHECK(advisor.is_working(Question::suggest));
  }
  CHECK(::kill(process, 0) != 0);  // gone, and waited for
}

TEST_CASE("where nothing can be predicted yet, the program's reason is the answer") {
  const auto advice =
      parse_prediction(R"({"run":"tiny","predictions":[],"unavailable":"no step has ended"})");
  REQUIRE(advice.ok());
  CHECK(advice->problem == "no step has ended");
  CHECK(advice->predicted.each.empty());
}

TEST_CASE("a program that writes without end is stopped") {
  const TempFolder folder;
  const int never = ::eventfd(0, EFD_CLOEXEC);
  const auto output = run_child({script(folder, "exec yes\n")}, never);
  ::close(never);
  REQUIRE_FALSE(output.ok());
  CHECK(output.error().message().find("it wrote more than") != std::string::npos);
}

TEST_CASE("a detached program outlives the thread that began it, and its output is in the log") {
  const TempFolder folder;
  const std::string program =
      script(folder, "while [ ! -e '" + folder.file("go") + "' ]; do sleep 0.01; done\necho $1\n");
  long process = 0;
  std::thread([&] {
    process = require_ok(start_detached({program, "done"}, folder.file("log")));
  }).join();
  CHECK(::kill(static_cast<pid_t>(process), 0) == 0);
  std::ofstream(folder.file("go"));
  CHECK(comes_true([&] { return read_file(folder.file("log")) == "done\n"; }));
  CHECK_FALSE(start_detached({program}, folder.file("no folder/log")).ok());
}

}  // namespace sluice::gui
