#include "gui/data/duration_histogram.h"

#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "base/split_mix.h"

namespace sluice::gui {

TEST_CASE("a length lies in the class that begins at or below it") {
  for (const TimeNs dur : {TimeNs{1}, TimeNs{2}, TimeNs{3}, TimeNs{7}, TimeNs{8}, TimeNs{1000},
                           TimeNs{123'456'789}, TimeNs{1} << 40, TimeNs{1} << 62}) {
    const std::size_t index = DurationHistogram::class_of(dur);
    CHECK(DurationHistogram::lower(index) <= dur);
    // Classes below 8 ns are narrower than one.
    if (dur >= 8 && dur < TimeNs{1} << 61) CHECK(DurationHistogram::lower(index + 1) > dur);
  }
  CHECK(DurationHistogram::class_of(0) == DurationHistogram::class_of(1));
  CHECK(DurationHistogram::class_of(-5) == DurationHistogram::class_of(1));
}

TEST_CASE("quantiles are those of the sorted lengths to seven per cent") {
  auto histogram = std::make_unique<DurationHistogram>();
  std::uint64_t index = 0;
  const auto random = [&index] { return split_mix(7, index++); };
  std::vector<TimeNs> lengths;
  for (int i = 0; i < 20'000; ++i) {
    const auto spread = static_cast<TimeNs>(random() % 24);
    lengths.push_back(static_cast<TimeNs>(random() % 1000 + 1) << spread);
    histogram->add(lengths.back());
  }
  std::ranges::sort(lengths);
  for (const double share : {0.01, 0.25, 0.5, 0.9, 0.99}) {
    const TimeNs exact = lengths[static_cast<std::size_t>(share * 19'999)];
    CHECK(static_cast<double>(histogram->quantile(share)) ==
          Approx(static_cast<double>(exact)).epsilon(0.07));
  }
  CHECK(histogram->count() == 20'000);
  CHECK(DurationHistogram().quantile(0.5) == 0);
}

TEST_CASE("quantiles of a few are exact, and none is outside of the shortest and the longest") {
  DurationHistogram one;
  one.add(64'000'000'000);
  CHECK(one.quantile(0.5) == 64'000'000'000);
  CHECK(one.quantile(0.99) == 64'000'000'000);
  DurationHistogram two;
  two.add(4'780'000'000);
  two.add(4'710'000'000);
  CHECK(two.quantile(0.5) == 4'710'000'000);
  CHECK(two.quantile(0.99) == 4'780'000'000);
  DurationHistogram alike;
  for (int i = 0; i < 100; ++i) alike.add(1'000'001);
  CHECK(alike.quantile(0.5) == 1'000'001);
  CHECK(alike.quantile(0.99) == 1'000'001);
}

}  // namespace sluice::gui
