// How fast are the kernels under simulation, in sequence on one core? Against the host's SIMD
// kernel on the same subgroup. What hardware would do is hls/link/estimate.py's business, not this
// one's.
//
//   bench_kernels [KIBI_ELEMENTS=1024] [ROUNDS=11]

#include <fmt/format.h>

#include "bench/contenders.h"
#include "tests/hls/kernels/split_subgroup.h"

namespace sluice::bench {
namespace {

using hls_kernels::SplitSubgroup;
using hls_kernels::Subgroup;
using hls_kernels::SubgroupSpec;

void update_by_host(Subgroup& subgroup) {
  optimizer::UpdateArrays arrays;
  arrays.element_count = subgroup.spec.element_count;
  arrays.gradient = subgroup.dense.data();
  for (std::size_t v = 0; v < subgroup.state.size(); ++v)
    arrays.state[v] = hls_kernels::as<float>(subgroup.state[v]);
  arrays.parameters = hls_kernels::as<std::uint16_t>(subgroup.parameters);
  optimizer::update(subgroup.scalars, arrays);
}

Subgroup subgroup_of(optimizer::RuleKind rule, std::int64_t count, bool is_sparse) {
  SubgroupSpec spec;
  spec.rule = rule;
  spec.element_count = count;
  spec.is_sparse = is_sparse;
  spec.density = 0.01;
  return Subgroup(spec);
}

int run(int argc, char** argv) {
  const std::int64_t count = std::int64_t{argument(argc, argv, 1, 1024)} << 10;
  const int rounds = argument(argc, argv, 2, 11);
  using optimizer::RuleKind;
  Subgroup adamw = subgroup_of(RuleKind::adamw, count, false);
  Subgroup sparse = subgroup_of(RuleKind::adamw, count, true);
  Subgroup sgd = subgroup_of(RuleKind::sgd, count, false);
  Subgroup adagrad = subgroup_of(RuleKind::adagrad, count, false);
  SplitSubgroup compact({.plain = adamw.spec});
  SplitSubgroup exact({.plain = adamw.spec, .format = {StateFormatKind::exact, 16}});
  Subgroup host = adamw;
  std::vector<Contender> contenders;
  contenders.push_back({"AdamW, dense fp32", [&](std::int64_t) { run_kernel(adamw); }});
  contenders.push_back({"AdamW, sparse, density 0.01", [&](std::int64_t) { run_kernel(sparse); }});
  contenders.push_back(
      {"AdamW, dense fp32, compact state", [&](std::int64_t) { run_kernel(compact); }});
  contenders.push_back(
      {"AdamW, dense fp32, exact state", [&](std::int64_t) { run_kernel(exact); }});
  contenders.push_back({"SGD, dense fp32", [&](std::int64_t) { run_kernel(sgd); }});
  contenders.push_back({"AdaGrad, dense fp32", [&](std::int64_t) { run_kernel(adagrad); }});
  contenders.push_back(
      {"AdamW, the host's SIMD kernel", [&](std::int64_t) { update_by_host(host); }});
  measure(contenders, rounds);
  fmt::print("{}; {} elements, medians of {} rounds, SIMULATION of kernels on one core\n",
             cpu_model(), count, rounds);
  for (const Contender& contender : contenders)
    fmt::print("{:<34} {:8.1f} M elements/s\n", contender.name,
               static_cast<double>(count) / median(contender.seconds) / 1e6);
  return 0;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::run(argc, argv); }
