// What a sampler gives to answer: hidden tokens, and tokens that their file marks as learnt.

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "base/split_mix.h"
#include "core/data/sampler.h"
#include "core/data/token_marks.h"
#include "tests/core/data/files.h"
#include "tests/core/data/foreign_tokens.h"

namespace sluice::data {
namespace {

using model::kIgnoredTarget;

constexpr std::int32_t kMaskToken = 299;
constexpr std::int64_t kTokenValues = 300;

struct RandomText {
  explicit RandomText(std::int64_t count) {
    std::string text;
    for (std::int64_t i = 0; i < count; ++i) text += static_cast<char>(split_mix(7, i) & 0xff);
    write_file(folder / "text", text);
    REQUIRE(prepare_byte_tokens(folder / "text", folder / "tokens").ok());
    file = std::make_unique<TokenFile>(std::move(*TokenFile::open(folder / "tokens")));
  }

  Sampler sampler(std::int64_t batch, std::optional<HiddenTokens> hidden) const {
    return *Sampler::make(
        file.get(),
        {.batch = batch, .sequence = 64, .validation_fraction = 0.25, .seed = 3, .hidden = hidden});
  }

  TemporaryFolder folder;
  std::unique_ptr<TokenFile> file;
};

const HiddenTokens kHidden{.mask = kMaskToken, .vocabulary = kTokenValues, .share = 0.15};

struct CopiedBatch {
  explicit CopiedBatch(const Result<model::TokenBatch>& made) {
    REQUIRE(made.ok());
    inputs.assign(made->inputs.begin(), made->inputs.end());
    targets.assign(made->targets.begin(), made->targets.end());
    counted = made->counted_targets();
  }
  bool operator==(const CopiedBatch&) const = default;

  std::vector<std::int32_t> inputs;
  std::vector<std::int32_t> targets;
  std::int64_t counted = 0;
};

TEST_CASE("hidden tokens are 15 % of all, and of those 80, 10 and 10 % read as said") {
  const RandomText tokens(40'000);
  Sampler plain = tokens.sampler(1, std::nullopt);
  Sampler sampler = tokens.sampler(1, kHidden);
  double all = 0, chosen = 0, masked = 0, kept = 0;
  for (std::uint64_t position = 0; position < 400; ++position) {
    const CopiedBatch text(plain.train_batch(position));
    const CopiedBatch batch(sampler.train_batch(position));
    for (std::size_t i = 0; i < text.inputs.size(); ++i) {
      ++all;
      if (batch.targets[i] == kIgnoredTarget) {
        REQUIRE(batch.inputs[i] == text.inputs[i]);
        continue;
      }
      ++chosen;
      REQUIRE(batch.targets[i] == text.inputs[i]);
      REQUIRE(batch.inputs[i] >= 0);
      REQUIRE(batch.inputs[i] < kTokenValues);
      masked += batch.inputs[i] == kMaskToken ? 1 : 0;
      kept += batch.inputs[i] == text.inputs[i] ? 1 : 0;
    }
  }
  CHECK(chosen / all == Approx(0.15).margin(0.008));  // 25600 of them: 3.5 standard deviations
  CHECK(masked / chosen == Approx(0.8 + 0.1 / kTokenValues).margin(0.025));
  CHECK(kept / chosen == Approx(0.1 + 0.1 / kTokenValues).margin(0.02));
}

TEST_CASE("a window hides the same tokens whenever it is made, and others in the next epoch") {
  const RandomText tokens(2'000);
  Sampler sampler = tokens.sampler(2, kHidden);
  const CopiedBatch first(sampler.train_batch(4));
  const CopiedBatch validation(sampler.validation_batch(1));
  CHECK(CopiedBatch(sampler.train_batch(2)) != first);
  CHECK(CopiedBatch(sampler.train_batch(4)) == first);
  CHECK(CopiedBatch(sampler.validation_batch(1)) == validation);
  Sampler resumed = tokens.sampler(2, kHidden);
  CHECK(CopiedBatch(resumed.train_batch(4)) == first);

  // One window a batch: which columns it hides, for each time that the window comes.
  Sampler single = tokens.sampler(1, kHidden);
  std::set<std::vector<bool>> hidden;
  for (std::uint64_t position = 0; position < 100; ++position) {
    std::vector<bool> columns;
    for (const std::int32_t target : CopiedBatch(single.train_batch(position)).targets)
      columns.push_back(target != kIgnoredTarget);
    hidden.insert(columns);
  }
  CHECK(hidden.size() == 100);
}

// Tokens 0, 1, 2, ... of which every third is learnt.
TokenFile marked_file(const TemporaryFolder& folder) {
  std::vector<std::uint32_t> tokens;
  std::vector<std::uint8_t> marks;
  for (std::uint32_t i = 0; i < 2'000; ++i) {
    tokens.push_back(i);
    marks.push_back(i % 3 == 0 ? kLearnt : kDocumentBegins);
  }
  write_file(folder / "marked.tok", marked_tokens(tokens, 2, 2'000, marks));
  return std::move(*TokenFile::open(folder / "marked.tok"));
}

TEST_CASE("a target is a learnt token: the next one, or a hidden one itself") {
  const TemporaryFolder folder;
  const TokenFile file = marked_file(folder);
  const bool hides = GENERATE(false, true);
  SamplerOptions options{.batch = 2, .sequence = 32};
  if (hides) options.hidden = {.mask = 1'999, .vocabulary = 2'000, .share = 1};
  Sampler sampler = *Sampler::make(&file, options);
  const CopiedBatch batch(sampler.train_batch(6));
  std::int32_t token = 0;  // number and value of the one at column i
  for (std::size_t i = 0; i < batch.inputs.size(); ++i) {
    if (!hides) token = batch.inputs[i];
    if (hides) token = batch.targets[i] == kIgnoredTarget ? batch.inputs[i] : batch.targets[i];
    const std::int32_t answer = hides ? token : token + 1;
    CHECK(batch.targets[i] == (answer % 3 == 0 ? answer : kIgnoredTarget));
  }
  CHECK(batch.counted >= 20);
  CHECK(batch.counted <= 22);
  CHECK(*sampler.train_divisor(6, 1) == static_cast<double>(batch.counted));
}

// Tokens 0, 1, 2, ... that are all learnt, of which every tenth begins a document.
TokenFile file_of_documents(const TemporaryFolder& folder) {
  std::vector<std::uint32_t> tokens;
  std::vector<std::uint8_t> marks;
  for (std::uint32_t i = 0; i < 2'000; ++i) {
    tokens.push_back(i);
    marks.push_back(i % 10 == 0 ? kLearnt | kDocumentBegins : kLearnt);
  }
  write_file(folder / "documents.tok", marked_tokens(tokens, 2, 2'000, marks));
  return std::move(*TokenFile::open(folder / "documents.tok"));
}

TEST_CASE("apart, a token knows where its document begins, and the first of one is no target") {
  const TemporaryFolder folder;
  const TokenFile file = file_of_documents(folder);
  SamplerOptions options{.batch = 2, .sequence = 32, .documents = model::Documents::apart};
  Sampler sampler = *Sampler::make(&file, options);
  const Result<model::TokenBatch> batch = sampler.train_batch(6);
  REQUIRE(batch.ok());
  REQUIRE(batch->document_begins.size() == batch->inputs.size());
  for (std::int32_t i = 0; i < std::ssize(batch->inputs); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::int32_t token = batch->inputs[at], column = i % 32;
    CHECK(batch->document_begins[at] == std::max(0, column - token % 10));
    CHECK(batch->targets[at] == (token % 10 == 9 ? kIgnoredTarget : token + 1));
  }
  CHECK(*sampler.train_divisor(6, 1) == static_cast<double>(batch->counted_targets()));

  options.documents = model::Documents::together;
  Sampler together = *Sampler::make(&file, options);
  const Result<model::TokenBatch> whole = together.train_batch(6);
  REQUIRE(whole.ok());
  CHECK(whole->document_begins.empty());
  CHECK(whole->counted_targets() == 64);
}

// Tokens 0, 1, 2, ... in windows of 10, all learnt but for the last 3 of each.
TokenFile packed_file(const TemporaryFolder& folder, std::uint32_t windows) {
  std::vector<std::uint32_t> tokens;
  std::vector<std::uint8_t> marks;
  for (std::uint32_t i = 0; i < 10 * windows; ++i) {
    tokens.push_back(i);
    marks.push_back(i % 10 < 7 ? kLearnt : 0);
    if (i % 10 == 0 || i % 10 == 7) marks.back() |= kDocumentBegins;
  }
  write_file(folder / "packed.tok", marked_tokens(tokens, 2, 10 * windows, marks, 10));
  return std::move(*TokenFile::open(folder / "packed.tok"));
}

TEST_CASE("a packed file is read window by window, whole ones for training and validation") {
  const TemporaryFolder folder;
  const TokenFile file = packed_file(folder, 25);
  const SamplerOptions options{.batch = 1, .sequence = 10, .validation_fraction = 0.2};
  Sampler sampler = *Sampler::make(&file, options);
  REQUIRE(sampler.validation_batch_count() == 5);
  std::set<std::int32_t> seen;
  const auto see = [&](const Result<model::TokenBatch>& batch) {
    REQUIRE(batch.ok());
    const std::int32_t first = batch->inputs[0];
    REQUIRE(first % 10 == 0);
    for (std::int32_t i = 0; i < 10; ++i) {
      CHECK(batch->inputs[static_cast<std::size_t>(i)] == first + i);
      CHECK(batch->targets[static_cast<std::size_t>(i)] ==
            (i < 6 ? first + i + 1 : kIgnoredTarget));
    }
    seen.insert(first);
  };
  for (std::uint64_t position = 0; position < 20; ++position) see(sampler.train_batch(position));
  CHECK(seen.size() == 20);
  CHECK(*seen.rbegin() == 190);
  for (std::int64_t i = 0; i < 5; ++i) see(sampler.validation_batch(i));
  CHECK(seen.size() == 25);
  CHECK(*sampler.train_divisor(0, 20) == 6);
}

TEST_CASE("a packed file is refused with another sequence, and with too few windows") {
  const TemporaryFolder folder;
  const TokenFile file = packed_file(folder, 19);
  const auto refusal = [&](const SamplerOptions& options) {
    const Result<Sampler> made = Sampler::make(&file, options);
    REQUIRE_FALSE(made.ok());
    CHECK(made.error().code() == ErrorCode::config);
    return made.error().message();
  };
  CHECK_THAT(refusal({.batch = 1, .sequence = 9}),
             Catch::Matchers::Contains("packed into windows of 10 tokens") &&
                 Catch::Matchers::Contains("set sequence = 10") && Catch::Contains("--pack 9"));
  CHECK_THAT(
      refusal({.batch = 1, .sequence = 10, .validation_fraction = 0.05}),
      Catch::Matchers::Contains("19 packed windows are too few") && Catch::Contains("at least 20"));
}

TEST_CASE("the divisor is what a batch has of targets in the mean") {
  const RandomText tokens(4'000);
  Sampler sampler = tokens.sampler(3, kHidden);
  std::int64_t counted = 0;
  for (std::uint64_t batch = 0; batch < 4; ++batch)
    counted += CopiedBatch(sampler.train_batch(9 + 3 * batch)).counted;
  CHECK(*sampler.train_divisor(9, 4) == static_cast<double>(counted) / 4);
  counted = 0;
  for (std::int64_t batch = 0; batch < 5; ++batch)
    counted += CopiedBatch(sampler.validation_batch(batch)).counted;
  CHECK(*sampler.validation_divisor(5) == static_cast<double>(counted) / 5);

  Sampler plain = tokens.sampler(3, std::nullopt);
  CHECK(*plain.train_divisor(9, 4) == 3 * 64);
  CHECK(*plain.validation_divisor(5) == 3 * 64);
}

}  // namespace
}  // namespace sluice::data
