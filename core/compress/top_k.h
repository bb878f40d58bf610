#pragma once
// The k largest elements of a gradient, exactly (the order is in core/compress/selection.h).
//
// A radix select: one pass over the gradient counts the top 11 bits of every magnitude. The bin in
// which the k-th lies is the boundary; what is in it or above becomes a list of candidates, in
// which the remaining 20 bits are found in two short steps, and one pass over the candidates writes
// the result. If the candidates are too many for the list (more than twice kept_capacity: evenly
// distributed or equal values), the same steps go over the gradient itself.
//
// The work comes in phases, each divided into slices:
//
//   selector.begin(values, k, room);
//   while (!selector.is_done()) {
//     selector.run_slice(s) for every s < slice_count(), in any order and on any threads;
//     selector.end_phase();      // one thread, after all of them
//   }
//
// The result has the same bits for every number of slices and threads.
//
// Thread contract: run_slice() of different slices may run at the same time; everything else on one
// thread at a time. All memory is taken by the constructor; nothing after it allocates, except that
// the function top_k() starts threads if it is asked for more than one.

#include <cstdint>
#include <span>
#include <vector>

#include "core/compress/detail/select_kernels.h"
#include "core/compress/error_feedback.h"
#include "core/compress/selection.h"

namespace sluice::compress {

struct SelectorSize {
  std::int64_t kept_capacity = 0;  // the largest k
  int slice_count = 1;
};

class TopKSelector {
 public:
  explicit TopKSelector(const SelectorSize& size);

  // Selects from `values`, or from gradient x scale + residual, which leaves in the residual what
  // was not kept. k is at most the number of elements, the capacity of `room` and kept_capacity.
  // The arrays live until the selection is done.
  void begin(std::span<const float> values, std::int64_t k, const KeptRoom& room);
  void begin(const FeedbackInput& input, std::int64_t k, const KeptRoom& room);

  int slice_count() const { return static_cast<int>(slices_.size()); }
  bool is_done() const { return phase_ == Phase::done; }
  void run_slice(int slice);
  void end_phase();

 private:
  enum class Phase { count, collect, refine, keep, done };

  struct Slice {
    detail::Histogram histogram;
    std::int64_t first = 0;  // of the input
    std::int64_t count = 0;
    std::int64_t candidate_first = 0;
    std::int64_t candidate_count = 0;
    std::int64_t above = 0;        // elements above the boundary: kept
    std::int64_t in_boundary = 0;  // elements in it
    std::int64_t ties = 0;         // how many of those are kept
    std::int64_t kept_first = 0;   // of the result
  };

  void start(std::int64_t element_count, std::int64_t k, const KeptRoom& room);
  void count_slice(Slice& slice);
  void keep_slice(const Slice& slice);
  detail::ElementRun input_of(const Slice& slice) const;
  detail::ElementRun searched_of(const Slice& slice) const;
  void narrow_boundary();
  void after_narrowing();
  bool make_candidate_places();
  void plan_keeping();

  std::vector<Slice> slices_;
  std::vector<std::uint32_t> candidate_indices_;
  std::vector<float> candidate_values_;

  // The running selection.
  Phase phase_ = Phase::done;
  const float* values_ = nullptr;  // with feedback: the residual
  FeedbackInput feedback_;         // with an empty residual: none
  KeptRoom room_;
  bool has_candidates_ = false;
  std::size_t level_ = 0;
  std::uint32_t prefix_ = 0;     // the boundary: the bits of the levels so far
  std::int64_t wanted_ = 0;      // how many of the boundary's elements are to be kept
  bool wants_whole_ = false;     // all of them
  std::uint32_t threshold_ = 0;  // the lowest magnitude that is kept
};

// All phases on `thread_count` threads (at most one a slice), the calling one among them.
void top_k(std::span<const float> values, std::int64_t k, int thread_count, TopKSelector& selector,
           const KeptRoom& room);
void top_k(const FeedbackInput& input, std::int64_t k, int thread_count, TopKSelector& selector,
           const KeptRoom& room);

// The definition: sorts all indices. Slow.
void top_k_reference(std::span<const float> values, std::int64_t k, const KeptRoom& room);

}  // namespace sluice::compress
