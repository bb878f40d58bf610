#include "storage/state/detail/commit_codec.h"

#include <string_view>

#include "base/check.h"
#include "storage/state/detail/bytes.h"

namespace sluice::state::detail {
namespace {

constexpr std::string_view kRecordMagic = "SLUICECR";
constexpr std::size_t kSequenceAt = 8;
constexpr std::size_t kLengthAt = 16;
constexpr std::size_t kCommitStateIdAt = 24;
constexpr std::size_t kPayloadAt = 40;
constexpr std::size_t kStepAt = 40;
constexpr std::size_t kOptimizerStepAt = 48;
constexpr std::size_t kLossScaleAt = 56;
constexpr std::size_t kGoodStepsAt = 64;
constexpr std::size_t kSeedAt = 72;
constexpr std::size_t kDataPositionAt = 80;
constexpr std::size_t kSubgroupsAt = 88;

std::size_t subgroup_bytes(const Geometry& geometry) {
  return 8 + 8 * static_cast<std::size_t>(geometry.variable_count);
}

std::size_t checksum_at(const Geometry& geometry) {
  return kSubgroupsAt +
         static_cast<std::size_t>(geometry.subgroup_count()) * subgroup_bytes(geometry);
}

void store_position(std::span<std::byte> area, const TrainingPosition& position) {
  store(area, kStepAt, position.step);
  store(area, kOptimizerStepAt, position.optimizer_step);
  store(area, kLossScaleAt, position.loss_scale);
  store(area, kGoodStepsAt, position.loss_scale_good_steps);
  store(area, kSeedAt, position.seed);
  store(area, kDataPositionAt, position.data_position);
}

TrainingPosition load_position(std::span<const std::byte> area) {
  return {.step = load<std::int64_t>(area, kStepAt),
          .optimizer_step = load<std::int64_t>(area, kOptimizerStepAt),
          .loss_scale = load<double>(area, kLossScaleAt),
          .loss_scale_good_steps = load<std::int64_t>(area, kGoodStepsAt),
          .seed = load<std::uint64_t>(area, kSeedAt),
          .data_position = load<std::uint64_t>(area, kDataPositionAt)};
}

SubgroupVersion load_subgroup(std::span<const std::byte> area, std::size_t at,
                              const Geometry& geometry) {
  SubgroupVersion version;
  version.slot.device = DeviceId{load<std::int32_t>(area, at)};
  version.slot.index = load<std::int32_t>(area, at + 4);
  for (std::size_t v = 0; v < static_cast<std::size_t>(geometry.variable_count); ++v)
    version.checksums[v] = load<std::uint64_t>(area, at + 8 + 8 * v);
  return version;
}

Status check_area(const FileHeader& log_header, int area_index, std::span<const std::byte> area) {
  const auto damaged = [](std::size_t at, std::string what) {
    return make_error(ErrorCode::corrupt, "{} at byte {} of it", what, at);
  };
  if (load_text(area.first(kRecordMagic.size())) != kRecordMagic) return damaged(0, "no magic");
  const auto length = load<std::uint64_t>(area, kLengthAt);
  const std::size_t end = checksum_at(log_header.geometry);
  if (length != end - kPayloadAt)
    return damaged(kLengthAt,
                   fmt::format("a payload of {} bytes, not {},", length, end - kPayloadAt));
  const auto written = load<std::uint64_t>(area, end);
  const std::uint64_t computed = checksum(area.first(end));
  if (written != computed)
    return damaged(end, fmt::format("XXH3-64 {:016x}, computed {:016x},", written, computed));
  if (std::memcmp(area.data() + kCommitStateIdAt, log_header.state_id.data(),
                  log_header.state_id.size()) != 0)
    return damaged(kCommitStateIdAt, "the id of another state");
  const auto sequence = load<std::uint64_t>(area, kSequenceAt);
  if (sequence == 0 || sequence % 2 != static_cast<std::uint64_t>(area_index))
    return damaged(kSequenceAt,
                   fmt::format("sequence number {}, which belongs elsewhere,", sequence));
  return ok_status();
}

}  // namespace

std::int64_t record_bytes(const Geometry& geometry) {
  return static_cast<std::int64_t>(checksum_at(geometry) + sizeof(std::uint64_t));
}

std::int64_t area_bytes(const Geometry& geometry) {
  return round_up(record_bytes(geometry), kPageBytes);
}

void encode_record(const FileHeader& log_header, std::uint64_t sequence, const CommitRecord& record,
                   std::span<std::byte> area) {
  const Geometry& geometry = log_header.geometry;
  CHECK_EQ(area.size(), static_cast<std::size_t>(area_bytes(geometry)));
  CHECK_EQ(record.subgroups.size(), static_cast<std::size_t>(geometry.subgroup_count()));
  const std::size_t end = checksum_at(geometry);
  store_text(area, kRecordMagic);
  store(area, kSequenceAt, sequence);
  store(area, kLengthAt, static_cast<std::uint64_t>(end - kPayloadAt));
  std::memcpy(area.data() + kCommitStateIdAt, log_header.state_id.data(),
              log_header.state_id.size());
  store_position(area, record.position);
  std::size_t at = kSubgroupsAt;
  for (const SubgroupVersion& version : record.subgroups) {
    store(area, at, index_of(version.slot.device));
    store(area, at + 4, version.slot.index);
    for (std::size_t v = 0; v < static_cast<std::size_t>(geometry.variable_count); ++v)
      store(area, at + 8 + 8 * v, version.checksums[v]);
    at += subgroup_bytes(geometry);
  }
  store(area, end, checksum(area.first(end)));
  const std::span<std::byte> padding = area.subspan(end + sizeof(std::uint64_t));
  std::fill(padding.begin(), padding.end(), std::byte{0});
}

bool is_empty_area(std::span<const std::byte> area) {
  return all_zero(area.first(static_cast<std::size_t>(kPageBytes)));
}

Result<SequencedRecord> decode_record(const FileHeader& log_header, int area_index,
                                      std::span<const std::byte> area) {
  const Geometry& geometry = log_header.geometry;
  CHECK_EQ(area.size(), static_cast<std::size_t>(area_bytes(geometry)));
  RETURN_IF_ERROR(check_area(log_header, area_index, area));
  SequencedRecord found;
  found.sequence = load<std::uint64_t>(area, kSequenceAt);
  found.record.position = load_position(area);
  const auto subgroup_count = static_cast<std::size_t>(geometry.subgroup_count());
  found.record.subgroups.reserve(subgroup_count);
  for (std::size_t s = 0; s < subgroup_count; ++s)
    found.record.subgroups.push_back(
        load_subgroup(area, kSubgroupsAt + s * subgroup_bytes(geometry), geometry));
  return found;
}

}  // namespace sluice::state::detail
