// Columns of a counter, beside those that a plain walk over its samples makes.

#include "gui/data/counter_store.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

namespace sluice::gui {
namespace {

struct Sample {
  TimeNs ts;
  double value;
};

std::vector<Sample> made_samples(std::uint64_t seed, int count) {
  std::mt19937_64 random(seed);
  std::vector<Sample> samples;
  TimeNs ts = 0;
  for (int i = 0; i < count; ++i) {
    ts += static_cast<TimeNs>(random() % (std::uint64_t{1} << (random() % 16)));
    samples.push_back({ts, static_cast<double>(random() % 1000)});
  }
  return samples;
}

CounterSamples stored(const std::vector<Sample>& samples) {
  CounterSamples all;
  for (const Sample& sample : samples) all.add(sample.ts, sample.value);
  return all;
}

std::vector<CounterColumn> plain_columns(const std::vector<Sample>& samples, TimeNs begin,
                                         TimeNs end, TimeNs width_ns) {
  std::size_t first = 0;
  while (first + 1 < samples.size() && samples[first + 1].ts <= begin) ++first;
  std::vector<CounterColumn> columns;
  TimeNs column_end = 0;
  for (std::size_t i = first; i < samples.size() && samples[i].ts <= end; ++i) {
    const auto [ts, value] = samples[i];
    if (columns.empty() || ts >= column_end) {
      columns.push_back({ts, value, value, value});
      column_end = std::max(ts, begin) + width_ns;
    } else {
      CounterColumn& column = columns.back();
      column.low = std::min(column.low, value);
      column.high = std::max(column.high, value);
      column.last = value;
    }
  }
  return columns;
}

bool are_same(const CounterColumn& a, const CounterColumn& b) {
  return a.ts == b.ts && a.low == b.low && a.high == b.high && a.last == b.last;
}

}  // namespace

TEST_CASE("columns of a counter have what all of its samples in them have") {
  for (const int count : {1, 2, 255, 256, 257, 5000}) {
    const std::vector<Sample> samples = made_samples(static_cast<std::uint64_t>(count), count);
    const CounterSamples all = stored(samples);
    REQUIRE(all.count() == count);
    std::mt19937_64 random(7);
    for (int round = 0; round < 200; ++round) {
      const auto span = static_cast<std::uint64_t>(samples.back().ts + 2000);
      const TimeNs begin = static_cast<TimeNs>(random() % span) - 1000;
      const TimeNs end = begin + static_cast<TimeNs>(random() % span);
      const TimeNs width = 1 + static_cast<TimeNs>(random() % (std::uint64_t{1} << (round % 24)));
      const auto found = all.columns(begin, end, width);
      const auto expected = plain_columns(samples, begin, end, width);
      REQUIRE(std::ranges::equal(found, expected, are_same));
    }
  }
}

TEST_CASE("a snapshot of a counter stays as it was while samples come in") {
  const std::vector<Sample> samples = made_samples(3, 1000);
  CounterSamples all;
  std::vector<std::shared_ptr<const CounterSamples>> before;
  for (const Sample& sample : samples) {
    before.push_back(all.snapshot());
    all.add(sample.ts, sample.value);
  }
  for (std::size_t count = 0; count < samples.size(); count += 37) {
    const std::vector<Sample> first(samples.begin(),
                                    samples.begin() + static_cast<std::ptrdiff_t>(count));
    CHECK(before[count]->count() == std::ssize(first));
    const TimeNs end = samples.back().ts;
    CHECK(std::ranges::equal(before[count]->columns(0, end, 500), plain_columns(first, 0, end, 500),
                             are_same));
  }
}

TEST_CASE("a counter without samples has no columns") {
  CHECK(CounterSamples().columns(0, 1000, 10).empty());
  CHECK(CounterSamples().mean() == 0);
}

}  // namespace sluice::gui
