#pragma once
// The first page of every state file. Bytes: docs/state_format.md, "Header page".
// Thread contract: free functions without state.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/ids.h"
#include "base/status.h"
#include "base/units.h"
#include "storage/state/state_layout.h"
#include "storage/state/state_store.h"

namespace sluice::state::detail {

// Version 2 says how the arrays are stored; a state in fp32 is still written as version 1.
inline constexpr std::uint32_t kFormatVersion = 2;
inline constexpr std::uint32_t kFp32Version = 1;
inline constexpr std::int64_t kHeaderBytes = kPageBytes;

using StateId = std::array<std::byte, 16>;
Result<StateId> make_state_id();  // random
std::string to_hex(const StateId& id);

struct FileHeader {
  DeviceId device = kNoDevice;  // kNoDevice: the commit log
  StateId state_id{};
  StateIdentity identity;
  Geometry geometry;
};

// Whether names and geometry fit into the format; ErrorCode::config if not.
Status check_representable(const StateIdentity& identity, const Geometry& geometry);

// Fills `page` (kHeaderBytes). The header is representable.
void encode_header(const FileHeader& header, std::span<std::byte> page);

// `is_log` says which kind of file is expected at `path`, which is for the messages.
Result<FileHeader> decode_header(std::span<const std::byte> page, bool is_log,
                                 const std::string& path);

// Whether a page may be the beginning of a file whose creation was cut off: a magic, or nothing
// yet.
bool begins_like_ours(std::span<const std::byte> page);

}  // namespace sluice::state::detail
