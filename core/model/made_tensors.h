#pragma once
// The tensors that a layer makes in its forward, and which of them its backward needs. Each kind of
// layer lists them once (LayerKind::made, core/model/architecture.h). The bytes that leave
// (kept_bytes.h), the bytes in memory (compute_memory.h, core/shard) and the values that are
// handled one by one (flop.h) are sums over that list.
//
// All families are counted on one basis, that of core/model/gpt2/gpt2.cpp:
//
// - a value is as the parameters are (precision); a tensor that several operations need is there
// once; parameters are not there;
// - a norm keeps the normalised row, which its weight's gradient needs, and a number or two a row;
//   its product with the weight is the input of the matrices behind it;
// - attention is fused: it keeps its inputs, its result and one fp32 sum a row and head, no scores,
//   and takes fewer heads of keys and values than of queries as they are;
// - a product keeps its input, a sum of two nothing.
//
// Thread contract: plain data; a builder has one owner.

#include <cstdint>
#include <utility>
#include <vector>

#include "base/parameter_span.h"

namespace sluice::model {

inline constexpr std::int64_t kFp32Bytes = 4;

enum class MadeUse : std::uint8_t {
  input,      // the layer before made it; backward needs it
  kept,       // backward needs it
  statistic,  // backward needs it: numbers a row, no width of the model
  in_memory,  // there as long, but not of what leaves: a copy, and the next layer's input
  passing,    // backward does not need it
};

struct MadeTensor {
  const char* what = "";
  std::int64_t width = 0;  // values a token
  MadeUse use = MadeUse::kept;
  std::int64_t value_bytes = 0;  // 0: a value is as the parameters are
  bool of_sources = false;       // its rows are the source's, in a layer whose own are targets

  std::int64_t token_bytes(ParameterKind precision) const {
    return width * (value_bytes > 0 ? value_bytes : bytes_of(precision));
  }
};

// How many rows the two kinds of tensors have.
struct LayerTokens {
  std::int64_t own = 1;
  std::int64_t source = 1;

  std::int64_t rows_of(const MadeTensor& tensor) const { return tensor.of_sources ? source : own; }
};

// Lists them, in the order in which forward saves them.
class MadeTensors {
 public:
  MadeTensors() = default;
  explicit MadeTensors(std::int64_t input_width);  // of a layer that has one before it
  static MadeTensors of_source_input(std::int64_t input_width);  // whose own rows are targets

  void kept(const char* what, std::int64_t width, bool of_sources = false);
  void kept_of_sources(const char* what, std::int64_t width) { kept(what, width, true); }
  void in_memory(const char* what, std::int64_t width);
  void passing(const char* what, std::int64_t width, bool of_sources = false);
  void statistic(const char* what, std::int64_t count, std::int64_t value_bytes = 0);

  void layer_norm(std::int64_t width);
  void rms_norm(std::int64_t width);
  // `width` of queries.
  void fused_attention(std::int64_t heads, std::int64_t width);

  std::vector<MadeTensor> take() { return std::move(tensors_); }

 private:
  std::vector<MadeTensor> tensors_;
};

// Whether it has to be there when backward begins.
bool is_needed(MadeUse use);
// Values that are of the model's widths: neither the input nor numbers a row. Here and below
// without `tokens` of one.
std::int64_t made_widths(const std::vector<MadeTensor>& tensors, LayerTokens tokens = {});
// Bytes that backward needs: the input, what is kept, and numbers a row.
std::int64_t needed_bytes(const std::vector<MadeTensor>& tensors, ParameterKind precision,
                          LayerTokens tokens = {});
// Bytes in memory between forward and backward where nothing leaves, without the input,
// which is the output of the layer before. Numbers a row are counted in fp32, as some kernels
// keep them.
std::int64_t memory_bytes(const std::vector<MadeTensor>& tensors, ParameterKind precision,
                          LayerTokens tokens = {});

}  // namespace sluice::model
