#include "core/data/sampler.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>

#include "tests/core/data/files.h"

namespace sluice::data {
namespace {

using Catch::Matchers::Contains;

// Two-digit-like text in which every run of 3 bytes occurs once, so that a window's first bytes say
// where it stands.
std::string positions_text(std::int64_t size) {
  std::string text;
  for (std::int64_t i = 0; static_cast<std::int64_t>(text.size()) < size; ++i) {
    text += {static_cast<char>(128 + i / 128), static_cast<char>(i % 128)};
  }
  text.resize(static_cast<std::size_t>(size));
  return text;
}

struct Text {
  explicit Text(std::int64_t size) {
    write_file(folder / "text", positions_text(size));
    REQUIRE(prepare_byte_tokens(folder / "text", folder / "tokens").ok());
    file = std::make_unique<TokenFile>(std::move(*TokenFile::open(folder / "tokens")));
    tokens = all_tokens(*file);
    for (std::size_t i = 0; i + 2 < tokens.size(); ++i) {
      REQUIRE(place.emplace(std::array{tokens[i], tokens[i + 1], tokens[i + 2]}, i).second);
    }
  }

  std::vector<std::int64_t> starts(const Result<model::TokenBatch>& made) const {
    REQUIRE(made.ok());
    const model::TokenBatch& batch = *made;
    std::vector<std::int64_t> found;
    for (std::int64_t row = 0; row < batch.batch; ++row) {
      const auto window = batch.inputs.subspan(row * batch.sequence, batch.sequence);
      found.push_back(place.at(std::array{window[0], window[1], window[2]}));
    }
    return found;
  }

  TemporaryFolder folder;
  std::unique_ptr<TokenFile> file;
  std::vector<std::int32_t> tokens;
  std::map<std::array<std::int32_t, 3>, std::int64_t> place;
};

std::vector<std::int32_t> copy(std::span<const std::int32_t> tokens) {
  return {tokens.begin(), tokens.end()};
}

TEST_CASE("targets are the inputs shifted by one") {
  const Text text(2000);
  Result<Sampler> sampler = Sampler::make(text.file.get(), {.batch = 3, .sequence = 16});
  REQUIRE(sampler.ok());
  for (const bool train : {true, false}) {
    const model::TokenBatch batch =
        train ? *sampler->train_batch(5) : *sampler->validation_batch(0);
    REQUIRE(batch.batch == 3);
    REQUIRE(batch.sequence == 16);
    const std::vector<std::int64_t> starts = text.starts(batch);
    for (std::int64_t i = 0; i < 3 * 16; ++i) {
      const std::int64_t at = starts[i / 16] + i % 16;
      CHECK(batch.inputs[i] == text.tokens[static_cast<std::size_t>(at)]);
      CHECK(batch.targets[i] == text.tokens[static_cast<std::size_t>(at + 1)]);
    }
  }
}

TEST_CASE("an epoch visits every window once, and epochs differ in order and offset") {
  const Text text(3000);
  Result<Sampler> sampler =
      Sampler::make(text.file.get(), {.batch = 1, .sequence = 16, .validation_fraction = 0.1});
  REQUIRE(sampler.ok());
  constexpr std::int64_t windows = (2700 - 16) / 16;

  std::set<std::vector<std::int64_t>> orders;
  std::set<std::int64_t> offsets;
  for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
    std::vector<std::int64_t> starts;
    for (std::int64_t i = 0; i < windows; ++i) {
      starts.push_back(text.starts(sampler->train_batch(epoch * windows + i))[0]);
    }
    orders.insert(starts);
    std::sort(starts.begin(), starts.end());
    offsets.insert(starts[0]);
    CHECK(starts[0] < 16);
    for (std::int64_t i = 0; i < windows; ++i) CHECK(starts[i] == starts[0] + 16 * i);
  }
  CHECK(orders.size() == 4);
  CHECK(offsets.size() > 1);
}

TEST_CASE("a batch is made from its position alone, also across the end of an epoch") {
  const Text text(1000);
  const SamplerOptions options{.batch = 4, .sequence = 16, .validation_fraction = 0.1, .seed = 3};
  Result<Sampler> walked = Sampler::make(text.file.get(), options);
  Result<Sampler> resumed = Sampler::make(text.file.get(), options);
  REQUIRE(walked.ok());
  REQUIRE(resumed.ok());
  static_assert((900 - 16) / 16 % 4 != 0);  // windows of an epoch
  for (std::uint64_t position = 0; position < 200; position += 4) {
    const model::TokenBatch batch = *walked->train_batch(position);
    CHECK(copy(resumed->train_batch(position)->inputs) == copy(batch.inputs));
  }
  // Four windows at once are the four windows one by one.
  Result<Sampler> single = Sampler::make(
      text.file.get(), {.batch = 1, .sequence = 16, .validation_fraction = 0.1, .seed = 3});
  REQUIRE(single.ok());
  const auto four = text.starts(walked->train_batch(52));
  for (std::uint64_t i = 0; i < 4; ++i) {
    CHECK(text.starts(single->train_batch(52 + i))[0] == four[i]);
  }
}

TEST_CASE("the seed chooses the order") {
  const Text text(2000);
  Result<Sampler> a = Sampler::make(text.file.get(), {.batch = 8, .sequence = 16, .seed = 1});
  Result<Sampler> b = Sampler::make(text.file.get(), {.batch = 8, .sequence = 16, .seed = 2});
  CHECK(text.starts(a->train_batch(0)) != text.starts(b->train_batch(0)));
}

TEST_CASE("validation and training share no token") {
  const Text text(3001);
  Result<Sampler> sampler =
      Sampler::make(text.file.get(), {.batch = 2, .sequence = 16, .validation_fraction = 0.1});
  REQUIRE(sampler.ok());
  constexpr std::int64_t kWindows = (2701 - 16) / 16;  // of an epoch
  std::int64_t last_trained = 0;
  for (std::int64_t i = 0; i < 3 * kWindows; ++i) {
    last_trained = std::max(last_trained, text.starts(sampler->train_batch(i))[0] + 16);
  }
  std::vector<std::int64_t> starts;
  REQUIRE(sampler->validation_batch_count() == 9);
  for (std::int64_t i = 0; i < sampler->validation_batch_count(); ++i) {
    for (const std::int64_t start : text.starts(sampler->validation_batch(i))) {
      starts.push_back(start);
    }
  }
  CHECK(last_trained < starts.front());
  CHECK(starts.front() == 2701);
  CHECK(std::is_sorted(starts.begin(), starts.end()));
  CHECK(starts.back() + 16 < 3001);
}

TEST_CASE("less than a batch of validation text gives one smaller batch") {
  const Text text(400);
  Result<Sampler> sampler =
      Sampler::make(text.file.get(), {.batch = 8, .sequence = 16, .validation_fraction = 0.1});
  REQUIRE(sampler.ok());
  CHECK(sampler->validation_batch_count() == 1);
  const model::TokenBatch batch = *sampler->validation_batch(0);
  CHECK(batch.batch == 2);
  CHECK(batch.inputs.size() == 32);
}

TEST_CASE("a text that is too short says how long it must be, and that length is enough") {
  for (const double fraction : {0.05, 0.1, 0.3, 0.5, 0.7, 0.95}) {
    const SamplerOptions options{.batch = 2, .sequence = 16, .validation_fraction = fraction};
    const Text short_text(18);
    const Result<Sampler> refused = Sampler::make(short_text.file.get(), options);
    REQUIRE_FALSE(refused.ok());
    const std::string message = refused.error().message();
    INFO(message);
    const std::string before = "must have at least ";
    const std::size_t at = message.find(before);
    REQUIRE(at != std::string::npos);
    const std::int64_t needed = std::stoll(message.substr(at + before.size()));

    const Text enough(needed);
    Result<Sampler> sampler = Sampler::make(enough.file.get(), options);
    REQUIRE(sampler.ok());
    for (std::uint64_t position = 0; position < 20; position += 2) {
      REQUIRE(sampler->train_batch(position).ok());  // no token outside (TokenFile CHECKs)
    }
    REQUIRE(sampler->validation_batch(0).ok());
    const Text one_less(needed - 1);
    CHECK_FALSE(Sampler::make(one_less.file.get(), options).ok());
  }
}

TEST_CASE("a part of the text that no text is long enough for is refused at once") {
  for (const double fraction : {1e-300, 1e-20, 1e-13, 1 - 1e-15}) {
    const Status status =
        Sampler::check(60'000, {.batch = 2, .sequence = 128, .validation_fraction = fraction}, "t");
    REQUIRE_FALSE(status.ok());
    CHECK_THAT(status.error().message(), Contains("no text is long enough"));
  }
  // The longest that is named is what is needed, though it is far beyond 32 bits.
  const SamplerOptions small{.batch = 2, .sequence = 128, .validation_fraction = 1e-12};
  const Status status = Sampler::check(60'000, small, "t");
  REQUIRE_FALSE(status.ok());
  CHECK_THAT(status.error().message(), Contains("at least 129000000000000 tokens"));
  CHECK(Sampler::check(129'000'000'000'000, small, "t").ok());
  CHECK_FALSE(Sampler::check(128'999'999'999'999, small, "t").ok());
}

TEST_CASE("a batch of a text that was cut meanwhile is an error") {
  const Text text(2000);
  Result<Sampler> sampler = Sampler::make(text.file.get(), {.batch = 3, .sequence = 16});
  REQUIRE(sampler.ok());
  std::filesystem::resize_file(text.folder / "tokens", 64);
  CHECK_THAT(sampler->train_batch(0).error().message(),
             Contains(text.folder / "tokens") && Contains("there is nothing from offset") &&
                 Contains("it was cut while it was in use"));
  CHECK_FALSE(sampler->validation_batch(0).ok());
}

TEST_CASE("one-byte texts and senseless options are errors") {
  const Text one(1);
  CHECK_FALSE(Sampler::make(one.file.get(), {}).ok());
  const Text text(2000);
  for (const double fraction : {0.0, 1.0, -0.1, std::nan("")}) {
    const Result<Sampler> sampler =
        Sampler::make(text.file.get(), {.sequence = 16, .validation_fraction = fraction});
    REQUIRE_FALSE(sampler.ok());
    CHECK_THAT(sampler.error().message(), Contains("validation_fraction"));
  }
  CHECK_FALSE(Sampler::make(text.file.get(), {.batch = 0, .sequence = 16}).ok());
  CHECK_FALSE(Sampler::make(text.file.get(), {.batch = 1, .sequence = 0}).ok());
}

}  // namespace
}  // namespace sluice::data
