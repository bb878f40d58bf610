#pragma once
// The rotation of queries and keys, as versions 4 and 5 of transformers write it.
//
// Thread contract: that of what is read.

#include "core/weights/detail/config_reading.h"

namespace sluice::weights::detail {

Status read_rotary(Reading& at);

}  // namespace sluice::weights::detail
