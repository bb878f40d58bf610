#include <catch2/catch.hpp>
#include <cstring>

#include "core/weights/checkpoint.h"
#include "core/weights/checkpoint_writer.h"
#include "core/weights/hf_config.h"
#include "core/weights/model_folder.h"
#include "storage/state/state_reader.h"
#include "tests/core/train/small_run.h"

namespace sluice {
namespace {

// A folder of Hugging Face's with the shape of a small run's model and values of a seed that no run
// has, and those values.
std::vector<float> make_folder(const SmallRun& files, const std::string& folder) {
  auto shape = model::load_model_shape(files.folder.file("model.toml"));
  REQUIRE(shape.ok());
  const model::FlatLayout layout = shape->flat_layout();
  std::vector<float> values(static_cast<std::size_t>(layout.parameter_count));
  model::fill_initial(layout, 4711, 0, values);
  const auto config = weights::config_text(*shape, "float32");
  REQUIRE(config.ok());
  const auto written = weights::write_checkpoint(
      {folder, weights::ElementType::fp32, *config, {}, weights::kPieceBytes}, *shape,
      [&](std::int64_t first, std::int64_t count, const weights::TakeElements& take) {
        return take(std::span(values).subspan(static_cast<std::size_t>(first),
                                              static_cast<std::size_t>(count)));
      },
      [](std::int64_t, std::int64_t) { return ok_status(); });
  REQUIRE(written.ok());
  return values;
}

std::vector<float> master_weights(state::StateStore& store, std::int64_t count) {
  auto reader = state::StateReader::make(store);
  REQUIRE(reader.ok());
  std::vector<float> values;
  REQUIRE(reader
              ->read(0, 0, count,
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
    const std::vector<float> found = master_weights(store, std::ssize(values));
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

}  // namespace sluice
