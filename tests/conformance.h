#pragma once
// Conformance suites of the seams: promises of a header, as cases that each implementation is run
// through. A suite is a header X_conformance.h: a function a promise, and the list of them. A new
// implementation needs a TEST_CASE that hands over how one is made, and no test of its own for what
// all of them promise.
//
// Thread contract: test code, on the thread that runs the cases.

#include <catch2/catch.hpp>
#include <vector>

namespace sluice {

// `Maker`: makes an implementation, as the suite wants it.
template <typename Maker>
struct ConformanceCase {
  const char* promise;
  void (*check)(const Maker& make);
};

template <typename Maker>
void check_conformance(const std::vector<ConformanceCase<Maker>>& cases, const Maker& make) {
  REQUIRE_FALSE(cases.empty());
  for (const ConformanceCase<Maker>& one : cases) {
    DYNAMIC_SECTION(one.promise) { one.check(make); }
  }
}

}  // namespace sluice
