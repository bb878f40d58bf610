#pragma once
// Names for indices that must not be mixed up. Each is an index into a list that somebody owns; -1
// means none.
//
// Thread contract: plain values.

#include <cstdint>

namespace sluice {

enum class DeviceId : std::int32_t {};  // one CSD (or plain drive) of the run, 0-based
enum class SubgroupId : std::int32_t {
};  // one run of consecutive parameters, 0-based in flat order
enum class LayerId : std::int32_t {};  // embedding, then blocks, then head; forward order

inline constexpr DeviceId kNoDevice{-1};
inline constexpr SubgroupId kNoSubgroup{-1};
inline constexpr LayerId kNoLayer{-1};

constexpr std::int32_t index_of(DeviceId id) { return static_cast<std::int32_t>(id); }
constexpr std::int32_t index_of(SubgroupId id) { return static_cast<std::int32_t>(id); }
constexpr std::int32_t index_of(LayerId id) { return static_cast<std::int32_t>(id); }

}  // namespace sluice
