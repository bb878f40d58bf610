#pragma once
// The form of the answers in this folder. An infinite number is written as null, since JSON has no
// word for it.
//
// Thread contract: plain data.

#include <nlohmann/json.hpp>

namespace sluice::answers {

using Json = nlohmann::ordered_json;

}  // namespace sluice::answers
