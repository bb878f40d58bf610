#include "storage/state/detail/file_header.h"

#include <sys/random.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "base/check.h"
#include "storage/state/detail/bytes.h"

namespace sluice::state::detail {
namespace {

constexpr std::string_view kLogMagic = "SLUICELG";
constexpr std::string_view kDeviceMagic = "SLUICEDV";

constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kDeviceAt = 12;
constexpr std::size_t kStateIdAt = 16;
constexpr std::size_t kParameterCountAt = 32;
constexpr std::size_t kSubgroupElementsAt = 40;
constexpr std::size_t kVariableCountAt = 48;
constexpr std::size_t kDeviceCountAt = 52;
constexpr std::size_t kFingerprintAt = 56;
constexpr std::size_t kOptimizerAt = 64;
constexpr std::size_t kVariableNamesAt = 128;
constexpr std::size_t kModelNameAt = 384;
constexpr std::size_t kShareAt = 640;  // zeros: all of the model
constexpr std::size_t kCodesAt = 656;  // version 2
constexpr std::size_t kReservedAt = 672;
constexpr std::size_t kChecksumAt = 4088;
constexpr std::size_t kNameBytes = 64;  // with at least one zero byte behind the name
constexpr std::size_t kModelNameBytes = 256;
static_assert(kVariableNamesAt + kMaxVariables * kNameBytes == kModelNameAt);
static_assert(kModelNameAt + kModelNameBytes == kShareAt);
static_assert(kCodesAt + kMaxVariables * sizeof(std::uint32_t) == kReservedAt);
static_assert(kChecksumAt + sizeof(std::uint64_t) == kHeaderBytes);

constexpr auto kNoCode = static_cast<ArrayCode>(kArrayCodeCount);

Status check_name(const char* what, const std::string& name, std::size_t field_bytes) {
  if (name.empty() || name.size() >= field_bytes || name.find('\0') != std::string::npos)
    return make_error(ErrorCode::config,
                      "the name of the {} is '{}' ({} bytes); a state holds 1 to {} bytes", what,
                      name, name.size(), field_bytes - 1);
  return ok_status();
}

Status check_geometry_numbers(const Geometry& geometry) {
  constexpr std::int64_t kLimit = std::numeric_limits<std::int32_t>::max();
  const auto wrong = [](const char* name, std::int64_t value, std::int64_t least,
                        std::int64_t most) -> Status {
    if (value >= least && value <= most) return ok_status();
    return make_error(ErrorCode::config, "{} is {}; optimizer state can be kept for {} to {}", name,
                      value, least, most);
  };
  // 2^56 elements and 2^40 a subgroup keep every byte offset below far inside 63 bits.
  RETURN_IF_ERROR(wrong("parameter_count", geometry.parameter_count, 1, std::int64_t{1} << 56));
  RETURN_IF_ERROR(wrong("subgroup_elements", geometry.subgroup_elements, 1, std::int64_t{1} << 40));
  RETURN_IF_ERROR(wrong("variable_count", geometry.variable_count, 1, kMaxVariables));
  RETURN_IF_ERROR(wrong("device_count", geometry.device_count, 1, 1 << 16));
  const std::int64_t subgroups = divide_up(geometry.parameter_count, geometry.subgroup_elements);
  if (subgroups > kLimit / 4)
    return make_error(ErrorCode::config,
                      "{} parameters in subgroups of {} are {} subgroups; at most {} can be kept: "
                      "raise subgroup_elements",
                      geometry.parameter_count, geometry.subgroup_elements, subgroups, kLimit / 4);
  return ok_status();
}

Share load_share(std::span<const std::byte> page) {
  if (all_zero(page.subspan(kShareAt, kCodesAt - kShareAt))) return {};
  const auto at = [&](std::size_t field) {
    return load<std::int32_t>(page, kShareAt + field * sizeof(std::int32_t));
  };
  return {at(0), at(1), at(2), at(3)};
}

void store_share(const Share& share, std::span<std::byte> page) {
  if (share.is_whole()) return;
  std::size_t field = kShareAt;
  for (const std::int32_t value :
       {share.parameter_part, share.parameter_parts, share.state_part, share.state_parts}) {
    store(page, field, value);
    field += sizeof value;
  }
}

Status check_share(const Share& share) {
  const auto fits = [](std::int32_t part, std::int32_t parts) { return part >= 0 && part < parts; };
  if (fits(share.parameter_part, share.parameter_parts) &&
      fits(share.state_part, share.state_parts)) {
    return ok_status();
  }
  return make_error(ErrorCode::config, "the share is {}", share_text(share));
}

FileHeader load_fields(std::span<const std::byte> page) {
  FileHeader header;
  header.device = DeviceId{load<std::int32_t>(page, kDeviceAt)};
  std::memcpy(header.state_id.data(), page.data() + kStateIdAt, header.state_id.size());
  header.geometry.parameter_count = load<std::int64_t>(page, kParameterCountAt);
  header.geometry.subgroup_elements = load<std::int64_t>(page, kSubgroupElementsAt);
  header.geometry.variable_count = load<std::int32_t>(page, kVariableCountAt);
  header.geometry.device_count = load<std::int32_t>(page, kDeviceCountAt);
  header.identity.model_fingerprint = load<std::uint64_t>(page, kFingerprintAt);
  header.identity.optimizer = load_text(page.subspan(kOptimizerAt, kNameBytes));
  header.identity.model_name = load_text(page.subspan(kModelNameAt, kModelNameBytes));
  header.identity.share = load_share(page);
  header.identity.variable_names.clear();
  for (std::size_t v = 0; v < kMaxVariables; ++v) {
    std::string name = load_text(page.subspan(kVariableNamesAt + v * kNameBytes, kNameBytes));
    if (!name.empty()) header.identity.variable_names.push_back(std::move(name));
  }
  for (std::size_t v = 0; v < kMaxVariables; ++v) {
    const auto code = load<std::uint32_t>(page, kCodesAt + v * sizeof(std::uint32_t));
    // One that nobody knows makes no sense, either, where another one is expected.
    header.geometry.codes[v] = code < kArrayCodeCount ? static_cast<ArrayCode>(code) : kNoCode;
  }
  return header;
}

Status check_magic(std::span<const std::byte> page, bool is_log, const std::string& path) {
  const std::string found = load_text(page.first(kLogMagic.size()));
  const std::string_view wanted = is_log ? kLogMagic : kDeviceMagic;
  if (found == wanted) return ok_status();
  const bool is_other_kind = found == kLogMagic || found == kDeviceMagic;
  return make_error(
      ErrorCode::corrupt, "{}: at offset 0 is {}, where {} should begin: {}", path,
      is_other_kind ? "the header of another kind of state file" : "no header of a state file",
      is_log ? "a commit log" : "a device's optimizer state",
      is_other_kind ? "the files of the state were mixed up" : "it is a foreign or damaged file");
}

}  // namespace

Result<StateId> make_state_id() {
  StateId id;
  if (getrandom(id.data(), id.size(), 0) != static_cast<ssize_t>(id.size()))
    return make_error(ErrorCode::internal, "the kernel gave no random bytes for the state's id");
  return id;
}

std::string to_hex(const StateId& id) {
  std::string text;
  for (const std::byte byte : id) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

Status check_representable(const StateIdentity& identity, const Geometry& geometry) {
  RETURN_IF_ERROR(check_geometry_numbers(geometry));
  RETURN_IF_ERROR(check_name("model", identity.model_name, kModelNameBytes));
  RETURN_IF_ERROR(check_name("optimizer", identity.optimizer, kNameBytes));
  if (identity.variable_names.size() != static_cast<std::size_t>(geometry.variable_count))
    return make_error(ErrorCode::config, "the optimizer has {} variables and {} names for them",
                      geometry.variable_count, identity.variable_names.size());
  for (const std::string& name : identity.variable_names)
    RETURN_IF_ERROR(check_name("variable", name, kNameBytes));
  if (!makes_sense(geometry.stored()) ||
      std::any_of(geometry.codes.begin() + geometry.variable_count, geometry.codes.end(),
                  [](ArrayCode code) { return code != ArrayCode::fp32; })) {
    return make_error(ErrorCode::config, "the codes of its arrays are those of no format");
  }
  if (geometry.stored().is_split() && geometry.subgroup_elements < geometry.parameter_count &&
      geometry.subgroup_elements % kGroupElements != 0) {
    return make_error(ErrorCode::config,
                      "subgroup_elements is {}; state that is {} is in groups of {} elements, and "
                      "subgroups are whole groups",
                      geometry.subgroup_elements, format_text(format_of(geometry.stored())),
                      kGroupElements);
  }
  return check_share(identity.share);
}

void encode_header(const FileHeader& header, std::span<std::byte> page) {
  CHECK_EQ(page.size(), static_cast<std::size_t>(kHeaderBytes));
  std::fill(page.begin(), page.end(), std::byte{0});
  store_text(page, header.device == kNoDevice ? kLogMagic : kDeviceMagic);
  store(page, kVersionAt, header.geometry.stored().is_split() ? kFormatVersion : kFp32Version);
  store(page, kDeviceAt, index_of(header.device));
  std::memcpy(page.data() + kStateIdAt, header.state_id.data(), header.state_id.size());
  store(page, kParameterCountAt, header.geometry.parameter_count);
  store(page, kSubgroupElementsAt, header.geometry.subgroup_elements);
  store(page, kVariableCountAt, header.geometry.variable_count);
  store(page, kDeviceCountAt, header.geometry.device_count);
  store(page, kFingerprintAt, header.identity.model_fingerprint);
  store_text(page.subspan(kOptimizerAt, kNameBytes), header.identity.optimizer);
  store_text(page.subspan(kModelNameAt, kModelNameBytes), header.identity.model_name);
  store_share(header.identity.share, page);
  for (std::size_t v = 0; v < header.identity.variable_names.size(); ++v)
    store_text(page.subspan(kVariableNamesAt + v * kNameBytes, kNameBytes),
               header.identity.variable_names[v]);
  for (std::size_t v = 0; v < kMaxVariables; ++v)
    store(page, kCodesAt + v * sizeof(std::uint32_t),
          static_cast<std::uint32_t>(header.geometry.codes[v]));
  store(page, kChecksumAt, checksum(page.first(kChecksumAt)));
}

bool begins_like_ours(std::span<const std::byte> page) {
  const std::span<const std::byte> magic = page.first(kLogMagic.size());
  return all_zero(magic) || load_text(magic) == kLogMagic || load_text(magic) == kDeviceMagic;
}

Result<FileHeader> decode_header(std::span<const std::byte> page, bool is_log,
                                 const std::string& path) {
  CHECK_EQ(page.size(), static_cast<std::size_t>(kHeaderBytes));
  RETURN_IF_ERROR(check_magic(page, is_log, path));
  const auto written = load<std::uint64_t>(page, kChecksumAt);
  const std::uint64_t computed = checksum(page.first(kChecksumAt));
  if (written != computed)
    return make_error(ErrorCode::corrupt,
                      "{}: the header page at offset 0 is damaged: its XXH3-64 is {:016x}, and "
                      "{:016x} was written at offset {}",
                      path, computed, written, kChecksumAt);
  const auto version = load<std::uint32_t>(page, kVersionAt);
  if (version != kFormatVersion && version != kFp32Version)
    return make_error(ErrorCode::unsupported,
                      "{}: was written by version {} of the format (offset {}), this program reads "
                      "versions {} and {}: use the Sluice that wrote it",
                      path, version, kVersionAt, kFp32Version, kFormatVersion);
  FileHeader header = load_fields(page);
  const Status fields = check_representable(header.identity, header.geometry);
  const std::int32_t device = index_of(header.device);
  const bool device_fits =
      is_log ? device == -1 : device >= 0 && device < header.geometry.device_count;
  const bool codes_fit = (version == kFormatVersion) == header.geometry.stored().is_split();
  if (!codes_fit || !fields.ok() || !device_fits ||
      !all_zero(page.subspan(kReservedAt, kChecksumAt - kReservedAt)))
    return make_error(
        ErrorCode::corrupt,
        "{}: the header page at offset 0 has its checksum right and makes no sense "
        "({}): it was not written by Sluice",
        path,
        !fields.ok()   ? fields.error().message()
        : !device_fits ? fmt::format("device {} at offset {}", device, kDeviceAt)
        : !codes_fit ? fmt::format("codes of arrays at offset {} in version {}", kCodesAt, version)
                     : fmt::format("bytes at offset {} are not zero", kReservedAt));
  return header;
}

}  // namespace sluice::state::detail
