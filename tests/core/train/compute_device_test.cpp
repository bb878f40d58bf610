// The schedule around a compute device: whatever its streams do, the numbers are those of a model
// in host memory; what crosses is what the run counts; what fails ends the run by name.

#include <catch2/catch.hpp>
#include <numeric>

#include "core/offload/gradient_format.h"
#include "core/offload/offload.h"
#include "core/offload/step_gradients.h"
#include "core/train/step_parts.h"
#include "core/train/trainer.h"
#include "tests/core/train/arithmetic_device.h"
#include "tests/core/train/small_run.h"

using namespace sluice;

namespace {

Result<Trained> train_on_device(const SmallRun& files, std::vector<std::string> settings,
                                const ArithmeticDeviceOptions& how = {},
                                session::StartFrom start = session::StartFrom::new_state,
                                std::span<const session::PlannedChange> changes = {}) {
  settings.emplace_back("device=soft");
  return train_small(files, settings, start, {}, changes, nullptr, arithmetic_device_factory(how));
}

// A whole run, and its device.
struct RunOnDevice {
  ArithmeticDevice* device = nullptr;  // of the run
  std::unique_ptr<train::TrainingRun> run;
  train::TrainReport report;

  const runtime::LinkBytes& crossed() const {
    return run->session().clock().bytes().links()[link()];
  }
  const runtime::LinkBytes& crossed_in_steps() const { return report.link_bytes[link()]; }

 private:
  std::size_t link() const {
    return static_cast<std::size_t>(
        platform::index_of(run->plan().platform.accelerator_routes.front().back()));
  }
};

RunOnDevice run_on_device(const settings::RunConfig& config) {
  RunOnDevice ran;
  const model::ModelFactory factory = arithmetic_device_factory({}, &ran.device);
  train::TrainingRun::Request request;
  request.config = &config;
  request.factory = &factory;
  auto run = train::TrainingRun::open(request);
  REQUIRE(run.ok());
  ran.run = std::move(*run);
  REQUIRE(ran.run->prepare(session::StartFrom::new_state).ok());
  Quiet observer;
  const auto report = train::train(*ran.run, {{&observer}, {}}, {});
  REQUIRE(report.ok());
  ran.report = *report;
  return ran;
}

std::int64_t bytes_of(const runtime::LinkBytes& bytes, platform::Direction direction) {
  return bytes.size_bytes[static_cast<std::size_t>(direction)];
}

// A run in two pieces has the numbers of a whole one.
void check_pieces(const Trained& first, const Trained& rest, const Trained& whole) {
  std::vector<double> losses = first.losses;
  losses.insert(losses.end(), rest.losses.begin(), rest.losses.end());
  CHECK(losses == whole.losses);
  CHECK(rest.digest == whole.digest);
}

}  // namespace

TEST_CASE("a model on a device has the numbers of one in host memory, however it is offloaded") {
  const std::string method = GENERATE("method=csd", "method=host");
  const std::string pipeline = GENERATE("pipeline=nbuffer", "pipeline=serial", "pipeline=handover");
  const std::string more =
      GENERATE("wire=native", "density=0.1", "grad_accum_steps=3", "clock=emulated",
               "precision=fp16", "precision=fp32", "accelerators=2");
  INFO(method << " " << pipeline << " " << more);
  std::vector<std::string> settings = {method, pipeline, more, "lr=0.01", "time_scale=0.001"};
  if (more == "accelerators=2") {
    settings.emplace_back("clock=emulated");
    settings.push_back("platform=" + std::string(SLUICE_SOURCE_DIR) +
                       "/sample_models/platforms/smartssd-a4000-switch.toml");
  }
  const SmallRun plain_files, device_files;
  const Result<Trained> plain = train_small(plain_files, settings);
  INFO(message_of(plain));
  REQUIRE(plain.ok());
  const Result<Trained> trained = train_on_device(device_files, settings, {.seed = 9});
  INFO(message_of(trained));
  REQUIRE(trained.ok());
  CHECK(trained->losses == plain->losses);
  CHECK(trained->digest == plain->digest);
}

TEST_CASE("a model on a device goes on after a resume, and after live changes") {
  const SmallRun plain_files, device_files;
  const std::vector<session::PlannedChange> changes = {{2, {"method=host"}}, {4, {"density=0.2"}}};
  const std::vector<std::string> settings = {"lr=0.01", "steps=8"};
  const Result<Trained> plain =
      train_small(plain_files, settings, session::StartFrom::new_state, {}, changes);
  REQUIRE(plain.ok());
  const Result<Trained> first =
      train_on_device(device_files, {"lr=0.01", "steps=5", "schedule_steps=8"}, {},
                      session::StartFrom::new_state, changes);
  INFO(message_of(first));
  REQUIRE(first.ok());
  const Result<Trained> rest =
      train_on_device(device_files, {"lr=0.01", "steps=8", "method=host", "density=0.2"},
                      {.seed = 4}, session::StartFrom::last_commit);
  INFO(message_of(rest));
  REQUIRE(rest.ok());
  check_pieces(*first, *rest, *plain);
}

TEST_CASE("what crosses to a device and back is what it counts, validations included") {
  const SmallRun files;
  const auto config = files.config({"device=soft", "validation_every=3", "grad_accum_steps=2"});
  REQUIRE(config.ok());
  const RunOnDevice ran = run_on_device(*config);
  CHECK(bytes_of(ran.crossed(), platform::Direction::write) == ran.device->all_in_bytes());
  CHECK(bytes_of(ran.crossed(), platform::Direction::read) == ran.device->all_out_bytes());
  // A step brings each layer twice and takes its fp32 gradients; validations are no step's.
  const std::int64_t parameters = ran.run->plan().layout.parameter_count;
  const std::int64_t batch_bytes =
      model::batch_bytes(ran.run->plan().shape, config->batch.batch, config->batch.sequence);
  const auto steps = static_cast<std::int64_t>(ran.report.losses.size());
  CHECK(bytes_of(ran.crossed_in_steps(), platform::Direction::write) ==
        steps * (4 * parameters + 2 * batch_bytes));
  CHECK(bytes_of(ran.crossed_in_steps(), platform::Direction::read) ==
        steps * (4 * parameters + 2 * model::kLossBytes));
}

TEST_CASE("gradients worked on where they are give the host's numbers") {
  const std::string method = GENERATE("method=csd", "method=host");
  const std::string pipeline = GENERATE("pipeline=nbuffer", "pipeline=serial");
  const std::string sent = GENERATE("density=1", "density=0.1", "density=0.37");
  const std::string feedback = GENERATE("error_feedback=false", "error_feedback=true");
  const std::string more = GENERATE("wire=native", "grad_accum_steps=3", "precision=fp16",
                                    "precision=fp32", "accelerators=2");
  INFO(method << " " << pipeline << " " << sent << " " << feedback << " " << more);
  // Some steps overflow, so that what they kept goes back.
  std::vector<std::string> settings = {method,
                                       pipeline,
                                       sent,
                                       feedback,
                                       more,
                                       "lr=0.01",
                                       "steps=8",
                                       "time_scale=0.001",
                                       "initial_loss_scale=1e6"};
  if (more == "accelerators=2") {
    settings.emplace_back("clock=emulated");
    settings.push_back("platform=" + std::string(SLUICE_SOURCE_DIR) +
                       "/sample_models/platforms/smartssd-a4000-switch.toml");
  }
  const SmallRun plain_files, device_files;
  const Result<Trained> plain = train_small(plain_files, settings);
  INFO(message_of(plain));
  REQUIRE(plain.ok());
  if (more == "precision=fp16") REQUIRE(plain->steps.front().skipped);
  settings.emplace_back("gradient_work=accelerator");
  const Result<Trained> trained = train_on_device(device_files, settings, {.seed = 5});
  INFO(message_of(trained));
  REQUIRE(trained.ok());
  CHECK(trained->losses == plain->losses);
  CHECK(trained->digest == plain->digest);
}

TEST_CASE("clipped by subgroup, gradients worked on where they are give the host's numbers") {
  const std::string method = GENERATE("method=csd", "method=host");
  const std::string sent = GENERATE("density=1", "density=0.1");
  const std::string feedback = GENERATE("error_feedback=false", "error_feedback=true");
  const std::string more = GENERATE("commit_every=3", "grad_accum_steps=3", "pipeline=serial");
  const std::vector<std::string> changed = {"overlap=local", "method=host"};
  INFO(method << " " << sent << " " << feedback << " " << more);
  std::vector<std::string> settings = {method,    sent,      feedback,          more,
                                       "lr=0.01", "steps=8", "max_grad_norm=20"};
  const SmallRun plain_files, device_files;
  const std::vector<session::PlannedChange> changes = {{1, changed}, {6, {"overlap=off"}}};
  const Result<Trained> plain =
      train_small(plain_files, settings, session::StartFrom::new_state, {}, changes);
  INFO(message_of(plain));
  REQUIRE(plain.ok());
  settings.emplace_back("gradient_work=accelerator");
  const Result<Trained> trained =
      train_on_device(device_files, settings, {.seed = 5}, session::StartFrom::new_state, changes);
  INFO(message_of(trained));
  REQUIRE(trained.ok());
  CHECK(trained->losses == plain->losses);
  CHECK(trained->digest == plain->digest);
}

TEST_CASE("a residual on a device goes on after a resume, and after live changes") {
  const SmallRun plain_files, device_files;
  const std::vector<session::PlannedChange> changes = {
      {1, {"density=0.3"}}, {2, {"error_feedback=false"}}, {3, {"error_feedback=true"}}};
  std::vector<std::string> settings = {"lr=0.01", "density=0.1", "error_feedback=true"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), settings.begin(), settings.end());
    return more;
  };
  const Result<Trained> plain =
      train_small(plain_files, with({"steps=9"}), session::StartFrom::new_state, {}, changes);
  REQUIRE(plain.ok());
  settings.emplace_back("gradient_work=accelerator");
  const Result<Trained> first = train_on_device(device_files, with({"steps=5", "schedule_steps=9"}),
                                                {}, session::StartFrom::new_state, changes);
  INFO(message_of(first));
  REQUIRE(first.ok());
  settings[1] = "density=0.3";
  const Result<Trained> rest = train_on_device(device_files, with({"steps=9"}), {.seed = 4},
                                               session::StartFrom::last_commit);
  INFO(message_of(rest));
  REQUIRE(rest.ok());
  check_pieces(*first, *rest, *plain);
}

TEST_CASE("only what is sent crosses where an accelerator selects") {
  const SmallRun files;
  const std::string density = GENERATE("density=0.1", "density=1");
  const auto config = files.config({"device=soft", "gradient_work=accelerator",
                                    "error_feedback=true", density, "validation_every=0"});
  REQUIRE(config.ok());
  const RunOnDevice ran = run_on_device(*config);
  REQUIRE(ran.run->session().state().keep_residual(ran.run->step().residual()).ok());
  CHECK(bytes_of(ran.crossed(), platform::Direction::read) == ran.device->all_out_bytes());
  std::int64_t sent = model::kLossBytes;
  for (const LayerId layer : all_ids<LayerId>(ran.run->plan().layout.layer_count())) {
    const std::int64_t count = ran.run->plan().layout.layer(layer).count;
    sent += 8 * optimizer::norm_block_count(count);
    sent += config->offload.density < 1
                ? 8 * ran.run->session().offload().gradients().format().kept_count(layer)
                : 2 * count;
  }
  const auto steps = static_cast<std::int64_t>(ran.report.losses.size());
  CHECK(bytes_of(ran.crossed_in_steps(), platform::Direction::read) == steps * sent);
}

TEST_CASE("gradient work on an accelerator is refused where none computes") {
  const SmallRun files;
  const Result<Trained> refused = train_small(files, {"gradient_work=accelerator"});
  REQUIRE_FALSE(refused.ok());
  CHECK_THAT(refused.error().message(), Catch::Contains("set device=cuda or soft"));
}

TEST_CASE("a device that fails or hangs ends the run by name, and the last commit stands") {
  const DeviceFault fault = GENERATE(DeviceFault::fails, DeviceFault::never_ends);
  const std::int64_t call = GENERATE(1, 2, 5, 9, 14, 33);
  INFO("call " << call);
  const SmallRun files;
  const Result<Trained> broken = train_on_device(files, {"lr=0.01", "device_patience=0.3"},
                                                 {.fault = fault, .fault_at = call});
  REQUIRE_FALSE(broken.ok());
  CHECK_THAT(broken.error().message(),
             Catch::Contains(fault == DeviceFault::fails ? "failed as planned" : "has not ended"));
  const Result<Trained> rest = train_small(files, {"lr=0.01"}, session::StartFrom::last_commit);
  INFO(message_of(rest));
  REQUIRE(rest.ok());
  const SmallRun whole_files;
  const Result<Trained> whole = train_small(whole_files, {"lr=0.01"});
  REQUIRE(whole.ok());
  CHECK(rest->digest == whole->digest);
}

TEST_CASE("a plan that does not fit the device is refused with the smallest cap that would do") {
  const SmallRun files;
  const auto config = files.config({"device=soft"});
  REQUIRE(config.ok());
  model::ModelFactory factory = arithmetic_device_factory({});
  factory.device_memory_cap_bytes = 1000;
  train::TrainingRun::Request request;
  request.config = &*config;
  request.factory = &factory;
  const auto run = train::TrainingRun::open(request);
  REQUIRE_FALSE(run.ok());
  CHECK(run.error().code() == ErrorCode::memory);
  CHECK_THAT(run.error().message(),
             Catch::Contains("accelerator_memory that would do is 1024KiB") &&
                 Catch::Contains("TEST DEVICE") && Catch::Contains("all of it"));
}
