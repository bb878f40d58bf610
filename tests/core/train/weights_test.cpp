#include <catch2/catch.hpp>
#include <cstring>

#include "core/weights/checkpoint.h"
#include "core/weights/checkpoint_writer.h"
#include "core/weights/hf_config.h"
#include "core/weights/model_folder.h"
#include "storage/state/state_reader.h"
#include "tests/core/train/shard_runs.h"

namespace sluice {
namespace {

// A folder of Hugging Face's with the shape of a small run's model and values of a seed that no run
// has, and those values. Each array of an optimizer has their squares.
std::vector<float> make_folder(const SmallRun& files, const std::string& folder,
                               const std::vector<std::string>& arrays = {}) {
  auto shape = model::load_model_shape(files.folder.file("model.toml"));
  REQUIRE(shape.ok());
  const model::FlatLayout layout = shape->flat_layout();
  std::vector<float> values(static_cast<std::size_t>(layout.parameter_count));
  model::fill_initial(layout, 4711, 0, values);
  const auto config = weights::config_text(*shape, "float32");
  REQUIRE(config.ok());
  weights::CheckpointFiles made{
      folder, weights::ElementType::fp32, *config, {}, weights::kPieceBytes};
  const weights::ReadElements squares = [&](std::int64_t first, std::int64_t count,
                                            const weights::TakeElements& take) {
    std::vector<float> out;
    for (std::int64_t i = first; i < first + count; ++i) {
      const float value = values[static_cast<std::size_t>(i) % values.size()];
      out.push_back(value * value);
    }
    return take(out);
  };
  if (!arrays.empty()) made.optimizer = {arrays.size() == 2 ? "adamw" : "sgd", 41, arrays, squares};
  const auto written = weights::write_checkpoint(
      made, *shape,
      [&](std::int64_t first, std::int64_t count, const weights::TakeElements& take) {
        return take(std::span(values).subspan(static_cast<std::size_t>(first),
                                              static_cast<std::size_t>(count)));
      },
      [](std::int64_t, std::int64_t) { return ok_status(); });
  REQUIRE(written.ok());
  return values;
}

std::vector<float> array_of(state::StateStore& store, std::int32_t variable, std::int64_t count) {
  auto reader = state::StateReader::make(store);
  REQUIRE(reader.ok());
  std::vector<float> values;
  REQUIRE(reader
              ->read(variable, 0, count,
                     [&](std::span<const float> piece) {
                       values.insert(values.end(), piece.begin(), piece.end());
                       return ok_status();
                     })
              .ok());
  return values;
}

}  // namespace

TEST_CASE("the state before the first step has the weights of the folder, to the bit") {
  const SmallRun files;
  const std::string folder = files.folder.file("hf");
  const std::vector<float> values = make_folder(files, folder);
  for (const char* method : {"method=csd", "method=host"}) {
    INFO(method);
    const auto config =
        files.config({method, "model=" + folder, "output=" + files.folder.file(method)});
    REQUIRE(config.ok());
    const model::ModelFactory factory = arithmetic_factory();
    auto run = train::TrainingRun::open({.config = &*config, .factory = &factory});
    INFO((run.ok() ? "" : run.error().message()));
    REQUIRE(run.ok());
    REQUIRE((*run)->origin().weights != nullptr);
    REQUIRE((*run)->prepare(session::StartFrom::new_state).ok());
    state::StateStore& store = (*run)->session().state().store();
    REQUIRE(store.committed().position.step == 0);
    const std::vector<float> found = array_of(store, 0, std::ssize(values));
    CHECK(std::memcmp(found.data(), values.data(), values.size() * sizeof(float)) == 0);
  }
}

TEST_CASE("weights that cannot be read end the run before its first step") {
  const SmallRun files;
  const std::string folder = files.folder.file("hf");
  make_folder(files, folder);
  const auto config = files.config({"model=" + folder, "output=" + files.folder.file("out")});
  REQUIRE(config.ok());
  const model::ModelFactory factory = arithmetic_factory();
  auto run = train::TrainingRun::open({.config = &*config, .factory = &factory});
  REQUIRE(run.ok());
  std::filesystem::resize_file(folder + "/model.safetensors", 1000);
  const Status prepared = (*run)->prepare(session::StartFrom::new_state);
  REQUIRE_FALSE(prepared.ok());
  CHECK_THAT(prepared.error().message(), Catch::Contains("model.safetensors"));
  CHECK((*run)->session().state().store().committed().subgroups.empty());
}

TEST_CASE("a new state begins with the moments and the step of optimizer_state, to the bit") {
  const SmallRun files;
  struct OfRule {
    const char* rule;
    std::vector<std::string> arrays;
  };
  for (const OfRule& of :
       {OfRule{"adamw", {"exp_avg", "exp_avg_sq"}}, OfRule{"sgd", {"momentum_buffer"}}}) {
    INFO(of.rule);
    const std::string folder = files.folder.file(of.rule);
    std::vector<float> squares = make_folder(files, folder, of.arrays);
    for (float& value : squares) value *= value;
    const auto config = files.config({fmt::format("optimizer={}", of.rule), "model=" + folder,
                                      "optimizer_state=" + folder, "output=" + folder + "-out"});
    REQUIRE(config.ok());
    const model::ModelFactory factory = arithmetic_factory();
    auto run = train::TrainingRun::open({.config = &*config, .factory = &factory});
    INFO((run.ok() ? "" : run.error().message()));
    REQUIRE(run.ok());
    REQUIRE((*run)->prepare(session::StartFrom::new_state).ok());
    state::StateStore& store = (*run)->session().state().store();
    CHECK(store.committed().position.step == 0);
    CHECK(store.committed().position.optimizer_step == 41);
    for (std::size_t array = 0; array < of.arrays.size(); ++array) {
      const auto found = array_of(store, static_cast<std::int32_t>(array) + 1, std::ssize(squares));
      CHECK(std::memcmp(found.data(), squares.data(), squares.size() * sizeof(float)) == 0);
    }
    REQUIRE(state::digest_state(store, nullptr, nullptr).ok());
  }
}

TEST_CASE("an optimizer_state that a run cannot go on with is refused before anything is written") {
  const SmallRun files;
  const std::string folder = files.folder.file("hf");
  make_folder(files, folder, {"momentum_buffer"});
  const model::ModelFactory factory = arithmetic_factory();
  const auto refusal = [&](const std::vector<std::string>& settings) {
    std::vector<std::string> all = {"optimizer_state=" + folder,
                                    "output=" + files.folder.file("out")};
    all.insert(all.end(), settings.begin(), settings.end());
    const auto config = files.config(all);
    REQUIRE(config.ok());
    auto run = train::TrainingRun::open({.config = &*config, .factory = &factory});
    CHECK_FALSE(std::filesystem::exists(files.folder.file("out")));
    return run.ok() ? std::string("begun") : run.error().message();
  };
  CHECK_THAT(refusal({"model=" + folder}),
             Catch::Contains("is the state of sgd") && Catch::Contains("optimizer=sgd"));
  CHECK_THAT(refusal({"optimizer=sgd"}),
             Catch::Contains("are of the seed") && Catch::Contains("set model="));
}

TEST_CASE("ranks that have parts of the state begin with the same moments as one rank") {
  const SmallRun files = cut_in_eight();
  const std::string folder = files.folder.file("hf");
  make_folder(files, folder, {"exp_avg", "exp_avg_sq"});
  const std::vector<std::string> settings = {"subgroup_elements=9000",
                                             "devices=1",
                                             "batch=1",
                                             "steps=2",
                                             "worker_threads=1",
                                             "method=host",
                                             "durability=never",
                                             "max_grad_norm=0.01",
                                             "model=" + folder,
                                             "optimizer_state=" + folder};
  const Trained plain = one_rank(cut_in_eight(), settings, 8);
  const platform::Scope mesh{2, 4};
  const shard::Triple triple{.parameters = {1, 1}, .gradients = mesh, .state = mesh};
  const Trained found =
      require_alike(train_ranks(files, {8, with(settings, settings_of(triple, mesh))}));
  CHECK(found.losses == plain.losses);
  CHECK(found.digest == plain.digest);
  std::vector<std::string> anew = settings;
  anew.pop_back();
  CHECK(one_rank(cut_in_eight(), anew, 8).digest != plain.digest);
}

}  // namespace sluice
