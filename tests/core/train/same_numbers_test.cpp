// However the state is offloaded, the numbers are those of a loop that keeps everything in memory.

#include <catch2/catch.hpp>

#include "core/compress/top_k.h"
#include "core/data/token_file.h"
#include "core/offload/residual_file.h"
#include "core/optimizer/gradient_stats.h"
#include "core/optimizer/loss_scale.h"
#include "core/plan/lr_schedule.h"
#include "tests/core/train/planted_model.h"
#include "tests/core/train/small_run.h"

using namespace sluice;

namespace {

// The elements of [first, end) that are not among the largest become 0. A residual is added first,
// where there is one, and keeps what is dropped.
void drop_small(double density, std::int64_t first, std::int64_t end, std::vector<float>& gradient,
                std::vector<float>* residual) {
  const auto count = static_cast<std::size_t>(end - first);
  float* values = gradient.data() + first;
  for (std::size_t i = 0; residual != nullptr && i < count; ++i) {
    values[i] += (*residual)[static_cast<std::size_t>(first) + i];
  }
  const std::int64_t kept = compress::kept_count(density, end - first);
  std::vector<std::uint32_t> indices(static_cast<std::size_t>(kept));
  std::vector<float> kept_values(indices.size());
  compress::top_k_reference({values, count}, kept, {indices.data(), kept_values.data(), kept});
  if (residual != nullptr) {
    std::copy(values, values + count, residual->begin() + first);
    for (const std::uint32_t index : indices) {
      (*residual)[static_cast<std::size_t>(first) + index] = 0;
    }
  }
  std::fill(values, values + count, 0.0f);
  for (std::size_t i = 0; i < indices.size(); ++i) values[indices[i]] = kept_values[i];
}

// Plain training in memory, written apart from core/offload: reference update, one array each.
struct InMemory {
  std::vector<double> losses;
  std::vector<float> master_weights;
};

InMemory train_in_memory(const SmallRun& files, const std::vector<std::string>& settings) {
  auto config = files.config(settings);
  REQUIRE(config.ok());
  auto shape = model::load_model_shape(config->files.model);
  REQUIRE(shape.ok());
  const model::FlatLayout layout = shape->flat_layout();
  const auto count = static_cast<std::size_t>(layout.parameter_count);
  InMemory memory;
  memory.master_weights.resize(count);
  std::vector<float> second(count), third(count), gradient(count);  // state beside the weights
  std::vector<float> residual(count);
  PlainParameters parameters(count, config->arithmetic.precision);
  model::fill_initial(layout, static_cast<std::uint64_t>(config->schedule.seed), 0,
                      memory.master_weights);
  parameters.put(memory.master_weights);

  const std::string token_path = files.folder.file("reference.tokens");
  REQUIRE(data::prepare_byte_tokens(config->files.text, token_path).ok());
  auto tokens = data::TokenFile::open(token_path);
  REQUIRE(tokens.ok());
  data::SamplerOptions options;
  options.batch = config->batch.batch;
  options.sequence = config->batch.sequence;
  options.validation_fraction = config->validation.fraction;
  options.seed = static_cast<std::uint64_t>(config->schedule.seed);
  auto sampler = data::Sampler::make(&*tokens, options);
  REQUIRE(sampler.ok());
  ArithmeticModel model(*shape, 1, parameters.all());
  for (std::int64_t step = 0; step < config->schedule.steps; ++step) {
    REQUIRE(model
                .set_batch(0,
                           *sampler->train_batch(static_cast<std::uint64_t>(step * options.batch)),
                           model::BatchUse::training)
                .ok());
    double norm_squared = 0;
    for (std::int32_t layer = 0; layer < layout.layer_count(); ++layer) {
      REQUIRE(model.forward(LayerId{layer}, 0).ok());
    }
    for (std::int32_t layer = 0; layer < layout.layer_count(); ++layer) {
      const model::LayerRange& range = layout.layer(LayerId{layer});
      float* values = gradient.data() + range.first;
      std::fill(values, values + range.count, 0.0f);
      REQUIRE(model.backward(LayerId{layer}, 0, 1.0, {nullptr, values, range.count}).ok());
      norm_squared +=
          optimizer::gradient_stats_reference(values, optimizer::GradientKind::fp32, range.count)
              .sum_of_squares;
    }
    memory.losses.push_back(model.loss(0));
    const settings::OffloadConfig& offload = config->offload;
    for (const model::LayerRange& range : layout.layers) {
      const std::int64_t end = range.first + range.count;
      for (std::int64_t first = range.first; offload.density < 1 && first < end;) {
        const std::int64_t size = offload.subgroup_elements;
        const std::int64_t next = std::min(end, (first / size + 1) * size);
        drop_small(offload.density, first, next, gradient,
                   offload.error_feedback ? &residual : nullptr);
        first = next;
      }
    }
    optimizer::UpdateOptions update = config->update;
    update.lr = plan::learning_rate({config->update.lr, config->schedule.min_lr,
                                     config->schedule.warmup_steps, config->schedule.steps},
                                    step);
    optimizer::UpdateArrays arrays;
    arrays.element_count = layout.parameter_count;
    arrays.state = {memory.master_weights.data(), second.data(), third.data()};
    arrays.gradient = gradient.data();
    const double scale =
        optimizer::grad_scale(1.0, std::sqrt(norm_squared), config->arithmetic.max_grad_norm);
    optimizer::update_reference(optimizer::update_scalars(update, step + 1, scale), arrays);
    parameters.put(memory.master_weights);
  }
  return memory;
}

const std::vector<std::pair<std::string, std::string>> kMethodsAndPrecisions = {
    {"host", "bf16"}, {"csd", "bf16"}, {"host", "fp32"}, {"csd", "fp32"}};

}  // namespace

TEST_CASE("offloaded training has the losses of training in memory, to the last bit") {
  for (const std::string optimizer : {"adamw", "sgd", "adagrad"}) {
    for (const auto& [method, precision] : kMethodsAndPrecisions) {
      const std::vector<std::string> settings = {"optimizer=" + optimizer, "weight_decay=0.01",
                                                 "lr=0.01", "precision=" + precision};
      const SmallRun files;
      std::vector<std::string> all = settings;
      all.push_back("method=" + method);
      INFO(optimizer << " on " << method << " in " << precision);
      const InMemory memory = train_in_memory(files, settings);
      const auto trained = train_small(files, all);
      REQUIRE(trained.ok());
      CHECK(trained->losses == memory.losses);
      CHECK(trained->losses.back() < trained->losses.front());
    }
  }
}

TEST_CASE("layers of which several share a page have the losses of training in memory") {
  const SmallRun files(4, 4);
  const InMemory memory = train_in_memory(files, {"lr=0.01"});
  for (const std::string method : {"method=host", "method=csd"}) {
    const SmallRun offloaded(4, 4);
    INFO(method);
    const auto trained = train_small(offloaded, {"lr=0.01", method});
    REQUIRE(trained.ok());
    CHECK(trained->losses == memory.losses);
  }
}

TEST_CASE("compressed training has the losses of training in memory that drops the same elements") {
  for (const std::string feedback : {"true", "false"}) {
    for (const auto& [optimizer, precision] :
         {std::pair<std::string, std::string>("adamw", "bf16"),
          std::pair<std::string, std::string>("sgd", "bf16"),
          std::pair<std::string, std::string>("adamw", "fp32")}) {
      const std::vector<std::string> settings = {"optimizer=" + optimizer, "density=0.03",
                                                 "lr=0.01", "error_feedback=" + feedback,
                                                 "precision=" + precision};
      const SmallRun files;
      INFO(optimizer << " feedback " << feedback << " in " << precision);
      const InMemory memory = train_in_memory(files, settings);
      const auto trained = train_small(files, settings);
      REQUIRE(trained.ok());
      CHECK(trained->losses == memory.losses);
    }
  }
}

TEST_CASE("compressed too, method, pipeline, devices, map, tier and clock change no bit") {
  for (const std::string feedback : {"true", "false"}) {
    const std::vector<std::vector<std::string>> variants = {
        {"method=csd", "devices=1", "buffers=1"},
        {"method=host", "devices=3", "buffers=4", "wire=native"},
        {"method=host", "gradient_tier=memory", "pipeline=serial"},
        {"method=csd", "pipeline=serial", "device_map=5,1"},
        {"method=csd", "pipeline=handover", "devices=3", "wire=native"},
        {"method=csd", "clock=emulated", "time_scale=1", "io_engine=posix"},
    };
    std::optional<Trained> first;
    for (std::vector<std::string> settings : variants) {
      settings.insert(settings.end(), {"density=0.02", "error_feedback=" + feedback});
      const SmallRun fresh;
      const auto trained = train_small(fresh, settings);
      INFO(fmt::format("{}", fmt::join(settings, " ")));
      INFO((trained.ok() ? std::string() : trained.error().message()));
      REQUIRE(trained.ok());
      if (!first) first = *trained;
      CHECK(trained->losses == first->losses);
      CHECK(trained->digest == first->digest);
    }
  }
}

TEST_CASE("method, pipeline, its depth, devices, map, subgroups, wire and clock change no bit") {
  const SmallRun files;
  const auto plain = train_small(files, {"method=host", "devices=1", "buffers=1"});
  REQUIRE(plain.ok());
  const std::vector<std::vector<std::string>> variants = {
      {"method=host", "devices=3", "buffers=4", "subgroup_elements=777"},
      {"method=host", "devices=10", "subgroup_elements=100000000"},
      {"method=host", "prefetch=false", "wire=native"},
      {"method=host", "gradient_tier=memory", "devices=2", "subgroup_elements=777"},
      {"method=host", "gradient_tier=memory", "pipeline=serial", "wire=native"},
      {"method=csd", "devices=1", "buffers=1",
       "subgroup_elements=1"
       "000"},
      {"method=csd", "devices=2", "buffers=2", "device_map=5,1"},
      {"method=csd", "devices=3", "buffers=3", "device_map=1,0,2", "subgroup_elements=1024"},
      {"method=csd", "devices=10", "buffers=4", "subgroup_elements=333", "wire=native"},
      {"method=csd", "devices=2", "io_bytes=4096", "queue_depth=1", "prefetch=false"},
      {"method=csd", "io_engine=posix"},
      {"method=host", "pipeline=serial", "devices=3", "device_map=1,0,2"},
      {"method=csd", "pipeline=serial", "devices=2", "wire=native"},
      {"method=host", "pipeline=handover", "devices=2", "subgroup_elements=901"},
      {"method=csd", "pipeline=handover", "devices=3", "device_map=3,1,1"},
      {"method=csd", "pipeline=handover", "wire=native", "subgroup_elements=700"},
      {"method=csd", "clock=emulated", "time_scale=1"},
      {"method=host", "clock=emulated", "time_scale=0.1"},
  };
  for (const std::vector<std::string>& settings : variants) {
    const SmallRun fresh;
    const auto trained = train_small(fresh, settings);
    INFO(fmt::format("{}", fmt::join(settings, " ")));
    INFO((trained.ok() ? std::string() : trained.error().message()));
    REQUIRE(trained.ok());
    CHECK(trained->losses == plain->losses);
    CHECK(trained->digest == plain->digest);
  }
}

TEST_CASE("exact state has the losses and the digest of fp32, compact its own, on every path") {
  const std::vector<std::vector<std::string>> variants = {
      {"method=host", "devices=1", "buffers=1"},
      {"method=host", "devices=3", "commit_every=4", "wire=native", "gradient_tier=memory"},
      {"method=host", "pipeline=serial", "state_cache=60KB", "commit_every=2"},
      {"method=host", "pipeline=handover", "commit_every=3", "overlap=exact"},
      {"method=host", "parameter_tier=storage", "subgroup_elements=640"},
      {"method=csd", "pipeline=nbuffer", "device_map=5,1", "overlap=exact"},
      {"method=csd", "pipeline=serial", "wire=native", "subgroup_elements=100000000"},
      {"method=csd", "pipeline=handover", "state_cache=60KB", "commit_every=4"},
      {"method=csd", "parameter_tier=storage", "clock=emulated"},
  };
  for (const std::string optimizer : {"adamw", "sgd", "adagrad"}) {
    const std::vector<std::string> common = {"subgroup_elements=1536", "optimizer=" + optimizer};
    const SmallRun files;
    const auto plain = train_small(files, common);
    REQUIRE(plain.ok());
    for (const std::vector<std::string>& formats : {std::vector<std::string>{"state_format=exact"},
                                                    {"state_format=compact"},
                                                    {"state_format=compact", "remainder_bits=8"}}) {
      std::optional<Trained> first;
      if (formats.front() == "state_format=exact") first = *plain;
      for (const std::vector<std::string>& variant : variants) {
        std::vector<std::string> settings = common;
        settings.insert(settings.end(), formats.begin(), formats.end());
        settings.insert(settings.end(), variant.begin(), variant.end());
        const SmallRun fresh;
        const auto trained = train_small(fresh, settings);
        INFO(fmt::format("{}", fmt::join(settings, " ")));
        INFO((trained.ok() ? std::string() : trained.error().message()));
        REQUIRE(trained.ok());
        if (!first) {
          first = *trained;
          CHECK(trained->digest != plain->digest);
        }
        CHECK(trained->losses == first->losses);
        CHECK(trained->digest == first->digest);
      }
    }
  }
}

TEST_CASE("several compute units at work on one device change no bit") {
  const SmallRun files;
  const auto plain = train_small(files, {"method=host", "devices=1"});
  REQUIRE(plain.ok());
  const SmallRun fresh;
  std::ifstream sample(SLUICE_SOURCE_DIR "/sample_models/platforms/smartssd-a5000.toml");
  std::string platform(std::istreambuf_iterator<char>(sample), {});
  const std::string engine = "[device.engine]\n";
  platform.insert(platform.find(engine) + engine.size(), "compute_units = 3\n");
  // So slow that each subgroup's update is long: 333 elements take 7 ms.
  write_text(fresh.folder.file("units.toml"), "engine_scale = 0.0001\n" + platform);
  const auto trained =
      train_small(fresh, {"method=csd", "devices=1", "buffers=4", "subgroup_elements=333",
                          "clock=emulated", "platform=" + fresh.folder.file("units.toml")});
  INFO((trained.ok() ? std::string() : trained.error().message()));
  REQUIRE(trained.ok());
  CHECK(trained->losses == plain->losses);
  CHECK(trained->digest == plain->digest);
}

TEST_CASE("with two state arrays method, devices, subgroups, wire and clock change no bit") {
  for (const std::string optimizer : {"sgd", "adagrad"}) {
    const std::vector<std::vector<std::string>> variants = {
        {"method=host", "devices=1", "buffers=1"},
        {"method=host", "devices=3", "buffers=4", "subgroup_elements=777", "prefetch=false"},
        {"method=csd", "devices=1", "buffers=1", "subgroup_elements=1000"},
        {"method=csd", "devices=3", "device_map=1,0,2", "subgroup_elements=333", "wire=native"},
        {"method=csd", "clock=emulated", "io_engine=posix"},
    };
    std::optional<Trained> first;
    for (std::vector<std::string> settings : variants) {
      settings.push_back("optimizer=" + optimizer);
      const SmallRun fresh;
      const auto trained = train_small(fresh, settings);
      INFO(fmt::format("{}", fmt::join(settings, " ")));
      INFO((trained.ok() ? std::string() : trained.error().message()));
      REQUIRE(trained.ok());
      if (!first) first = *trained;
      CHECK(trained->losses == first->losses);
      CHECK(trained->digest == first->digest);
    }
  }
}

TEST_CASE("micro-batches are added in fp32 and give the same numbers on every path") {
  const SmallRun a;
  const SmallRun b;
  const auto host = train_small(a, {"grad_accum_steps=3", "method=host", "wire=native"});
  const auto csd = train_small(b, {"grad_accum_steps=3", "method=csd", "subgroup_elements=901"});
  REQUIRE(host.ok());
  REQUIRE(csd.ok());
  CHECK(host->losses == csd->losses);
  CHECK(host->digest == csd->digest);
}

TEST_CASE("fp16: an overflow skips the step, halves the scale, and leaves the state alone") {
  const SmallRun a;
  const SmallRun b;
  const std::vector<std::string> common = {"precision=fp16", "initial_loss_scale=524288"};
  auto host = common;
  host.push_back("method=host");
  auto csd = common;
  csd.push_back("method=csd");
  const auto on_host = train_small(a, host);
  const auto on_csd = train_small(b, csd);
  REQUIRE(on_host.ok());
  REQUIRE(on_csd.ok());
  CHECK(on_host->digest == on_csd->digest);
  CHECK(on_host->losses == on_csd->losses);
  REQUIRE(on_host->steps.front().skipped);
  CHECK_FALSE(on_host->steps.back().skipped);
  CHECK(on_host->steps[1].loss_scale == on_host->steps[0].loss_scale / 2);
}

TEST_CASE("fp16 and error feedback: a skipped step is the same on every path") {
  const SmallRun a;
  const SmallRun b;
  const std::vector<std::string> common = {"precision=fp16", "initial_loss_scale=524288",
                                           "density=0.05", "error_feedback=true"};
  auto host = common;
  host.push_back("method=host");
  const auto on_host = train_small(a, host);
  const auto on_csd = train_small(b, common);
  REQUIRE(on_host.ok());
  REQUIRE(on_csd.ok());
  REQUIRE(on_host->steps.front().skipped);
  CHECK_FALSE(on_host->steps.back().skipped);
  CHECK(on_host->digest == on_csd->digest);
  CHECK(on_host->losses == on_csd->losses);
}

TEST_CASE(
    "a skipped step sends nothing: what it leaves in the residual has nothing of the density") {
  const PlantedSteps steps(1, {Planted::overflow, 0, 0});  // when all other layers are compressed
  std::vector<std::vector<float>> residuals;
  for (const std::string density : {"density=0.05", "density=0.5"}) {
    const SmallRun files;
    const auto trained = train_small(
        files,
        {"precision=fp16", "initial_loss_scale=64", "error_feedback=true", "steps=1", density},
        session::StartFrom::new_state, {}, {}, nullptr, planted_factory(steps));
    REQUIRE(trained.ok());
    REQUIRE(trained->steps.front().skipped);
    std::vector<float>& residual = residuals.emplace_back(trained->parameter_count);
    const auto loaded = offload::load_residual(files.folder.file("state/residual.slc"), 1,
                                               offload::residual_in_memory(residual));
    REQUIRE(loaded.ok());
    REQUIRE(*loaded);
  }
  CHECK(std::ranges::count(residuals[0], 0.0F) < std::ssize(residuals[0]) / 2);
  CHECK((residuals[0] == residuals[1]));
}

TEST_CASE("bytes over each link are exactly those of the method and of the optimizer's state") {
  const std::pair<const char*, std::int64_t> optimizers[] = {
      {"adamw", 12}, {"sgd", 8}, {"adagrad", 8}};
  const std::int64_t steps = 6;
  for (const auto& [optimizer, state_bytes] : optimizers) {
    const std::string setting = fmt::format("optimizer={}", optimizer);
    INFO(setting);
    const SmallRun a;
    const auto host = train_small(a, {"method=host", "devices=1", setting});
    REQUIRE(host.ok());
    const std::int64_t elements = host->parameter_count * steps;
    // Links of the platform in order: host, then drive and internal link of the device.
    CHECK(host->link_bytes[0].size_bytes[0] == (state_bytes + 4) * elements);
    CHECK(host->link_bytes[0].size_bytes[1] == (state_bytes + 4) * elements);
    const SmallRun b;
    const auto csd = train_small(b, {"method=csd", "devices=1", setting});
    REQUIRE(csd.ok());
    CHECK(csd->link_bytes[0].size_bytes[0] == 4 * elements);
    CHECK(csd->link_bytes[0].size_bytes[1] == 4 * elements);
    const SmallRun c;
    const auto sparse = train_small(c, {"method=csd", "devices=1", "density=0.01", setting});
    REQUIRE(sparse.ok());
    CHECK(sparse->link_bytes[0].size_bytes[0] == 4 * elements);
    const std::int64_t gradients = sparse->link_bytes[0].size_bytes[1];
    CHECK(gradients > elements * 6 / 100);
    CHECK(gradients < elements / 4);  // headers and counts weigh more than in subgroups of millions
    CHECK(sparse->link_bytes[2].size_bytes[0] == state_bytes * elements + gradients);
    CHECK(csd->link_bytes[2].size_bytes[0] == (state_bytes + 4) * elements);
    CHECK(csd->link_bytes[2].size_bytes[1] == state_bytes * elements);
  }
}
