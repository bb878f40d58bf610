#pragma once
// About the largest elements of a gradient, in one pass: NOT exact. A threshold comes from a sample
// of 65,536 elements; every element whose magnitude is at least that is kept.
//
// The sample is deterministic: the elements are divided into 65,536 stretches of (nearly) equal
// length, and stretch j gives the element at split_mix(seed, j) scaled to its length. Up to 65,536
// elements, the sample is all of them. The threshold is the sample's kept_count(density, sample
// size)-th largest magnitude.
//
// How many are kept therefore varies: with d the density, about d x n with a relative standard
// deviation of 1 / sqrt(65536 d), 4 % at d = 0.01; far more where many elements equal the
// threshold. What does not fit into the room is not kept: the elements with the highest indices
// are dropped (and stay in the residual, if there is one).
//
// Phases, slices and thread contract are as in core/compress/top_k.h, and so is the promise that
// the result has the same bits for every number of slices and threads.

#include <cstdint>
#include <span>
#include <vector>

#include "core/compress/detail/select_kernels.h"
#include "core/compress/error_feedback.h"
#include "core/compress/selection.h"
#include "core/compress/top_k.h"

namespace sluice::compress {

inline constexpr std::int64_t kSampleElements = 1 << 16;

struct SampleOptions {
  double density = 0.01;
  std::uint64_t seed = 0;
};

// The selection as it was really made.
struct SampledSelection {
  std::int64_t kept_count = 0;  // as much as the room's capacity: more may have been dropped
  std::uint32_t threshold = 0;  // as a magnitude
};

class SampledTopKSelector {
 public:
  // The room of a selection has a capacity of at most kept_capacity.
  explicit SampledTopKSelector(const SelectorSize& size);

  void begin(std::span<const float> values, const SampleOptions& options, const KeptRoom& room);
  void begin(const FeedbackInput& input, const SampleOptions& options, const KeptRoom& room);

  int slice_count() const { return static_cast<int>(slices_.size()); }
  bool is_done() const { return phase_ == Phase::done; }
  void run_slice(int slice);
  void end_phase();

  const SampledSelection& selection() const { return selection_; }  // once it is done

 private:
  enum class Phase { sample, collect, gather, done };

  // The elements that a slice finds, before it is known how much the slices below it have found.
  struct Slice {
    std::int64_t first = 0;
    std::int64_t count = 0;
    std::vector<std::uint32_t> indices;
    std::vector<float> values;
    std::int64_t found_count = 0;
    std::int64_t kept_first = 0;
    std::int64_t kept_count = 0;
  };

  void start(std::int64_t element_count, const SampleOptions& options, const KeptRoom& room);
  float value_at(std::int64_t index) const;
  void prefetch(std::int64_t index) const;
  void sample_slice(int slice);
  void collect_slice(Slice& slice);
  void gather_slice(const Slice& slice);
  void plan_gathering();

  std::vector<Slice> slices_;
  std::vector<float> sample_;
  detail::Histogram histogram_;

  // The running selection.
  Phase phase_ = Phase::done;
  const float* values_ = nullptr;  // with feedback: the residual
  FeedbackInput feedback_;         // with an empty residual: none
  std::int64_t element_count_ = 0;
  SampleOptions options_;
  KeptRoom room_;
  SampledSelection selection_;
};

// All phases on `thread_count` threads (at most one a slice), the calling one among them.
SampledSelection sampled_top_k(std::span<const float> values, const SampleOptions& options,
                               int thread_count, SampledTopKSelector& selector,
                               const KeptRoom& room);
SampledSelection sampled_top_k(const FeedbackInput& input, const SampleOptions& options,
                               int thread_count, SampledTopKSelector& selector,
                               const KeptRoom& room);

}  // namespace sluice::compress
