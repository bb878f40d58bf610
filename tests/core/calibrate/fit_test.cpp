#include "core/calibrate/fit.h"

#include <array>
#include <catch2/catch.hpp>

namespace sluice::calibrate {
namespace {

using platform::Duplex;

ComputeSample made_sample(double flop, double elements, double matmul, double elementwise) {
  return {"made", flop, elements, flop / matmul + elements / elementwise};
}

}  // namespace

TEST_CASE("a figure is the median, and says how far apart the repeats were") {
  const Figure odd = figure_of({3, 1, 2});
  CHECK(odd.value == 2);
  CHECK(odd.low == 1);
  CHECK(odd.high == 3);
  CHECK(odd.count == 3);
  CHECK(figure_of({4, 1, 2, 3}).value == 2.5);
  CHECK(figure_of({7}).value == 7);
  CHECK_FALSE(Figure{}.is_measured());
}

TEST_CASE("directions that do not touch each other are full duplex, those that share time half") {
  CHECK(fit_duplex({200, 100}, {198, 97}) == Duplex::full);
  CHECK(fit_duplex({200, 100}, {100, 50}) == Duplex::half);
  // Half duplex in which writes take most of the time.
  CHECK(fit_duplex({200, 100}, {20, 90}) == Duplex::half);
  CHECK(share_of_time({200, 100}, {100, 50}) == 1);
  // A share that lies between becomes the nearer of the two.
  CHECK(fit_duplex({100, 100}, {70, 70}) == Duplex::half);
  CHECK(fit_duplex({100, 100}, {80, 80}) == Duplex::full);
}

TEST_CASE("a shared limit is what drives fall clearly short of their sum by") {
  const std::array<double, 3> alone = {100, 200, 100};
  const SharedLimit none = fit_shared_limit(alone, 390);
  CHECK_FALSE(none.is_found);
  CHECK(none.bytes_per_s == 400);
  const SharedLimit more = fit_shared_limit(alone, 420);  // together more than alone: no limit
  CHECK_FALSE(more.is_found);
  CHECK(more.bytes_per_s == 420);
  const SharedLimit found = fit_shared_limit(alone, 250);
  CHECK(found.is_found);
  CHECK(found.bytes_per_s == 250);
}

TEST_CASE("a rate is the slope through all completions, bunched or not") {
  std::vector<Progress> bunched;  // 100 MB/s, in bunches of 10 MB of requests of 1 MB
  for (int bunch = 0; bunch < 20; ++bunch) {
    for (int request = 1; request <= 10; ++request) {
      bunched.push_back({0.1 * bunch + 1e-5 * request, 1e6 * (10 * bunch + request)});
    }
  }
  CHECK(fit_rate(bunched) == Approx(100e6).epsilon(0.001));
  // Two windows of it that a bunch more or less ends with: a tenth and more beside it.
  CHECK(bunched[69].bytes / 0.6 > 110e6);
  CHECK(fit_rate({}) == 0);
  const std::array<Progress, 2> at_once = {{{1, 10}, {1, 20}}};
  CHECK(fit_rate(at_once) == 0);
}

TEST_CASE("a burst is what comes ahead of the lasting rate") {
  std::vector<Progress> progress;
  for (int ms = 1; ms <= 600; ++ms) {  // 40 MB at 400 MB/s, then 100 MB/s
    const double seconds = ms / 1e3;
    progress.push_back({seconds, ms <= 100 ? 400e6 * seconds : 30e6 + 100e6 * seconds});
  }
  const platform::Burst burst = fit_burst(progress, 100e6);
  CHECK(static_cast<double>(burst.size_bytes) == Approx(40e6).epsilon(0.01));
  CHECK(burst.bytes_per_s == Approx(400e6));
  // 10 MB at the beginning of each tenth of a second: on average half of that ahead.
  progress.clear();
  for (int slice = 0; slice < 6; ++slice) {
    progress.push_back({0.1 * slice + 0.001, 10e6 * (slice + 1)});
    progress.push_back({0.1 * slice + 0.099, 10e6 * (slice + 1)});
  }
  CHECK(static_cast<double>(fit_burst(progress, 100e6).size_bytes) == Approx(5e6).epsilon(0.1));
  // 12 ms ahead may be chance.
  progress.clear();
  for (int ms = 1; ms <= 600; ++ms) progress.push_back({ms / 1e3, 1.2e6 + 100e3 * ms});
  CHECK(fit_burst(progress, 100e6).size_bytes == 0);
}

TEST_CASE("how long a processor takes to wake is found again") {
  // The first 20 ms of work take 36 ms.
  const std::array<WakeSample, 3> samples = {WakeSample{0.010, 0.018}, WakeSample{0.020, 0.036},
                                             WakeSample{0.060, 0.076}};
  const Wake wake = fit_wake(samples);
  CHECK(wake.seconds == Approx(0.020));
  CHECK(wake.takes_seconds == Approx(0.036));
  // A millisecond may be chance.
  CHECK(fit_wake(std::array{WakeSample{0.010, 0.011}, WakeSample{0.050, 0.049}}).seconds == 0);
}

TEST_CASE("what transfers take of a processor is found again, and chance is not") {
  // A fifth of its time for 800 MB/s: layers take a quarter longer.
  std::vector<TollSample> samples;
  for (const double noise : {-0.02, 0.0, 0.0, 0.03, -0.01}) {
    samples.push_back({0.1, 0.1 * (1.25 + noise), 800e6});
  }
  const Toll toll = fit_toll(samples);
  CHECK(toll.longer.value == Approx(0.25));
  CHECK(toll.longer.low == Approx(0.23));
  CHECK(toll.bytes_per_s == Approx(800e6));
  CHECK(toll.processor_bytes_per_s == Approx(4e9));

  for (TollSample& sample : samples) sample.beside_seconds -= 0.025;
  CHECK(fit_toll(samples).processor_bytes_per_s == 0);
  CHECK(fit_toll(samples).longer.count == 5);
}

TEST_CASE("rates of products and of single values are found again") {
  const std::array<ComputeSample, 4> samples = {
      made_sample(64e9, 130e6, 300e9, 1.5e9), made_sample(7e9, 22e6, 300e9, 1.5e9),
      made_sample(128e9, 250e6, 300e9, 1.5e9), made_sample(28e9, 88e6, 300e9, 1.5e9)};
  const ComputeRates rates = fit_compute(samples);
  CHECK(rates.matmul == Approx(300e9));
  CHECK(rates.elementwise == Approx(1.5e9));
  CHECK(rates.worst_error < 1e-9);
}

TEST_CASE("samples that tell nothing about single values leave one rate") {
  const std::array<ComputeSample, 1> one = {ComputeSample{"one", 100e9, 1e9, 0.5}};
  const ComputeRates rates = fit_compute(one);
  CHECK(rates.matmul == Approx(200e9));
  CHECK(rates.elementwise == 0);
  // What would need a negative rate gets none: more single values, yet less time.
  const std::array<ComputeSample, 2> odd = {ComputeSample{"few", 100e9, 1e9, 0.5},
                                            ComputeSample{"many", 100e9, 2e9, 0.4}};
  CHECK(fit_compute(odd).elementwise == 0);
  CHECK(fit_compute(odd).matmul > 200e9);
  CHECK(fit_compute(odd).worst_error > 0.05);
}

}  // namespace sluice::calibrate
