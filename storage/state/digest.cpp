#include <xxhash.h>

#include <algorithm>
#include <memory>

#include "base/check.h"
#include "storage/io/page_aligned_buffer.h"
#include "storage/state/flat_digest.h"
#include "storage/state/state_reader.h"
#include "storage/state/state_store.h"

namespace sluice::state {
namespace {

constexpr std::int64_t kChunkBytes = std::int64_t{8} << 20;

struct FreeHash {
  void operator()(XXH3_state_t* hash) const { XXH3_freeState(hash); }
};
using Hash = std::unique_ptr<XXH3_state_t, FreeHash>;

Result<Hash> make_hash() {
  Hash hash(XXH3_createState());
  if (hash == nullptr) return make_error(ErrorCode::memory, "no memory for the state of XXH3");
  return hash;
}

struct ProgressReport {
  VerifyProgress progress;
  void (*on_progress)(const VerifyProgress&, void*);
  void* context;
};

// Reads one array after the other: each into its own XXH3-64, all into one XXH3-128.
class DigestReader {
 public:
  DigestReader(StateStore& store, ProgressReport report, io::PageAlignedBuffer chunk,
               Hash array_hash, Hash digest_hash)
      : store_(store),
        report_(report),
        chunk_(std::move(chunk)),
        array_hash_(std::move(array_hash)),
        digest_hash_(std::move(digest_hash)) {
    XXH3_128bits_reset(digest_hash_.get());
  }

  Status add_array(SubgroupId subgroup, std::int32_t variable);
  std::string digest() const;

 private:
  Status read_and_hash(const io::File& file, std::int64_t offset_bytes, std::int64_t size_bytes);

  StateStore& store_;
  ProgressReport report_;
  io::PageAlignedBuffer chunk_;
  Hash array_hash_;
  Hash digest_hash_;
};

Status DigestReader::add_array(SubgroupId subgroup, std::int32_t variable) {
  Layout& layout = store_.layout();
  const SubgroupVersion& version = store_.committed().subgroups[index_of(subgroup)];
  const std::int64_t element_count = layout.geometry().element_count(subgroup);
  const io::File& file = store_.file(version.slot.device);
  const std::int64_t offset_bytes =
      store_.file_offset(layout.extent(version.slot, variable, element_count));
  const std::int64_t size_bytes = layout.geometry().array_bytes(variable, element_count);
  RETURN_IF_ERROR(read_and_hash(file, offset_bytes, size_bytes));
  const std::uint64_t found = XXH3_64bits_digest(array_hash_.get());
  const std::uint64_t committed = version.checksums[variable];
  if (found == committed) return ok_status();
  return make_error(
      ErrorCode::corrupt,
      "{}: {} of subgroup {} ({} bytes at offset {}) was changed after it was committed: its "
      "XXH3-64 is {:016x}, the commit of step {} says {:016x}; use a copy",
      file.path(), store_.identity().variable_names[variable], index_of(subgroup), size_bytes,
      offset_bytes, found, store_.committed().position.step, committed);
}

Status DigestReader::read_and_hash(const io::File& file, std::int64_t offset_bytes,
                                   std::int64_t size_bytes) {
  XXH3_64bits_reset(array_hash_.get());
  for (std::int64_t done = 0; done < size_bytes;) {
    const std::int64_t used = std::min(size_bytes - done, chunk_.size_bytes());
    // Whole pages, as direct reads want them; an array is padded to whole pages.
    const auto read = static_cast<std::size_t>(round_up(used, kPageBytes));
    RETURN_IF_ERROR(file.read_exactly(offset_bytes + done, chunk_.bytes().first(read)));
    XXH3_64bits_update(array_hash_.get(), chunk_.bytes().data(), static_cast<std::size_t>(used));
    XXH3_128bits_update(digest_hash_.get(), chunk_.bytes().data(), static_cast<std::size_t>(used));
    done += used;
    report_.progress.done_bytes += used;
    if (report_.on_progress != nullptr) report_.on_progress(report_.progress, report_.context);
  }
  return ok_status();
}

std::string DigestReader::digest() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(digest_hash_.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

// That of the arrays in fp32, so that it does not depend on how they are stored where that loses
// nothing.
Result<StateDigest> decoded_digest(StateStore& store) {
  const Geometry& geometry = store.layout().geometry();
  ASSIGN_OR_RETURN(StateReader reader, StateReader::make(store));
  FlatDigest digest;
  for (std::int32_t v = 0; v < geometry.stored().decoded_count(); ++v) {
    RETURN_IF_ERROR(digest.add(reader, v, 0, geometry.parameter_count));
  }
  return StateDigest{digest.digest()};
}

}  // namespace

Result<StateDigest> digest_state(StateStore& store,
                                 void (*on_progress)(const VerifyProgress&, void*), void* context,
                                 std::vector<std::string>* damages) {
  CHECK(!store.committed().subgroups.empty());  // nothing is committed yet
  const Geometry geometry = store.layout().geometry();
  const std::int64_t total_bytes = geometry.state_bytes();
  ASSIGN_OR_RETURN(io::PageAlignedBuffer chunk,
                   io::PageAlignedBuffer::allocate(std::min(kChunkBytes, geometry.slot_bytes())));
  ASSIGN_OR_RETURN(Hash array_hash, make_hash());
  ASSIGN_OR_RETURN(Hash digest_hash, make_hash());
  DigestReader reader(store, {{0, total_bytes}, on_progress, context}, std::move(chunk),
                      std::move(array_hash), std::move(digest_hash));
  for (std::int32_t variable = 0; variable < geometry.variable_count; ++variable)
    for (std::int32_t s = 0; s < geometry.subgroup_count(); ++s) {
      Status whole = reader.add_array(SubgroupId{s}, variable);
      if (whole.ok()) continue;
      if (damages == nullptr || whole.error().code() != ErrorCode::corrupt) return whole.error();
      damages->push_back(whole.error().message());
    }
  if (geometry.stored().is_split()) return decoded_digest(store);
  return StateDigest{reader.digest()};
}

}  // namespace sluice::state
