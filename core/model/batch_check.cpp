#include "core/model/batch_check.h"

#include <algorithm>

#include "base/check.h"

namespace sluice::model {
namespace {

// A class for each window, and a segment that the model has a row for.
Status check_classified(const TokenBatch& batch, const ModelShape& shape) {
  if (batch.target_sequence != 1 || !batch.decoder_inputs.empty()) {
    return make_error(ErrorCode::config,
                      "a batch with {} targets a window came to model '{}', which answers a class "
                      "for each",
                      batch.target_columns(), shape.name);
  }
  CHECK(batch.segments.empty() || batch.segments.size() == batch.inputs.size());
  const auto is_known = [&](std::int32_t segment) {
    return segment >= 0 && segment < shape.segment_count();
  };
  const auto foreign = std::ranges::find_if_not(batch.segments, is_known);
  if (foreign == batch.segments.end()) return ok_status();
  return make_error(ErrorCode::config,
                    "a token of segment {} came to model '{}', which has {} kinds of tokens: its "
                    "records are no pairs of texts",
                    *foreign, shape.name, shape.segment_count());
}

Status check_targets(const TokenBatch& batch, const ModelShape& shape,
                     const ModelOptions& options) {
  if (shape.classifies()) return check_classified(batch, shape);
  CHECK(batch.segments.empty());
  const bool has_decoder = shape.has_decoder();
  const std::int64_t most = has_decoder ? shape.target_sequence(options.sequence) : 0;
  const std::int64_t wanted = has_decoder ? batch.batch * batch.target_sequence : 0;
  if (batch.target_sequence <= most && (batch.target_sequence > 0) == has_decoder &&
      std::ssize(batch.decoder_inputs) == wanted) {
    return ok_status();
  }
  return make_error(
      ErrorCode::config, "a batch of {} x {} targets and {} inputs of a decoder came to '{}', {}",
      batch.batch, batch.target_sequence, batch.decoder_inputs.size(), shape.name,
      has_decoder ? fmt::format("whose decoder takes up to {} x {}", options.batch, most)
                  : "which has no decoder");
}

}  // namespace

Status check_batch(const TokenBatch& batch, const ModelShape& shape, const ModelOptions& options) {
  if (batch.batch < 1 || batch.batch > options.batch || batch.sequence < 1 ||
      batch.sequence > options.sequence) {
    return make_error(ErrorCode::config,
                      "a batch of {} x {} tokens came to a model that was made for {} x {}",
                      batch.batch, batch.sequence, options.batch, options.sequence);
  }
  RETURN_IF_ERROR(check_targets(batch, shape, options));
  CHECK_EQ(std::ssize(batch.inputs), batch.batch * batch.sequence);
  CHECK_EQ(std::ssize(batch.targets), batch.batch * batch.target_columns());
  CHECK(batch.document_begins.empty() || batch.document_begins.size() == batch.inputs.size());
  const auto is_known = [&](std::int32_t token) { return token >= 0 && token < shape.vocabulary; };
  auto foreign = std::ranges::find_if_not(batch.inputs, is_known);
  if (foreign == batch.inputs.end()) {
    foreign = std::ranges::find_if_not(batch.targets, [&](std::int32_t answer) {
      return answer == kIgnoredTarget || (answer >= 0 && answer < answer_count(shape));
    });
    if (foreign != batch.targets.end() && shape.classifies()) {
      return make_error(ErrorCode::config, "class {} came to model '{}', which has {} classes",
                        *foreign, shape.name, shape.classes);
    }
    if (foreign == batch.targets.end()) {
      foreign = std::ranges::find_if_not(batch.decoder_inputs, is_known);
      if (foreign == batch.decoder_inputs.end()) return ok_status();
    }
  }
  return make_error(ErrorCode::config,
                    "token {} came to model '{}', whose vocabulary is {}; the data and the model "
                    "do not belong together",
                    *foreign, shape.name, shape.vocabulary);
}

}  // namespace sluice::model
