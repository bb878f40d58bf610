#pragma once
// Ways to offload a run: what a suite goes through that must hold for all of them.

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/test_all.h"

namespace sluice {

// "key=value" settings of one way.
using OffloadWay = std::vector<std::string>;

// method x pipeline x wire x gradient_tier x density x optimizer x precision, but for what is
// refused.
inline std::vector<OffloadWay> every_way_to_offload() {
  std::vector<OffloadWay> ways;
  for (const std::string method : {"host", "csd"}) {
    for (const std::string pipeline : {"serial", "handover", "nbuffer"}) {
      for (const std::string wire : {"fp32", "native"}) {
        for (const std::string tier : {"storage", "memory"}) {
          if (method == "csd" && tier == "memory") continue;  // a device reads them from its drive
          for (const std::string density : {"1", "0.05"}) {
            for (const std::string optimizer : {"adamw", "sgd", "adagrad"}) {
              for (const std::string precision : {"bf16", "fp32"}) {
                ways.push_back({"method=" + method, "pipeline=" + pipeline, "wire=" + wire,
                                "gradient_tier=" + tier, "density=" + density,
                                "optimizer=" + optimizer, "precision=" + precision});
              }
            }
          }
        }
      }
    }
  }
  return ways;
}

// Two settings of one way, in the order of the way.
using SettingPair = std::pair<std::string, std::string>;
inline std::set<SettingPair> pairs_of(const OffloadWay& way) {
  std::set<SettingPair> pairs;
  for (std::size_t a = 0; a < way.size(); ++a) {
    for (std::size_t b = a + 1; b < way.size(); ++b) pairs.insert({way[a], way[b]});
  }
  return pairs;
}

// As few of `ways` as have each pair of settings that occurs in them, or nearly so: each time the
// way with most pairs that are still missing. Faults of a combination are nearly always those of
// two settings, and 12 ways take an 18th of the time of 216.
inline std::vector<OffloadWay> ways_with_each_pair(const std::vector<OffloadWay>& ways) {
  std::set<SettingPair> missing;
  for (const OffloadWay& way : ways) missing.merge(pairs_of(way));
  std::vector<OffloadWay> chosen;
  while (!missing.empty()) {
    const OffloadWay* best = nullptr;
    std::size_t best_count = 0;
    for (const OffloadWay& way : ways) {
      std::size_t count = 0;
      for (const SettingPair& pair : pairs_of(way)) count += missing.count(pair);
      if (count <= best_count) continue;
      best = &way;
      best_count = count;
    }
    for (const SettingPair& pair : pairs_of(*best)) missing.erase(pair);
    chosen.push_back(*best);
  }
  return chosen;
}

// What suites go through: each pair of settings, or, when all is tested, every way there is.
inline std::vector<OffloadWay> ways_to_offload() {
  return is_testing_all() ? every_way_to_offload() : ways_with_each_pair(every_way_to_offload());
}

// What may change between two steps, or with a resume: a value that a run begins with, and another.
struct OffloadChange {
  OffloadWay from;
  OffloadWay to;
};
inline std::vector<OffloadChange> every_change_of_offload() {
  return {{{"method=csd"}, {"method=host"}},
          {{"method=host"}, {"method=csd"}},
          {{"pipeline=nbuffer"}, {"pipeline=serial"}},
          {{"pipeline=serial"}, {"pipeline=handover"}},
          {{"pipeline=handover"}, {"pipeline=nbuffer"}},
          {{"wire=fp32"}, {"wire=native"}},
          {{"wire=native"}, {"wire=fp32"}},
          {{"method=host", "gradient_tier=storage"}, {"gradient_tier=memory"}},
          {{"method=host", "gradient_tier=memory"}, {"gradient_tier=storage", "method=csd"}},
          {{"density=1"}, {"density=0.05"}},
          {{"density=0.05"}, {"density=1"}},
          {{"density=0.05", "error_feedback=false"}, {"error_feedback=true"}},
          {{"density=0.05", "error_feedback=true"}, {"method=host"}},
          {{"buffers=3"}, {"buffers=1"}},
          {{"prefetch=true"}, {"prefetch=false"}},
          {{"io_bytes=1MiB"}, {"io_bytes=4096"}},
          {{"queue_depth=8"}, {"queue_depth=1"}},
          {{"device_map=even"}, {"device_map=1,0"}},
          {{"device_map=1,0", "method=host"}, {"device_map=0,1", "method=csd"}},
          {{"device_map=3,1", "density=0.05"}, {"device_map=1,3", "pipeline=serial"}}};
}

}  // namespace sluice
