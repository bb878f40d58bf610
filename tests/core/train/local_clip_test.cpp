// overlap=local: each subgroup is clipped by its own norm. The numbers are those of a plain loop
// that does so, however the state is offloaded; and of overlap=off where nothing is clipped.

#include <catch2/catch.hpp>

#include "core/data/token_file.h"
#include "core/optimizer/gradient_stats.h"
#include "core/plan/lr_schedule.h"
#include "tests/core/train/failing_run.h"
#include "tests/core/train/offload_ways.h"
#include "tests/core/train/planted_model.h"
#include "tests/core/train/small_run.h"
#include "tests/sanitizer.h"

using namespace sluice;

namespace {

struct Run {
  Trained trained;
  std::int64_t ahead_count = 0;
  std::int64_t refuted_count = 0;
  std::int64_t clipped_count = 0;
  std::int64_t subgroup_count = 0;
  std::vector<std::vector<float>> state;  // its arrays, as they lie on the drives
};

// One array of the committed state, in flat order.
std::vector<float> array_of(state::StateStore& store, std::int32_t variable) {
  const state::Geometry& geometry = store.layout().geometry();
  std::vector<float> values(static_cast<std::size_t>(geometry.parameter_count));
  for (const SubgroupId subgroup : all_ids<SubgroupId>(geometry.subgroup_count())) {
    const state::SlotId slot = store.layout().current(subgroup);
    const std::int64_t count = geometry.element_count(subgroup);
    std::ifstream file(store.file(slot.device).path(), std::ios::binary);
    file.seekg(store.file_offset(store.layout().extent(slot, variable, count)));
    file.read(reinterpret_cast<char*>(values.data() + geometry.first_element(subgroup)), count * 4);
    REQUIRE(file.good());
  }
  return values;
}

Result<Run> run_of(const SmallRun& files, const std::vector<std::string>& settings,
                   session::StartFrom start = session::StartFrom::new_state,
                   std::span<const session::PlannedChange> changes = {},
                   const model::ModelFactory& factory = arithmetic_factory()) {
  ASSIGN_OR_RETURN(const settings::RunConfig config, files.config(settings));
  train::TrainingRun::Request request;
  request.config = &config;
  request.factory = &factory;
  request.start = start;
  ASSIGN_OR_RETURN(const std::unique_ptr<train::TrainingRun> run,
                   train::TrainingRun::open(request));
  RETURN_IF_ERROR(run->prepare(start));
  Quiet observer;
  ASSIGN_OR_RETURN(const train::TrainReport report, train::train(*run, {{&observer}, {}}, changes));
  ASSIGN_OR_RETURN(const state::StateDigest digest,
                   state::digest_state(run->session().state().store(), nullptr, nullptr));
  Run result;
  result.trained.losses = report.losses;
  result.trained.digest = digest.digest;
  result.trained.steps = observer.steps;
  result.ahead_count = report.ahead_count;
  result.refuted_count = report.refuted_count;
  result.clipped_count = report.clipped_count;
  result.subgroup_count = run->plan().geometry.subgroup_count();
  for (std::int32_t v = 0; v < run->plan().geometry.variable_count; ++v) {
    result.state.push_back(array_of(run->session().state().store(), v));
  }
  return result;
}

// The sum of squares of at most a block: 16 interleaved sums, added pairwise.
double sum_of_run(const float* values, std::int64_t count) {
  std::array<double, 16> sums{};
  for (std::int64_t i = 0; i < count; ++i) {
    double& sum = sums[static_cast<std::size_t>(i % 16)];
    sum = std::fma(static_cast<double>(values[i]), static_cast<double>(values[i]), sum);
  }
  for (const std::size_t width : {8, 4, 2, 1}) {
    for (std::size_t k = 0; k < width; ++k) sums[k] += sums[k + width];
  }
  return sums[0];
}

// The same of elements [first, end) of the model: layer by layer, cut at the borders of the layers'
// blocks.
double sum_of_squares(const model::FlatLayout& layout, const std::vector<float>& gradient,
                      std::int64_t first, std::int64_t end) {
  double total = 0;
  for (const model::LayerRange& layer : layout.layers) {
    double of_layer = 0;
    const std::int64_t layer_end = std::min(end, layer.first + layer.count);
    for (std::int64_t at = std::max(first, layer.first); at < layer_end;) {
      const std::int64_t block = (at - layer.first) / optimizer::kNormBlockElements;
      const std::int64_t next =
          std::min(layer_end, layer.first + (block + 1) * optimizer::kNormBlockElements);
      of_layer += sum_of_run(gradient.data() + at, next - at);
      at = next;
    }
    total += of_layer;
  }
  return total;
}

struct ClippedInMemory {
  std::vector<double> losses;
  std::int64_t clipped_count = 0;
  std::vector<std::vector<float>> state;
};

// The gradients of the whole model, all micro-batches added up.
void backward(ArithmeticModel& model, std::int64_t micro_steps, std::vector<float>& gradient) {
  std::ranges::fill(gradient, 0.0f);
  for (std::int32_t l = 0; l < model.layout().layer_count(); ++l) {
    const model::LayerRange& layer = model.layout().layer(LayerId{l});
    for (std::int32_t m = 0; m < micro_steps; ++m) {
      REQUIRE(model
                  .backward(LayerId{l}, m, 1.0 / static_cast<double>(micro_steps),
                            {nullptr, gradient.data() + layer.first, layer.count})
                  .ok());
    }
  }
}

// Plain training in memory, written apart from core/offload: all gradients first, then each
// subgroup's norm, and the reference update of its elements.
ClippedInMemory train_clipped_in_memory(const SmallRun& files,
                                        const std::vector<std::string>& settings) {
  const auto config = files.config(settings);
  REQUIRE(config.ok());
  const auto shape = model::load_model_shape(config->files.model);
  REQUIRE(shape.ok());
  const model::FlatLayout layout = shape->flat_layout();
  const auto count = static_cast<std::size_t>(layout.parameter_count);
  ClippedInMemory memory;
  memory.state.assign(3, std::vector<float>(count));
  std::vector<float>& master_weights = memory.state[0];
  std::vector<float> gradient(count);
  PlainParameters parameters(count, config->arithmetic.precision);
  model::fill_initial(layout, static_cast<std::uint64_t>(config->schedule.seed), 0, master_weights);
  parameters.put(master_weights);
  const std::string token_path = files.folder.file("reference.tokens");
  REQUIRE(data::prepare_byte_tokens(config->files.text, token_path).ok());
  const auto tokens = data::TokenFile::open(token_path);
  REQUIRE(tokens.ok());
  auto sampler =
      data::Sampler::make(&*tokens, {.batch = config->batch.batch,
                                     .sequence = config->batch.sequence,
                                     .validation_fraction = config->validation.fraction,
                                     .seed = static_cast<std::uint64_t>(config->schedule.seed)});
  REQUIRE(sampler.ok());
  const std::int64_t micro_steps = config->batch.grad_accum_steps;
  ArithmeticModel model(*shape, static_cast<int>(micro_steps), parameters.all());
  for (std::int64_t step = 0; step < config->schedule.steps; ++step) {
    double loss = 0;
    for (std::int32_t m = 0; m < micro_steps; ++m) {
      const std::int64_t position = (step * micro_steps + m) * config->batch.batch;
      REQUIRE(model
                  .set_batch(m, *sampler->train_batch(static_cast<std::uint64_t>(position)),
                             model::BatchUse::training)
                  .ok());
      for (std::int32_t l = 0; l < layout.layer_count(); ++l) {
        REQUIRE(model.forward(LayerId{l}, m).ok());
      }
      loss += model.loss(m);
    }
    memory.losses.push_back(loss / static_cast<double>(micro_steps));
    backward(model, micro_steps, gradient);
    optimizer::UpdateOptions update = config->update;
    update.lr = plan::learning_rate({config->update.lr, config->schedule.min_lr,
                                     config->schedule.warmup_steps, config->schedule.steps},
                                    step);
    const std::int64_t elements = config->offload.subgroup_elements;
    for (std::int64_t first = 0; first < layout.parameter_count; first += elements) {
      const std::int64_t end = std::min(first + elements, layout.parameter_count);
      const double norm = std::sqrt(sum_of_squares(layout, gradient, first, end));
      const double limit =
          config->arithmetic.max_grad_norm *
          std::sqrt(static_cast<double>(end - first) / static_cast<double>(layout.parameter_count));
      const double factor = std::min(1.0, limit / (norm + 1e-6));
      memory.clipped_count += factor < 1 ? 1 : 0;
      optimizer::UpdateArrays arrays;
      arrays.element_count = end - first;
      for (std::size_t v = 0; v < 3; ++v) arrays.state[v] = memory.state[v].data() + first;
      arrays.gradient = gradient.data() + first;
      optimizer::update_reference(optimizer::update_scalars(update, step + 1, factor), arrays);
    }
    parameters.put(master_weights);
  }
  return memory;
}

// Some subgroups are clipped and some are not.
const std::vector<std::string> kClipped = {"overlap=local", "max_grad_norm=20", "lr=0.01"};

}  // namespace

TEST_CASE("clipped by subgroup, training has the bits of a plain loop that clips so") {
  const SmallRun files;
  // A table of four blocks and more, so that subgroups have whole blocks and parts of them.
  write_text(files.folder.file("wide.toml"),
             "name = \"wide\"\nlayers = 2\nhidden = 64\nheads = 2\nsequence = 16\n"
             "vocabulary = 1100\n");
  const std::vector<std::vector<std::string>> shapes = {
      {"steps=20"},
      {"steps=20", "precision=fp32", "method=host"},
      {"steps=20", "subgroup_elements=777", "grad_accum_steps=3"},
      {"steps=20", "model=" + files.folder.file("wide.toml"), "subgroup_elements=20000",
       "max_grad_norm=65"},
      {"steps=20", "model=" + files.folder.file("wide.toml"), "subgroup_elements=40001",
       "max_grad_norm=65"},
  };
  for (const std::vector<std::string>& shape : shapes) {
    const std::vector<std::string> settings = with(kClipped, shape);
    INFO(text_of(settings));
    const ClippedInMemory memory = train_clipped_in_memory(files, settings);
    const SmallRun run_files;
    const auto run = run_of(run_files, settings);
    INFO((run.ok() ? std::string() : run.error().message()));
    REQUIRE(run.ok());
    CHECK(run->trained.losses == memory.losses);
    for (std::size_t v = 0; v < 3; ++v) {
      CHECK(std::memcmp(run->state[v].data(), memory.state[v].data(),
                        memory.state[v].size() * sizeof(float)) == 0);
    }
    CHECK(run->clipped_count == memory.clipped_count);
    CHECK(run->clipped_count > 0);
    CHECK(run->clipped_count < 20 * run->subgroup_count);
    CHECK(run->ahead_count > 0);
    CHECK(run->refuted_count == 0);
  }
}

TEST_CASE("without a limit overlap=local has the numbers of overlap=off, in any way to offload") {
  for (const OffloadWay& way : ways_to_offload()) {
    if (way[5] != "optimizer=adamw") continue;  // clipping by subgroup, below, has all of them
    const std::vector<std::string> settings = with(way, {"max_grad_norm=0"});
    const SmallRun plain_files, files;
    const auto plain = train_small(plain_files, settings);
    const auto run = run_of(files, with(settings, {"overlap=local"}));
    INFO(text_of(way));
    REQUIRE(plain.ok());
    REQUIRE(run.ok());
    REQUIRE(run->trained.losses == plain->losses);
    REQUIRE(run->trained.digest == plain->digest);
    REQUIRE(run->clipped_count == 0);
    for (std::size_t i = 0; i < plain->steps.size(); ++i) {
      REQUIRE(run->trained.steps[i].grad_norm == plain->steps[i].grad_norm);
    }
  }
}

TEST_CASE("clipped by subgroup, the way to offload changes no bit") {
  for (const std::string optimizer : {"adamw", "sgd", "adagrad"}) {
    for (const std::string sent : {"density=1", "density=0.05"}) {
      std::map<std::string, Run> first_of;  // by precision
      for (const OffloadWay& way : ways_to_offload()) {
        if (way[4] != sent || way[5] != "optimizer=" + optimizer) continue;
        const SmallRun files;
        const auto run = run_of(files, with(kClipped, way));
        INFO(text_of(way));
        INFO((run.ok() ? std::string() : run.error().message()));
        REQUIRE(run.ok());
        const Run& first = first_of.try_emplace(way[6], *run).first->second;
        REQUIRE(run->trained.losses == first.trained.losses);
        REQUIRE(run->trained.digest == first.trained.digest);
        REQUIRE(run->clipped_count == first.clipped_count);
        REQUIRE(run->clipped_count > 0);
        REQUIRE(run->refuted_count == 0);
      }
    }
  }
}

TEST_CASE("clipped by subgroup, caches, commits, tiers, devices and clocks change no bit") {
  const std::vector<std::vector<std::string>> shapes = {
      {},
      {"grad_accum_steps=2"},
      {"density=0.05", "error_feedback=true"},
      {"density=0.05", "error_feedback=true", "grad_accum_steps=2"},
  };
  const std::vector<std::vector<std::string>> ways = {
      {"method=host", "pipeline=serial", "devices=1"},
      {"method=host", "buffers=4", "commit_every=3", "devices=3"},
      {"method=csd", "pipeline=handover", "commit_every=3", "device_map=3,1"},
      {"method=csd", "buffers=2", "commit_every=3", "state_cache=30KiB", "wire=native"},
      {"method=host", "buffers=3", "state_cache=auto", "gradient_tier=memory"},
      {"method=host", "pipeline=serial", "state_cache=40KiB", "commit_every=3"},
      {"method=host", "parameter_tier=storage", "buffers=3", "commit_every=3"},
      {"method=csd", "pipeline=handover", "parameter_tier=storage", "activations=offload"},
      {"method=csd", "parameter_tier=storage", "state_cache=30KiB", "prefetch=false"},
      {"method=csd", "clock=emulated", "time_scale=1", "io_engine=posix"},
      {"method=host", "clock=emulated", "time_scale=0.1", "commit_every=3"},
  };
  for (const std::vector<std::string>& shape : shapes) {
    std::optional<Run> first;
    for (const std::vector<std::string>& way : ways) {
      const std::vector<std::string> settings = with(with(kClipped, shape), way);
      const SmallRun files;
      const auto run = run_of(files, with(settings, {"steps=10"}));
      INFO(text_of(settings));
      INFO((run.ok() ? std::string() : run.error().message()));
      REQUIRE(run.ok());
      if (!first) first = *run;
      REQUIRE(run->trained.losses == first->trained.losses);
      REQUIRE(run->trained.digest == first->trained.digest);
      REQUIRE(run->clipped_count > 0);
      REQUIRE(run->ahead_count > 0);
    }
  }
}

TEST_CASE("clipped by subgroup, resumes and live changes have the numbers of one run") {
  const std::vector<std::string> settings = with(kClipped, {"steps=9", "schedule_steps=9"});
  const SmallRun whole_files;
  const auto whole = run_of(whole_files, settings);
  REQUIRE(whole.ok());
  for (const std::string commits : {"commit_every=1", "commit_every=3"}) {
    const SmallRun files;
    const auto first = run_of(files, with(settings, {"steps=4", commits, "method=host"}));
    const auto rest = run_of(files, with(settings, {commits, "pipeline=handover"}),
                             session::StartFrom::last_commit);
    REQUIRE(first.ok());
    REQUIRE(rest.ok());
    CHECK(rest->trained.digest == whole->trained.digest);
    for (const auto& changes : std::vector<std::vector<session::PlannedChange>>{
             {{2, {"pipeline=serial"}}, {5, {"method=host"}}, {7, {"gradient_tier=memory"}}},
             {{1, {"device_map=3,1"}}, {4, {"state_cache=30KiB"}}, {6, {"commit_every=2"}}}}) {
      const SmallRun fresh;
      const auto changed =
          run_of(fresh, with(settings, {commits}), session::StartFrom::new_state, changes);
      INFO((changed.ok() ? std::string() : changed.error().message()));
      REQUIRE(changed.ok());
      CHECK(changed->trained.losses == whole->trained.losses);
      CHECK(changed->trained.digest == whole->trained.digest);
    }
  }
}

TEST_CASE(
    "overlap=local goes on and off between two steps, and by resumes, with the same numbers") {
  const std::vector<std::string> settings = {"max_grad_norm=20", "lr=0.01", "schedule_steps=9"};
  for (const std::string commits : {"commit_every=1", "commit_every=3"}) {
    const std::vector<session::PlannedChange> changes = {{2, {"overlap=local"}},
                                                         {5, {"overlap=exact"}}};
    const SmallRun live_files, files;
    const auto live = run_of(live_files, with(settings, {"steps=9", commits}),
                             session::StartFrom::new_state, changes);
    const auto off = run_of(files, with(settings, {"steps=2", commits}));
    const auto local = run_of(files, with(settings, {"steps=5", commits, "overlap=local"}),
                              session::StartFrom::last_commit);
    const auto exact = run_of(files, with(settings, {"steps=9", commits, "overlap=off"}),
                              session::StartFrom::last_commit);
    INFO((live.ok() ? std::string() : live.error().message()));
    REQUIRE(live.ok());
    REQUIRE(off.ok());
    REQUIRE(local.ok());
    REQUIRE(exact.ok());
    CHECK(live->trained.digest == exact->trained.digest);
    CHECK(live->clipped_count == local->clipped_count);
    CHECK(local->clipped_count > 0);
    CHECK(off->clipped_count + exact->clipped_count == 0);
  }
}

TEST_CASE("a gradient that is not finite ends a run that clips by subgroup, at its last commit") {
  constexpr std::int64_t kFailing = 4;
  for (const OffloadWay& way : std::vector<OffloadWay>{
           {"method=host"},
           {"method=csd"},
           {"method=csd", "pipeline=serial", "commit_every=3"},
           {"method=host", "pipeline=handover", "commit_every=3", "state_cache=40KiB"},
           {"method=csd", "density=0.05", "error_feedback=true", "commit_every=3"},
           {"method=host", "parameter_tier=storage", "gradient_tier=memory"}}) {
    for (const std::int32_t layer : {0, 2}) {
      const std::vector<std::string> settings = with(with(kClipped, way), {"steps=8"});
      PlantedSteps steps(8);
      steps[kFailing] = {Planted::overflow, layer, 1600};
      const SmallRun undisturbed, files;
      const auto whole = run_of(undisturbed, settings);
      const auto failed =
          run_of(files, settings, session::StartFrom::new_state, {}, planted_factory(steps));
      INFO(text_of(settings));
      REQUIRE(whole.ok());
      REQUIRE_FALSE(failed.ok());
      const std::string message = failed.error().message();
      CHECK_THAT(message, Catch::Contains("the gradients of step 5 are not finite (layer " +
                                          std::string(layer == 0 ? "embedding" : "h.1")));
      CHECK_THAT(message, Catch::Contains("subgroup "));
      const auto store = state::StateStore::open_read_only({files.folder.file("state")});
      REQUIRE(store.ok());
      const std::int64_t committed = (*store)->committed().position.step;
      CHECK(committed == (way.back() == "commit_every=3" || way.size() > 3 ? 3 : kFailing));
      const bool is_right_before = committed == kFailing;
      CHECK_THAT(message,
                 Catch::Contains(is_right_before ? "weights committed at step 4"
                                                 : "weights of step 3, which is committed"));
      const auto rest = run_of(files, settings, session::StartFrom::last_commit);
      REQUIRE(rest.ok());
      // The residual is not in a commit: what a run that fails has of it is gone.
      const bool keeps_residual = std::ranges::find(way, "error_feedback=true") != way.end();
      if (!keeps_residual) CHECK(rest->trained.digest == whole->trained.digest);
    }
  }
}

TEST_CASE("a request that fails while subgroups are clipped leaves the last commit") {
  check_last_commit_stands(with(kClipped, {"commit_every=3", "steps=8", "method=csd"}),
                           {.first = 60, .end = 900, .by = 29});
  check_last_commit_stands(
      with(kClipped, {"commit_every=3", "steps=8", "method=host", "pipeline=handover"}),
      {.first = 60, .end = 900, .by = 37});
}

TEST_CASE("a loss scale that may overflow is refused with overlap=local, in words") {
  const SmallRun files;
  const auto config = files.config({"overlap=local", "precision=fp16"});
  REQUIRE_FALSE(config.ok());
  CHECK_THAT(config.error().message(), Catch::Contains("overlap = \"local\"") &&
                                           Catch::Contains("precision = \"bf16\"") &&
                                           Catch::Contains("overlap = \"exact\""));
}
