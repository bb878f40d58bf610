#pragma once
// One reader for each model_type that is trained, named after it. Errors: ErrorCode::config where a
// field is missing or of another kind, ErrorCode::unsupported where the model would be another one.
//
// Thread contract: that of what is read.

#include "core/weights/detail/config_reading.h"

namespace sluice::weights::detail {

Status read_llama(Reading& at);
// `config`: whether a field is there at all says something, too.
Status read_mistral(Reading& at, const nlohmann::json& config);
Status read_qwen2(Reading& at);
Status read_qwen3(Reading& at);
Status read_gpt2(Reading& at);
Status read_bert(Reading& at);
Status read_t5(Reading& at);

}  // namespace sluice::weights::detail
