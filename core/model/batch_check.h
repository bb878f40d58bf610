#pragma once
// Whether a batch is one that a model was made for.
//
// Thread contract: a free function, any thread.

#include "base/status.h"
#include "core/model/model_factory.h"

namespace sluice::model {

// Errors (ErrorCode::config): more rows or columns than `options` have; targets or inputs of a
// decoder that the model does not have; a token, segment or class that it does not know.
Status check_batch(const TokenBatch& batch, const ModelShape& shape, const ModelOptions& options);

}  // namespace sluice::model
