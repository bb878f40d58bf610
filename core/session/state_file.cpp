#include "core/session/state_file.h"

#include <algorithm>
#include <limits>

#include "core/session/session_state.h"
#include "core/session/tensor_table.h"
#include "core/weights/optimizer_names.h"
#include "core/weights/tensor_writer.h"

namespace sluice::session {
namespace {

constexpr std::int64_t kBufferElements = 1 << 20;

weights::TensorSet set_of(const StateFile& file, std::int64_t updates) {
  weights::TensorSet set{file.stem,
                         {{weights::kFormatKey, weights::kOptimizerFormat},
                          {weights::kOptimizerKey, file.optimizer},
                          {weights::kStepKey, fmt::format("{}", updates)}},
                         weights::ElementType::fp32,
                         0,
                         {}};
  std::int64_t first = 0;
  for (const StateFile::Entry& entry : file.entries) {
    const std::int64_t count = element_count({.name = entry.name, .shape = entry.shape});
    set.tensors.push_back({entry.name, entry.shape, first, count});
    first += count;
  }
  set.parameter_count = first;
  return set;
}

Status read_entry(SessionState& state, const StateFile::Entry& entry, std::vector<float>& buffer,
                  const weights::TakeElements& take) {
  const std::int64_t count = element_count({.name = entry.name, .shape = entry.shape});
  for (std::int64_t first = 0; first < count; first += std::ssize(buffer)) {
    const auto size = static_cast<std::size_t>(std::min(std::ssize(buffer), count - first));
    const std::span<float> piece = std::span(buffer).first(size);
    RETURN_IF_ERROR(state.read(entry.tensor, entry.array, first, piece));
    RETURN_IF_ERROR(take(piece));
  }
  return ok_status();
}

}  // namespace

Status write_state_file(Session& session, const StateFile& file) {
  SessionState state(session);
  ASSIGN_OR_RETURN(const std::int64_t updates, state.updates_done());
  const weights::TensorSet set = set_of(file, updates);
  std::vector<float> buffer(kBufferElements);
  // One piece, and so one call for all of it.
  const weights::ReadElements read = [&](std::int64_t, std::int64_t,
                                         const weights::TakeElements& take) -> Status {
    for (const StateFile::Entry& entry : file.entries) {
      RETURN_IF_ERROR(read_entry(state, entry, buffer, take));
    }
    return ok_status();
  };
  const weights::OnWritten nobody = [](std::int64_t, std::int64_t) { return ok_status(); };
  weights::TensorWriter writer(file.folder, std::numeric_limits<std::int64_t>::max(),
                               set.size_bytes(), nobody);
  const Result<std::size_t> written = writer.write(set, read);
  return written.ok() ? ok_status() : Status(written.error());
}

}  // namespace sluice::session
