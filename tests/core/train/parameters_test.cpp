// A run whose parameters lie on the drives: the bits of one that has them in memory, each
// byte counted, drives that fail and lie, nothing left behind.

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>

#include "core/offload/offload.h"
#include "core/offload/parameter_carrier.h"
#include "core/offload/parameter_store.h"
#include "tests/core/train/arithmetic_device.h"
#include "tests/core/train/file_requests.h"
#include "tests/core/train/offload_ways.h"
#include "tests/sanitizer.h"
#include "tests/test_all.h"

using namespace sluice;
using io::FaultPlan;
using stages::Stage;

namespace {

std::vector<std::string> both(std::vector<std::string> first,
                              const std::vector<std::string>& then) {
  first.insert(first.end(), then.begin(), then.end());
  return first;
}

// A platform with accelerators.
const std::string kSwitch =
    "platform=" SLUICE_SOURCE_DIR "/sample_models/platforms/smartssd-a4000-switch.toml";

// So little that backward reads a block again; later settings take its place.
const std::vector<std::string> kStorage = {"parameter_tier=storage", "parameter_buffer=12288"};
const std::vector<std::string> kStorageInFp32 = {"parameter_tier=storage",
                                                 "parameter_buffer=24576"};

// With parameter_tier=storage a run of these settings has the losses and the state of `plain`.
void check_same(const Trained& plain, const std::vector<std::string>& settings) {
  const SmallRun fresh;
  const bool is_fp32 = std::ranges::find(settings, "precision=fp32") != settings.end();
  const auto trained = train_small(fresh, both(is_fp32 ? kStorageInFp32 : kStorage, settings));
  INFO(fmt::format("{}", fmt::join(settings, " ")));
  INFO(message_of(trained));
  REQUIRE(trained.ok());
  CHECK(trained->losses == plain.losses);
  CHECK(trained->digest == plain.digest);
  CHECK_FALSE(std::filesystem::exists(fresh.folder.file("state/parameters.slc")));
}

// Elements that backward reads again, counted apart from the carrier: forward leaves the highest
// layers in the window, and the embedding stays.
std::int64_t reread_elements(const model::FlatLayout& layout, ParameterKind kind,
                             std::int64_t buffer_bytes) {
  std::size_t lowest = 1;  // in the window
  std::int64_t in_window_bytes = 0;
  for (std::size_t l = 1; l < layout.layers.size(); ++l) {
    in_window_bytes += offload::page_bytes(layout.layers[l], kind);
    for (; in_window_bytes > buffer_bytes; ++lowest) {
      in_window_bytes -= offload::page_bytes(layout.layers[lowest], kind);
    }
  }
  std::int64_t elements = 0;
  for (std::size_t l = 1; l < lowest; ++l) elements += layout.layers[l].count;
  return elements;
}

// What moves for parameters, by step and stage.
class ParameterBytes final : public runtime::OperationSink {
 public:
  void on_submit(const runtime::OperationState& /*state*/) override {}
  void on_finish(const runtime::OperationState& state) override {
    const runtime::OperationLabel& label = state.operation.label;
    if (label.stage == Stage::parameters_up) up_count += 1;
    if (label.stage != Stage::parameter_write && label.stage != Stage::parameter_read) return;
    CHECK(label.padding_bytes < 2 * kPageBytes);
    sums[{state.step, label.stage}] += label.size_bytes;
  }
  std::map<std::pair<std::int32_t, Stage>, std::int64_t> sums;
  int up_count = 0;
};

struct CountedParameters {
  ParameterBytes bytes;
  std::int64_t parameter_count = 0;
  std::int64_t reread_elements = 0;
  std::int64_t resident_peak_bytes = 0;
  std::int64_t buffer_bytes = 0;
};

CountedParameters count_bytes(const std::vector<std::string>& settings) {
  const SmallRun files;
  const auto config =
      files.config(both(settings, {"parameter_tier=storage", "validation_batches=1"}));
  REQUIRE(config.ok());
  const model::ModelFactory factory = arithmetic_factory();
  train::TrainingRun::Request request;
  request.config = &*config;
  request.factory = &factory;
  auto run = train::TrainingRun::open(request);
  REQUIRE(run.ok());
  REQUIRE((*run)->prepare(session::StartFrom::new_state).ok());
  CountedParameters counted;
  (*run)->session().runtime().add_sink(&counted.bytes);
  Quiet observer;
  REQUIRE(train::train(**run, {{&observer}, {}}, {}).ok());
  REQUIRE((*run)->settle().ok());
  counted.parameter_count = (*run)->plan().layout.parameter_count;
  counted.buffer_bytes =
      offload::plan_parameter_window((*run)->plan().layout, (*run)->plan().options).buffer_bytes;
  counted.reread_elements = reread_elements(
      (*run)->plan().layout, (*run)->plan().options.parameter_kind, counted.buffer_bytes);
  counted.resident_peak_bytes = (*run)->session().offload().parameters().resident_peak_bytes();
  return counted;
}

}  // namespace

TEST_CASE("parameters on the drives change no bit, however the state is offloaded") {
  std::map<std::string, Trained> plain;  // by what does change bits
  for (const OffloadWay& way : ways_to_offload()) {
    const std::string numbers = way[4] + way[5] + way[6];  // density, optimizer, precision
    if (!plain.contains(numbers)) {
      const SmallRun files;
      const auto trained = train_small(files, way);
      REQUIRE(trained.ok());
      plain[numbers] = *trained;
    }
    check_same(plain[numbers], way);
  }
}

TEST_CASE("parameters on the drives change no bit of 20 steps, whatever else is set") {
  const std::vector<std::string> steps = {"steps=20", "validation_every=7"};
  for (const std::string micro : {"grad_accum_steps=1", "grad_accum_steps=3"}) {
    const SmallRun files;
    const auto plain = train_small(files, both(steps, {micro}));
    REQUIRE(plain.ok());
    const std::vector<std::vector<std::string>> variants = {
        {"activations=offload", "parameter_buffer=20000"},
        {"activations=offload", "activation_buffer=4096", "method=host", "clock=emulated",
         "time_scale=0.01"},
        {"activations=recompute", "devices=3", "subgroup_elements=777", "commit_every=3"},
        {"state_cache=60KB", "device_map=5,1", "io_engine=posix"},
        {"parameter_buffer=1GiB", "method=host", "pipeline=serial"},
        // What computes in host memory stands in for the accelerators.
        {"accelerators=2", "clock=emulated", "time_scale=0.01", kSwitch},
        {"parameter_buffer=0", "pipeline=handover", "activations=offload_inputs"},
        {"clock=emulated", "time_scale=0.01", "subgroup_elements=100000000", "buffers=1"},
        {"subgroup_elements=333", "devices=10", "wire=native", "io_bytes=4096", "queue_depth=1"},
    };
    for (const std::vector<std::string>& more : variants) {
      check_same(*plain, both(both(steps, {micro}), more));
    }
  }
}

TEST_CASE("error feedback and skipped steps are those of a run with its parameters in memory") {
  for (const std::vector<std::string>& settings :
       {std::vector<std::string>{"density=0.05", "error_feedback=true", "density_warmup_steps=4"},
        std::vector<std::string>{"precision=fp16", "initial_loss_scale=4294967296"}}) {
    const SmallRun files;
    const auto plain = train_small(files, settings);
    REQUIRE(plain.ok());
    for (const std::string pipeline : {"pipeline=serial", "pipeline=handover", "pipeline=nbuffer"})
      check_same(*plain, both(settings, {pipeline}));
  }
}

TEST_CASE("a device that computes gets its parameters from the drives, and has the same numbers") {
  const std::string more = GENERATE("method=csd", "method=host", "clock=emulated",
                                    "grad_accum_steps=3", "accelerators=2", "pipeline=serial");
  std::vector<std::string> settings = {more, "device=soft", "time_scale=0.001",
                                       "validation_every=2"};
  if (more == "accelerators=2") settings.insert(settings.end(), {"clock=emulated", kSwitch});
  const SmallRun files;
  const auto plain = train_small(files, settings, session::StartFrom::new_state, {}, {}, nullptr,
                                 arithmetic_device_factory({}));
  REQUIRE(plain.ok());
  const SmallRun fresh;
  const auto trained = train_small(fresh, both(kStorage, settings), session::StartFrom::new_state,
                                   {}, {}, nullptr, arithmetic_device_factory({}));
  INFO(more << message_of(trained));
  REQUIRE(trained.ok());
  CHECK(trained->losses == plain->losses);
  CHECK(trained->digest == plain->digest);
}

TEST_CASE("a run goes on with other knobs while its parameters lie on the drives") {
  for (const OffloadChange& change : every_change_of_offload()) {
    const std::vector<session::PlannedChange> changes = {{2, change.to}, {4, change.from}};
    const SmallRun files;
    const auto plain = train_small(files, change.from, session::StartFrom::new_state, {}, changes);
    REQUIRE(plain.ok());
    const SmallRun fresh;
    const auto changed =
        train_small(fresh, both(kStorage, change.from), session::StartFrom::new_state, {}, changes);
    INFO(fmt::format("{} -> {}", fmt::join(change.from, " "), fmt::join(change.to, " ")));
    INFO(message_of(changed));
    REQUIRE(changed.ok());
    CHECK(changed->losses == plain->losses);
    CHECK(changed->digest == plain->digest);
  }
}

TEST_CASE("a resume makes the parameters' files anew, and goes on to the bit, there or in memory") {
  const SmallRun files;
  const auto plain = train_small(files, {});
  REQUIRE(plain.ok());
  for (const std::string then : {"parameter_tier=storage", "parameter_tier=memory"}) {
    const SmallRun fresh;
    REQUIRE(train_small(fresh, {"steps=3", "schedule_steps=6", "parameter_tier=storage"}).ok());
    const auto rest = train_small(fresh, {then, "method=host", "device_map=1,2"},
                                  session::StartFrom::last_commit);
    REQUIRE(rest.ok());
    CHECK(rest->losses == std::vector<double>(plain->losses.begin() + 3, plain->losses.end()));
    CHECK(rest->digest == plain->digest);
  }
}

TEST_CASE("a step writes each parameter once, and reads it once or twice: to the byte") {
  using Case = std::pair<std::string, std::string>;
  for (const auto& [buffer, precision] :
       {Case("parameter_buffer=0", "bf16"), Case("parameter_buffer=12288", "bf16"),
        Case("parameter_buffer=16384", "bf16"), Case("parameter_buffer=1GiB", "bf16"),
        Case("parameter_buffer=1GiB", "fp32"), Case("parameter_buffer=24576", "fp32")}) {
    const std::int64_t bytes = precision == "fp32" ? 4 : 2;
    for (const OffloadWay& way : std::vector<OffloadWay>{
             {"method=csd", "steps=4"},
             {"method=csd", "wire=native", "pipeline=handover", "steps=4"},
             {"method=host", "pipeline=serial", "grad_accum_steps=2", "steps=4"},
             {"method=host", "clock=emulated", "time_scale=0.01", "steps=4"}}) {
      INFO(fmt::format("{} {} {}", buffer, precision, fmt::join(way, " ")));
      const CountedParameters counted = count_bytes(both(way, {buffer, "precision=" + precision}));
      const std::int64_t all = counted.parameter_count;
      for (std::int32_t step = 0; step < 4; ++step) {
        INFO("step " << step);
        const auto sum = [&](Stage stage) {
          const auto found = counted.bytes.sums.find({step, stage});
          return found == counted.bytes.sums.end() ? 0 : found->second;
        };
        CHECK(sum(Stage::parameter_write) == bytes * all);
        // The validation behind the last step reads them once more.
        const std::int64_t passes = step == 3 ? 2 : 1;
        CHECK(sum(Stage::parameter_read) == bytes * (passes * all + counted.reread_elements));
      }
      CHECK(counted.bytes.up_count == 0);
      CHECK(counted.resident_peak_bytes <= counted.buffer_bytes);
      // By default two of the widest layer are all that this model has.
      const bool holds_all = buffer == "parameter_buffer=0" || buffer == "parameter_buffer=1GiB";
      CHECK((counted.reread_elements == 0) == holds_all);
    }
  }
}

// Every fourth, from the first on; all of them when all is tested.
std::vector<std::uint64_t> some_places(const std::vector<std::uint64_t>& places) {
  if (is_testing_all()) return places;
  std::vector<std::uint64_t> some;
  for (std::size_t i = 0; i < places.size(); i += 4) some.push_back(places[i]);
  return some;
}

TEST_CASE("a drive that fails under parameters is named with the layer, or no number changes") {
  for (const std::string method : {"method=csd", "method=host"}) {
    const std::vector<std::string> settings = {method, "devices=1", "steps=2",
                                               "parameter_tier=storage", "parameter_buffer=12288"};
    FileRequests::Counts counts;
    const SmallRun files;
    const auto undisturbed = train_small(
        files, settings, session::StartFrom::new_state, [&](std::unique_ptr<io::IoEngine> inner) {
          return std::make_unique<FileRequests>(std::move(inner), "parameters.slc", counts);
        });
    REQUIRE(undisturbed.ok());
    REQUIRE_FALSE(counts.writes.empty());
    using enum FaultPlan::Fault;
    const std::vector<std::pair<FaultPlan::Fault, ErrorCode>> faults = {
        {no_space, ErrorCode::no_space},
        {eio, ErrorCode::io},
        {cut_transfer, ErrorCode::io},
        {flip_bit, ErrorCode::corrupt},
        {short_transfer, ErrorCode{}}};
    for (const auto& [fault, code] : faults) {
      // Which request is the n-th depends on what ends first, so not every one hits parameters.
      int named = 0;
      int unharmed = 0;
      const std::vector<std::uint64_t> places =
          some_places(fault == no_space ? counts.writes : counts.reads);
      for (const std::uint64_t place : places) {
        const SmallRun fresh;
        const auto trained = train_small(fresh, settings, session::StartFrom::new_state,
                                         [&](std::unique_ptr<io::IoEngine> inner) {
                                           FaultPlan plan;
                                           plan.planned.push_back({place, fault});
                                           return io::make_faulty_engine(std::move(inner), plan);
                                         });
        if (trained.ok()) {
          CHECK(trained->losses == undisturbed->losses);
          CHECK(trained->digest == undisturbed->digest);
          unharmed += 1;
          continue;
        }
        const std::string message = message_of(trained);
        INFO(message);
        CHECK(fault != short_transfer);
        if (message.find("parameters.slc") == std::string::npos) continue;
        CHECK(trained.error().code() == code);
        if (fault != no_space) CHECK_THAT(message, Catch::Contains("layer "));
        CHECK_THAT(message, Catch::Contains("offset "));
        named += 1;
      }
      INFO("fault " << static_cast<int>(fault));
      CHECK((fault == short_transfer ? unharmed : named) > 0);
    }
  }
}

TEST_CASE("a failure with parameters on the drives leaves the last commit") {
  check_last_commit_stands({"commit_every=3", "parameter_tier=storage"}, {30, 700, 23});
}

TEST_CASE("a window that no layer fits into is refused with the smallest that would do") {
  const SmallRun files;
  const auto trained = train_small(files, {"parameter_tier=storage", "parameter_buffer=4096"});
  REQUIRE_FALSE(trained.ok());
  CHECK_THAT(message_of(trained), Catch::Contains("parameter_buffer=4096"));
  CHECK_THAT(message_of(trained), Catch::Contains("widest layer take"));
}

TEST_CASE("the memory plan has the window in place of all parameters") {
  const SmallRun files;
  const auto needs = [&](const std::string& setting) {
    const auto config = files.config({setting, "host_memory=1"});
    REQUIRE(config.ok());
    const auto plan = plan::plan_run(*config);
    REQUIRE(plan.ok());
    return plan::plan_memory(*plan, plan::model_memory(arithmetic_factory(), *plan), {}).items;
  };
  const auto item = [](const MemoryItems& items, std::string_view begin) -> std::int64_t {
    for (const MemoryItem& one : items) {
      if (one.what.starts_with(begin)) return one.size_bytes;
    }
    return 0;
  };
  const auto config = files.config({});
  const auto plan = plan::plan_run(*config);
  CHECK(item(needs("precision=fp32"), "parameters") == 4 * plan->layout.parameter_count);
  CHECK(item(needs("parameter_tier=memory"), "parameters") == 2 * plan->layout.parameter_count);
  const std::int64_t tables = offload::page_bytes(plan->layout.layers[0], ParameterKind::bf16);
  CHECK(item(needs("parameter_buffer=16384"), "parameters") == 2 * plan->layout.parameter_count);
  auto options = plan->options;
  options.parameters = offload::ParameterTier::storage;
  options.parameter_buffer_bytes = 12288;
  CHECK(offload::parameter_memory_bytes(plan->layout, options) == tables + 12288);
  options.parameter_kind = ParameterKind::fp32;
  CHECK(offload::parameter_memory_bytes(plan->layout, options) ==
        offload::page_bytes(plan->layout.layers[0], ParameterKind::fp32) + 12288);
}
