#include "tests/storage/state/state_fixture.h"

#include <xxhash.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "storage/io/page_aligned_buffer.h"

namespace sluice::state::testing {
namespace {

const char* verb(detail::DiskCall::Kind kind) {
  using Kind = detail::DiskCall::Kind;
  switch (kind) {
    case Kind::make_directory:
      return "make_directory";
    case Kind::allocate:
      return "allocate";
    case Kind::write:
      return "write";
    case Kind::sync:
      return "sync";
    case Kind::sync_directory:
      return "sync_directory";
    case Kind::rename:
      return "rename";
    case Kind::remove:
      return "remove";
  }
  return "?";
}

// "dev0/state.slc" of a device's file, otherwise the last part.
std::string short_name(const std::string& path) {
  const std::filesystem::path whole(path);
  const std::string parent = whole.parent_path().filename().string();
  return parent.starts_with("dev") ? parent + "/" + whole.filename().string()
                                   : whole.filename().string();
}

}  // namespace

ScratchFolder::ScratchFolder() {
  std::string pattern = std::filesystem::temp_directory_path().string() + "/sluice-state-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp " + pattern);
  path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

StateStore::Options quick_options(const std::string& directory) {
  return {
      .directory = directory, .durability = Durability::never, .caching = io::Caching::buffered};
}

StateIdentity test_identity(std::int32_t variable_count) {
  StateIdentity identity{.model_name = "tiny",
                         .model_fingerprint = 0x1234,
                         .optimizer = "adamw",
                         .variable_names = {"master_weights", "exp_avg", "exp_avg_sq"}};
  identity.variable_names.resize(static_cast<std::size_t>(variable_count), "extra");
  return identity;
}

StateIdentity test_identity(const StoredArrays& stored) {
  StateIdentity identity = test_identity(stored.count);
  if (!stored.is_split()) return identity;
  identity.variable_names = {"parameters", "remainder", "exp_avg", "exp_avg_sq"};
  identity.variable_names.resize(static_cast<std::size_t>(stored.count));
  return identity;
}

std::uint32_t element_bits(std::int64_t step, std::int32_t variable, std::int64_t flat_index) {
  const std::uint64_t mixed = static_cast<std::uint64_t>(flat_index) * 0x9e3779b97f4a7c15u +
                              static_cast<std::uint64_t>(step) * 0xbf58476d1ce4e5b9u +
                              static_cast<std::uint64_t>(variable) * 0x94d049bb133111ebu;
  return static_cast<std::uint32_t>(mixed >> 29);
}

float split_value(const Geometry& geometry, std::int64_t step, std::int32_t variable,
                  std::int64_t flat_index) {
  std::uint32_t bits = element_bits(step, variable, flat_index);
  const std::uint32_t exponent = 100 + (bits >> 23) % 30;
  bits = (bits & 0x807fffffu) | exponent << 23;
  if (flat_index % 5 == 0) bits = (bits & 0xffff0000u) | 0x8000u;
  const bool is_last = variable == geometry.stored().decoded_count() - 1;
  if (is_last && variable > 0) bits &= 0x7fffffffu;
  return std::bit_cast<float>(bits);
}

ArraysInMemory::ArraysInMemory(const StoredArrays& stored, std::int64_t element_count) {
  span_.arrays = stored;
  span_.element_count = element_count;
  for (std::int32_t v = 0; v < stored.count; ++v) {
    const auto at = static_cast<std::size_t>(v);
    bytes_[at].resize(static_cast<std::size_t>(array_bytes(stored.codes[at], element_count)));
    span_.data[at] = bytes_[at].data();
  }
}

ArraysInMemory encoded_subgroup(const Geometry& geometry, SubgroupId subgroup, std::int64_t step) {
  const std::int64_t count = geometry.element_count(subgroup);
  const std::int64_t first = geometry.first_element(subgroup);
  std::vector<std::vector<float>> values;
  for (std::int32_t v = 0; v < geometry.stored().decoded_count(); ++v) {
    std::vector<float>& of_variable = values.emplace_back();
    for (std::int64_t i = first; i < first + count; ++i) {
      of_variable.push_back(split_value(geometry, step, v, i));
    }
  }
  ArraysInMemory arrays(geometry.stored(), count);
  const std::vector<std::span<const float>> spans(values.begin(), values.end());
  encode(spans, CodeRounding::nearest(), first, arrays.span());
  return arrays;
}

namespace {

// One array of the test's state, as it is stored.
std::vector<std::byte> stored_bytes(const Geometry& geometry, SubgroupId subgroup,
                                    std::int32_t variable, std::int64_t step) {
  if (geometry.stored().is_split()) {
    const ArraysInMemory arrays = encoded_subgroup(geometry, subgroup, step);
    return {arrays.bytes(variable).begin(), arrays.bytes(variable).end()};
  }
  const std::int64_t count = geometry.element_count(subgroup);
  std::vector<std::byte> bytes(static_cast<std::size_t>(count) * 4);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t bits = element_bits(step, variable, geometry.first_element(subgroup) + i);
    std::memcpy(bytes.data() + 4 * i, &bits, 4);
  }
  return bytes;
}

}  // namespace

SubgroupVersion write_version(StateStore& store, SubgroupId subgroup, SlotId slot,
                              std::int64_t step) {
  const Geometry& geometry = store.layout().geometry();
  const std::int64_t count = geometry.element_count(subgroup);
  SubgroupVersion version{.slot = slot};
  for (std::int32_t v = 0; v < geometry.variable_count; ++v) {
    const std::vector<std::byte> bytes = stored_bytes(geometry, subgroup, v, step);
    io::PageAlignedBuffer buffer = must(io::PageAlignedBuffer::allocate(std::ssize(bytes)));
    std::memset(buffer.bytes().data(), 0xff, buffer.bytes().size());
    std::memcpy(buffer.bytes().data(), bytes.data(), bytes.size());
    version.checksums[v] = checksum(bytes);
    const Extent extent = store.layout().extent(slot, v, count);
    must(store.file(slot.device).write_exactly(store.file_offset(extent), buffer.bytes()));
  }
  return version;
}

CommitRecord write_step(StateStore& store, std::int64_t step,
                        const std::function<DeviceId(SubgroupId)>& device_of) {
  Layout& layout = store.layout();
  CommitRecord record;
  record.position = {.step = step,
                     .optimizer_step = step,
                     .loss_scale = 65536.0 / static_cast<double>(step + 1),
                     .loss_scale_good_steps = step % 7,
                     .seed = 42,
                     .data_position = static_cast<std::uint64_t>(step) * 8};
  for (std::int32_t s = 0; s < layout.geometry().subgroup_count(); ++s) {
    const SubgroupId subgroup{s};
    if (step == 0) {
      record.subgroups.push_back(write_version(store, subgroup, layout.current(subgroup), step));
      continue;
    }
    const SlotId slot =
        layout.take_next(subgroup, device_of ? device_of(subgroup) : layout.device(subgroup));
    must(store.reserve());
    record.subgroups.push_back(write_version(store, subgroup, slot, step));
  }
  return record;
}

std::unique_ptr<StateStore> make_state(const StateStore::Options& options, const Geometry& geometry,
                                       std::int64_t last_step) {
  const std::vector<double> shares(static_cast<std::size_t>(geometry.device_count), 1.0);
  std::unique_ptr<StateStore> store =
      must(StateStore::create(options, test_identity(geometry.stored()), geometry,
                              make_device_map(geometry.subgroup_count(), shares)));
  for (std::int64_t step = 0; step <= last_step; ++step)
    must(store->commit(write_step(*store, step)));
  return store;
}

std::string expected_digest(const Geometry& geometry, std::int64_t step) {
  const bool is_split = geometry.stored().is_split();
  std::vector<std::uint32_t> all;
  for (std::int32_t v = 0; v < geometry.stored().decoded_count(); ++v)
    for (std::int64_t i = 0; i < geometry.parameter_count; ++i)
      all.push_back(is_split ? std::bit_cast<std::uint32_t>(split_value(geometry, step, v, i))
                             : element_bits(step, v, i));
  const XXH128_hash_t hash = XXH3_128bits(all.data(), all.size() * 4);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string digest_of(StateStore& store) {
  return must(digest_state(store, nullptr, nullptr)).digest;
}

Status ScriptedDisk::before(const detail::DiskCall& call) {
  const std::scoped_lock lock(log_->mutex);
  const std::string text = fmt::format("{} {}", verb(call.kind), short_name(call.path));
  const int number = static_cast<int>(log_->calls.size());
  log_->calls.push_back(text);
  if (!fails_ || !fails_(number, text)) return ok_status();
  if (on_failing_) on_failing_(call);
  return make_error(ErrorCode::io, "{}: scripted failure of call {} ({})", call.path, number, text);
}

ScriptedDisk::Picker stops_at(int stop_at) {
  return [stop_at](int number, const std::string&) { return number >= stop_at; };
}

}  // namespace sluice::state::testing
