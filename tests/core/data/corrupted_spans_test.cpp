// Texts whose spans are taken out: their lengths, what becomes of a text, and that it is always the
// same.

#include "core/data/corrupted_spans.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>
#include <set>

#include "core/data/sampler.h"
#include "core/data/token_marks.h"
#include "core/model/span_lengths.h"
#include "tests/core/data/files.h"
#include "tests/core/data/foreign_tokens.h"

namespace sluice::data {
namespace {

using model::kIgnoredTarget;
using model::span_lengths;
using model::SpanLengths;
using Tokens = std::vector<std::int32_t>;

constexpr std::int32_t kSentinel = 2'999;
const CorruptedSpans kSpans{.first_sentinel = kSentinel, .end = 2'001, .start = 2'000};

// Tokens 0, 1, 2, ...; every third is not learnt where `has_marks`.
TokenFile counting_file(const TemporaryFolder& folder, bool has_marks) {
  std::vector<std::uint32_t> tokens(2'000);
  std::iota(tokens.begin(), tokens.end(), 0U);
  std::vector<std::uint8_t> marks;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    marks.push_back(has_marks && i % 3 == 0 ? 0 : kLearnt);
  write_file(folder / "counting.tok", marked_tokens(tokens, 2, 3'000, marks));
  return std::move(*TokenFile::open(folder / "counting.tok"));
}

struct Copied {
  explicit Copied(const Result<model::TokenBatch>& made) {
    REQUIRE(made.ok());
    for (const auto& [from, into] : {std::pair{made->inputs, &source},
                                     {made->decoder_inputs, &decoder_inputs},
                                     {made->targets, &targets}})
      into->assign(from.begin(), from.end());
    columns = made->target_columns();
  }
  bool operator==(const Copied&) const = default;

  Tokens source, decoder_inputs, targets;
  std::int64_t columns = 0;
};

Sampler sampler_of(const TokenFile& file, std::int64_t batch) {
  return *Sampler::make(
      &file,
      {.batch = batch, .sequence = 64, .validation_fraction = 0.25, .seed = 3, .spans = kSpans});
}

// The tokens behind each sentinel.
std::map<std::int32_t, Tokens> behind_sentinels(const Tokens& tokens, std::int32_t lowest) {
  std::map<std::int32_t, Tokens> spans;
  std::int32_t sentinel = kSentinel + 1;
  for (const std::int32_t token : tokens) {
    if (token >= lowest) {
      CHECK(token == sentinel - 1);
      sentinel = token;
      spans[sentinel] = {};
    } else if (sentinel <= kSentinel) {
      spans[sentinel].push_back(token);
    }
  }
  return spans;
}

TEST_CASE("texts, sources and targets are as long as those of transformers' example") {
  // Its compute_input_and_target_lengths(inputs_length, 0.15, 3.0).
  const auto found = [](std::int64_t sequence) {
    const SpanLengths lengths = span_lengths({}, sequence);
    CHECK(lengths.source() == sequence);
    return std::pair(lengths.text, lengths.targets);
  };
  CHECK(found(512) == std::pair<std::int64_t, std::int64_t>(568, 114));
  CHECK(found(256) == std::pair<std::int64_t, std::int64_t>(284, 58));
  CHECK(found(128) == std::pair<std::int64_t, std::int64_t>(141, 29));
  for (std::int64_t sequence = 3; sequence < 700; ++sequence) found(sequence);
  for (const double share : {0.01, 0.5, 0.9}) {
    for (const double length : {1.0, 2.5, 40.0}) {
      for (std::int64_t sequence = 3; sequence < 200; ++sequence) {
        const std::int64_t source = span_lengths({share, length}, sequence).source();
        CHECK((source == sequence || (share > 0.3 && source == sequence - 1)));
      }
    }
  }
}

TEST_CASE("source and targets together are the text, and the decoder reads the target before") {
  const TemporaryFolder folder;
  const TokenFile file = counting_file(folder, /*has_marks=*/false);
  Sampler sampler = sampler_of(file, 1);
  const SpanLengths lengths = span_lengths({}, 64);
  const std::int32_t lowest = kSentinel - static_cast<std::int32_t>(lengths.spans) + 1;
  for (std::uint64_t position = 0; position < 40; ++position) {
    Copied row(sampler.train_batch(position));
    REQUIRE(row.columns == lengths.targets);
    CHECK(row.decoder_inputs.front() == 2'000);
    CHECK(std::equal(row.targets.begin(), row.targets.end() - 1, row.decoder_inputs.begin() + 1));
    REQUIRE(row.source.back() == 2'001);
    REQUIRE(row.targets.back() == 2'001);
    row.source.pop_back();
    row.targets.pop_back();
    auto taken = behind_sentinels(row.targets, lowest);
    CHECK(std::ssize(taken) == lengths.spans);
    Tokens text;
    for (const std::int32_t token : row.source) {
      if (token < lowest) {
        text.push_back(token);
        continue;
      }
      CHECK_FALSE(text.empty());
      CHECK_FALSE(taken[token].empty());
      text.insert(text.end(), taken[token].begin(), taken[token].end());
    }
    REQUIRE(std::ssize(text) == lengths.text);
    for (std::size_t i = 1; i < text.size(); ++i) REQUIRE(text[i] == text[i - 1] + 1);
  }
}

TEST_CASE("a window is corrupted in the same way whenever it is made, and else in another") {
  const TemporaryFolder folder;
  const TokenFile file = counting_file(folder, /*has_marks=*/false);
  Sampler sampler = sampler_of(file, 2);
  const Copied first(sampler.train_batch(4));
  const Copied validation(sampler.validation_batch(1));
  CHECK(Copied(sampler.train_batch(6)) != first);
  CHECK(Copied(sampler.train_batch(4)) == first);
  CHECK(Copied(sampler.validation_batch(1)) == validation);
  Sampler resumed = sampler_of(file, 2);
  CHECK(Copied(resumed.train_batch(4)) == first);
  CHECK(*sampler.train_divisor(4, 3) == static_cast<double>(2 * first.columns));
}

TEST_CASE("a taken token that is not learnt is read by the decoder, and no target") {
  const TemporaryFolder folder;
  const TokenFile file = counting_file(folder, /*has_marks=*/true);
  Sampler sampler = sampler_of(file, 1);
  const Copied row(sampler.train_batch(2));
  std::int64_t ignored = 0;
  for (std::size_t i = 0; i + 1 < row.targets.size(); ++i) {
    const std::int32_t token = row.decoder_inputs[i + 1];
    const bool is_learnt = token >= 2'000 || token % 3 != 0;
    CHECK(row.targets[i] == (is_learnt ? token : kIgnoredTarget));
    ignored += is_learnt ? 0 : 1;
  }
  CHECK(ignored > 0);
  CHECK(*sampler.train_divisor(2, 1) == static_cast<double>(row.columns - ignored));
}

TEST_CASE("all ways to part a whole come alike often") {
  std::map<std::vector<std::int64_t>, int> counts;
  for (std::uint64_t stream = 0; stream < 6'000; ++stream) ++counts[parted(stream, 5, 3)];
  CHECK(counts.size() == 6);
  for (const auto& [lengths, count] : counts) {
    CHECK(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}) == 5);
    CHECK(count == Approx(1'000).margin(120));  // four standard deviations
  }
}

}  // namespace
}  // namespace sluice::data
