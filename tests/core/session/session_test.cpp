// A session whose gradients another program computes: in any order, from any thread, to the bit
// what plain arithmetic makes of them, and what a killed one goes on to.

#include "core/session/session.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <random>
#include <thread>

#include "core/control/control_client.h"
#include "core/optimizer/update_rule.h"
#include "core/session/tensor_table.h"
#include "profiler/record/scoped_span.h"
#include "storage/rundb/query.h"
#include "storage/rundb/reader.h"
#include "storage/state/state_store.h"
#include "tests/core/session/open_session.h"
#include "tests/test_folder.h"

using namespace sluice;
using session::Session;
using session::Tensor;

namespace {

// AdamW as its paper has it, in double and written here alone.
std::vector<float> plain_weights(std::size_t tensor, std::int64_t steps,
                                 const optimizer::UpdateOptions& options) {
  const auto count = static_cast<std::size_t>(session::element_count(kTensors[tensor]));
  std::vector<float> weights(count);
  std::vector<double> exp_avg(count);
  std::vector<double> exp_avg_sq(count);
  for (std::size_t i = 0; i < count; ++i) {
    weights[i] = initial_value(tensor, static_cast<std::int64_t>(i));
  }
  for (std::int64_t step = 0; step < steps; ++step) {
    const std::vector<float> gradient = gradient_of(tensor, step);
    const auto t = static_cast<double>(step + 1);
    for (std::size_t i = 0; i < count; ++i) {
      const double g = gradient[i];
      exp_avg[i] = options.beta1 * exp_avg[i] + (1 - options.beta1) * g;
      exp_avg_sq[i] = options.beta2 * exp_avg_sq[i] + (1 - options.beta2) * g * g;
      const double m = exp_avg[i] / (1 - std::pow(options.beta1, t));
      const double v = exp_avg_sq[i] / (1 - std::pow(options.beta2, t));
      const double decayed = weights[i] * (1 - 0.01 * options.weight_decay);
      weights[i] = static_cast<float>(decayed - 0.01 * m / (std::sqrt(v) + options.eps));
    }
  }
  return weights;
}

}  // namespace

TEST_CASE("tensors sent in any order are updated as plain AdamW does") {
  const TestFolder folder;
  auto session = opened(request_in(folder.path(), {"max_grad_norm=0", "weight_decay=0.01"}));
  CHECK(session->planned_memory_bytes() > 1 << 20);
  take_steps(*session, 5);
  for (std::size_t tensor = 0; tensor < kTensors.size(); ++tensor) {
    REQUIRE(session->wait(tensor).ok());
    const std::vector<float> expected = plain_weights(tensor, 5, {});
    const auto found = session->parameters(tensor);
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      const float value = std::bit_cast<float>(static_cast<std::uint32_t>(found[i]) << 16);
      REQUIRE(std::abs(value - expected[i]) <= 1.0F / 256 * std::abs(expected[i]) + 1e-6F);
    }
  }
  REQUIRE(problem(session->close()) == "");
}

TEST_CASE("the order of the tensors, the thread and the settings change no bit") {
  const std::vector<std::vector<std::string>> ways = {
      {},
      {"method=host"},
      {"pipeline=serial", "wire=native"},
      {"pipeline=handover", "devices=1"},
      {"buffers=4", "prefetch=false", "state_cache=1MiB", "commit_every=2"},
      {"method=host", "gradient_tier=memory", "io_engine=posix"}};
  std::string first;
  for (const std::vector<std::string>& way : ways) {
    const TestFolder folder;
    auto session = opened(request_in(folder.path(), way));
    while (session->step() < 4) {
      const std::int64_t step = session->step();
      std::vector<std::thread> threads;
      for (std::size_t tensor = 0; tensor < kTensors.size(); ++tensor) {
        threads.emplace_back([&, tensor] {
          if (!session->send(tensor, gradient_of(tensor, step)).ok()) std::abort();
        });
      }
      for (std::thread& thread : threads) thread.join();
      REQUIRE(problem(session->take_step({.lr = 0.01})) == "");
    }
    REQUIRE(problem(session->close()) == "");
    if (first.empty()) first = digest_in(folder.path());
    INFO(folder.path());
    CHECK(digest_in(folder.path()) == first);
  }
}

TEST_CASE("compressed gradients with error feedback depend on no order, and go on to the bit") {
  const std::vector<std::string> compressed = {"density=0.1", "error_feedback=true"};
  const TestFolder through;
  auto session = opened(request_in(through.path(), compressed));
  take_steps(*session, 6);
  REQUIRE(problem(session->close()) == "");
  const TestFolder again;
  for (const std::int64_t until : {2, 3, 6}) {
    auto part = opened(request_in(again.path(), compressed));
    take_steps(*part, until);
    REQUIRE(problem(part->close()) == "");
  }
  CHECK(digest_in(again.path()) == digest_in(through.path()));
}

std::int64_t committed_step_in(const std::string& folder) {
  auto store = state::StateStore::open_read_only({.directory = folder + "/state"});
  REQUIRE(store.ok());
  return (*store)->committed().position.step;
}

// Each gradient goes as a half, is read back and replaced by the sum with the other half; and that
// by itself twice over, which the step's factor halves.
void take_steps_in_halves(Session& session, std::int64_t until) {
  while (session.step() < until) {
    const std::int64_t step = session.step();
    for (const std::size_t tensor : shuffled(step)) {
      const std::vector<float> whole = gradient_of(tensor, step);
      std::vector<float> half;
      for (const float value : whole) half.push_back(value / 2);
      REQUIRE(problem(session.send(tensor, half)) == "");
      std::vector<float> found(whole.size());
      REQUIRE(problem(session.read(tensor, found)) == "");
      REQUIRE(found == half);
      for (std::size_t i = 0; i < found.size(); ++i) found[i] = 2 * (found[i] + half[i]);
      REQUIRE(problem(session.replace(tensor, found)) == "");
    }
    REQUIRE(problem(session.take_step({.lr = 0.01, .gradient_factor = 0.5})) == "");
  }
}

TEST_CASE("a gradient that was sent is read back and replaced, wherever it waits") {
  const std::vector<std::vector<std::string>> ways = {
      {},
      {"method=host", "gradient_tier=memory"},
      {"method=host", "pipeline=serial", "wire=native"}};
  for (const std::vector<std::string>& way : ways) {
    const TestFolder whole, halves;
    std::vector<std::string> unclipped = way;
    unclipped.push_back("max_grad_norm=0");  // of the norm of what was sent
    auto session = opened(request_in(whole.path(), unclipped));
    take_steps(*session, 3);
    REQUIRE(problem(session->close()) == "");
    session = opened(request_in(halves.path(), unclipped));
    take_steps_in_halves(*session, 3);
    REQUIRE(problem(session->close()) == "");
    CHECK(digest_in(halves.path()) == digest_in(whole.path()));
  }
}

TEST_CASE("a commit makes the last step durable, between two steps") {
  const TestFolder folder;
  auto session = opened(request_in(folder.path(), {"commit_every=100"}));
  REQUIRE(problem(session->commit()) == "");
  take_steps(*session, 3);
  REQUIRE(problem(session->commit()) == "");
  CHECK(committed_step_in(folder.path()) == 3);
  REQUIRE(session->send(0, gradient_of(0, 3)).ok());
  CHECK_THAT(session->commit().error().message(), Catch::Contains("the gradients of step 4"));
}

TEST_CASE("a gradient that is not there is neither read nor replaced") {
  const TestFolder folder, compressed;
  auto session = opened(request_in(folder.path()));
  std::vector<float> into(3);
  CHECK_THAT(session->read(0, into).error().message(),
             Catch::Contains("a has not come yet for step 1"));
  REQUIRE(session->send(0, into).ok());
  CHECK_THAT(session->replace(1, gradient_of(1, 0)).error().message(),
             Catch::Contains("b has not come yet"));
  into.resize(4);
  CHECK_THAT(session->read(0, into).error().message(), Catch::Contains("has 4 elements"));
  session = opened(request_in(compressed.path(), {"density=0.1"}));
  into.resize(3);
  REQUIRE(session->send(0, into).ok());
  CHECK_THAT(session->read(0, into).error().message(), Catch::Contains("density=0.1"));
}

// The rows of a query over the run's database, a row a line.
std::vector<std::string> rows_in(const std::string& folder, const std::string& query) {
  const auto reader = rundb::Reader::open(folder + "/run.db");
  REQUIRE(problem(reader) == "");
  std::vector<std::string> rows;
  const Status read = rundb::Query(**reader).each_row(query, [&](std::span<const rundb::Cell> row) {
    std::string& line = rows.emplace_back();
    for (const rundb::Cell& cell : row) {
      if (!line.empty()) line += ' ';
      if (const auto* text = std::get_if<std::string>(&cell)) line += *text;
      if (const auto* whole = std::get_if<std::int64_t>(&cell)) line += fmt::format("{}", *whole);
      if (const auto* number = std::get_if<double>(&cell)) line += fmt::format("{:g}", *number);
      if (std::holds_alternative<std::monostate>(cell)) line += '-';
    }
    return ok_status();
  });
  REQUIRE(problem(read) == "");
  return rows;
}

// A step of a program that records its forward and backward, and knows its loss only afterwards.
void take_recorded_step(Session& session) {
  const std::int64_t step = session.step();
  const std::int64_t begin = record::span_now_ns();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const std::int64_t forward = record::span_now_ns();
  session.record({.work = session::Work::other, .begin_ns = begin, .end_ns = forward});
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  std::int64_t until = record::span_now_ns();
  session.record({.work = session::Work::forward, .begin_ns = forward, .end_ns = until});
  session.record({.work = session::Work::module,
                  .begin_ns = forward,
                  .end_ns = until,
                  .name = "layers.0",
                  .depth = 1});
  for (std::size_t tensor = 0; tensor < kTensors.size(); ++tensor) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::int64_t now = record::span_now_ns();
    session.record({session::Work::backward, until, now, tensor});
    REQUIRE(session.send(tensor, gradient_of(tensor, step)).ok());
    until = record::span_now_ns();
  }
  REQUIRE(session.take_step({.lr = 0.01, .tokens = 7, .awaits_note = true}).ok());
}

TEST_CASE("a program's forward, backward and figures are in the record of its run") {
  const TestFolder folder;
  auto session = opened(request_in(folder.path()));
  for (int step = 0; step < 4; ++step) {
    take_recorded_step(*session);
    if (step == 1) continue;  // its loss stays unknown
    REQUIRE(problem(session->note({.loss = 0.5 + step})) == "");
    CHECK_THAT(session->note({.loss = 1.0}).error().message(),
               Catch::Contains(fmt::format("step {}", step + 1)));
  }
  REQUIRE(problem(session->note({.validation_loss = 0.25, .validation_tokens = 40})) == "");
  session->count("epoch", 1.5);
  REQUIRE(problem(session->close()) == "");
  CHECK(rows_in(folder.path(), "SELECT id, loss, tokens FROM step ORDER BY id") ==
        std::vector<std::string>{"0 0.5 7", "1 - 7", "2 2.5 7", "3 3.5 7"});
  CHECK(rows_in(folder.path(), "SELECT step_id, loss, tokens FROM validation") ==
        std::vector<std::string>{"3 0.25 40"});
  CHECK(rows_in(folder.path(),
                "SELECT track.kind, value, count(*), count(DISTINCT layer_id) FROM span "
                "JOIN string ON string.id = name_id JOIN track ON track.id = track_id "
                "WHERE value IN ('host_work', 'forward', 'backward', 'layers.0') "
                "GROUP BY 1, 2 ORDER BY 2") ==
        std::vector<std::string>{"compute backward 20 5", "compute forward 4 0",
                                 "host host_work 4 0", "module layers.0 4 0"});
  CHECK(rows_in(folder.path(),
                "SELECT value FROM counter JOIN track ON track.id = track_id "
                "WHERE name = 'epoch'") == std::vector<std::string>{"1.5"});
  // An update may reach into the own work and the forward of the step after it, and hide them: none
  // is before step 0.
  CHECK(rows_in(folder.path(),
                "SELECT count(*) FROM step_phase WHERE step_id = 0 AND forward_dur > 4000000 AND "
                "backward_dur > 5000000") == std::vector<std::string>{"1"});
  CHECK(rows_in(folder.path(),
                "SELECT count(*) FROM step_phase WHERE backward_dur > 0 AND update_dur > 0") ==
        std::vector<std::string>{"4"});
  CHECK(rows_in(folder.path(),
                "SELECT cause FROM verdict WHERE step_id = 0 AND cause IN ('compute', 'program') "
                "AND share > 0 ORDER BY 1") == std::vector<std::string>{"compute", "program"});
}

TEST_CASE("a call that cannot be right is refused and changes nothing") {
  const TestFolder folder;
  auto session = opened(request_in(folder.path()));
  CHECK_THAT(session->send(0, std::vector<float>(4)).error().message(),
             Catch::Contains("a has 4 elements, and the tensor 3"));
  CHECK_THAT(session->send(9, {}).error().message(), Catch::Contains("the session has 5"));
  REQUIRE(session->send(2, gradient_of(2, 0)).ok());
  CHECK_THAT(session->send(2, gradient_of(2, 0)).error().message(),
             Catch::Contains("c has come already for step 1"));
  CHECK_THAT(session->take_step().error().message(), Catch::Contains("no gradient of a yet"));
  for (const std::size_t tensor : {0, 1, 3, 4}) {
    REQUIRE(session->send(tensor, gradient_of(tensor, 0)).ok());
  }
  REQUIRE(session->take_step({.lr = 0.01})->step == 1);
  REQUIRE(problem(session->close()) == "");
  CHECK(session->wait(0).error().code() == ErrorCode::cancelled);
}

TEST_CASE("gradients that are not finite end the session, and the last commit stands") {
  const TestFolder folder;
  {
    auto session = opened(request_in(folder.path()));
    take_steps(*session, 2);
    std::vector<float> bad = gradient_of(0, 2);
    bad[1] = std::nanf("");
    REQUIRE(session->send(0, bad).ok());
    for (const std::size_t tensor : {1, 2, 3, 4}) {
      REQUIRE(session->send(tensor, gradient_of(tensor, 2)).ok());
    }
    CHECK(session->take_step().error().code() == ErrorCode::diverged);
    CHECK_FALSE(session->send(0, bad).ok());
    CHECK(session->close().error().code() == ErrorCode::diverged);
  }
  CHECK(opened(request_in(folder.path()))->step() == 2);
}

TEST_CASE("a session that ends within a step keeps the steps before it") {
  const TestFolder folder;
  {
    auto session = opened(request_in(folder.path()));
    take_steps(*session, 3);
    REQUIRE(session->send(4, gradient_of(4, 3)).ok());
  }
  auto session = opened(request_in(folder.path()));
  REQUIRE(session->step() == 3);
  take_steps(*session, 4);
  REQUIRE(problem(session->close()) == "");
  const TestFolder through;
  auto whole = opened(request_in(through.path()));
  take_steps(*whole, 4);
  REQUIRE(problem(whole->close()) == "");
  CHECK(digest_in(folder.path()) == digest_in(through.path()));
}

TEST_CASE("another set of tensors, and settings that a session lacks, are refused") {
  const TestFolder folder;
  opened(request_in(folder.path()));
  Session::Request other = request_in(folder.path());
  other.tensors[0].shape = {4};
  CHECK_THAT(Session::open(other).error().message(), Catch::Contains("was begun with tensors="));
  const TestFolder empty;
  for (const char* setting :
       {"overlap=local", "buffer=3", "subgroup_elements=5000", "device=soft", "backend=xrt",
        "replan=true", "shard_state=2x1", "optimizer_state=moments", "batch=4", "mask_share=0.2",
        "sample_tokens=5", "validation_every=3"}) {
    INFO(setting);
    const auto refused = Session::open(request_in(empty.path(), {setting}));
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code() == ErrorCode::config);
  }
  Session::Request twice = request_in(empty.path());
  twice.tensors[1].name = "a";
  CHECK_THAT(Session::open(twice).error().message(), Catch::Contains("a name of its own"));
}

TEST_CASE("a state that was made and never committed is made again") {
  const TestFolder folder;
  state::Geometry geometry;
  geometry.parameter_count = geometry.subgroup_elements = 4096;
  geometry.variable_count = 3;
  geometry.device_count = 1;
  std::filesystem::create_directories(folder.path() + "/state");
  state::StateIdentity identity;
  identity.model_name = "other";
  identity.optimizer = "adamw";
  identity.variable_names = {"master_weights", "exp_avg", "exp_avg_sq"};
  REQUIRE(problem(state::StateStore::create({.directory = folder.path() + "/state"}, identity,
                                            geometry, state::DeviceMap{DeviceId{0}})) == "");
  auto session = opened(request_in(folder.path()));
  CHECK(session->step() == 0);
  take_steps(*session, 1);
  REQUIRE(problem(session->close()) == "");
}
