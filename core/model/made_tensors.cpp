#include "core/model/made_tensors.h"

namespace sluice::model {

MadeTensors::MadeTensors(std::int64_t input_width)
    : tensors_{{"input", input_width, MadeUse::input}} {}

MadeTensors MadeTensors::of_source_input(std::int64_t input_width) {
  MadeTensors made(input_width);
  made.tensors_.front().of_sources = true;
  return made;
}

void MadeTensors::kept(const char* what, std::int64_t width, bool of_sources) {
  tensors_.push_back({.what = what, .width = width, .of_sources = of_sources});
}

void MadeTensors::in_memory(const char* what, std::int64_t width) {
  tensors_.push_back({what, width, MadeUse::in_memory});
}

void MadeTensors::passing(const char* what, std::int64_t width, bool of_sources) {
  tensors_.push_back(
      {.what = what, .width = width, .use = MadeUse::passing, .of_sources = of_sources});
}

void MadeTensors::statistic(const char* what, std::int64_t count, std::int64_t value_bytes) {
  tensors_.push_back({what, count, MadeUse::statistic, value_bytes});
}

void MadeTensors::layer_norm(std::int64_t width) {
  statistic("mean of a row", 1);
  statistic("reciprocal deviation of a row", 1);
  kept("normalised", width);
  kept("with weight and bias", width);
}

void MadeTensors::rms_norm(std::int64_t width) {
  statistic("reciprocal root mean square of a row", 1, kFp32Bytes);
  kept("normalised", width);
  kept("with weight", width);
}

void MadeTensors::fused_attention(std::int64_t heads, std::int64_t width) {
  kept("attention's result", width);
  tensors_.push_back({"sums of its rows", heads, MadeUse::statistic, kFp32Bytes});
}

bool is_needed(MadeUse use) {
  return use == MadeUse::input || use == MadeUse::kept || use == MadeUse::statistic;
}

std::int64_t made_widths(const std::vector<MadeTensor>& tensors, LayerTokens tokens) {
  std::int64_t widths = 0;
  for (const MadeTensor& tensor : tensors) {
    if (tensor.use != MadeUse::input && tensor.use != MadeUse::statistic)
      widths += tokens.rows_of(tensor) * tensor.width;
  }
  return widths;
}

std::int64_t needed_bytes(const std::vector<MadeTensor>& tensors, ParameterKind precision,
                          LayerTokens tokens) {
  std::int64_t bytes = 0;
  for (const MadeTensor& tensor : tensors) {
    if (is_needed(tensor.use)) bytes += tokens.rows_of(tensor) * tensor.token_bytes(precision);
  }
  return bytes;
}

std::int64_t memory_bytes(const std::vector<MadeTensor>& tensors, ParameterKind precision,
                          LayerTokens tokens) {
  std::int64_t bytes = 0;
  for (const MadeTensor& tensor : tensors) {
    const std::int64_t rows = tokens.rows_of(tensor);
    if (tensor.use == MadeUse::statistic) bytes += rows * tensor.width * kFp32Bytes;
    if (tensor.use == MadeUse::kept || tensor.use == MadeUse::in_memory)
      bytes += rows * tensor.token_bytes(precision);
  }
  return bytes;
}

}  // namespace sluice::model
