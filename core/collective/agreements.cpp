// Small agreements of a communicator, made of its calls.

#include <algorithm>
#include <cstring>

#include "core/collective/communicator.h"

namespace sluice::collective {
namespace {

Result<std::int64_t> agree(Communicator& communicator, Kind kind, std::int64_t value,
                           const char* what, GroupId group) {
  std::int64_t agreed = 0;
  Call call;
  call.kind = kind;
  call.group = group;
  call.in = std::as_bytes(std::span(&value, 1));
  call.out = std::as_writable_bytes(std::span(&agreed, 1));
  call.label.what = what;
  RETURN_IF_ERROR(communicator.run(call));
  return agreed;
}

}  // namespace

Status Communicator::barrier(const char* what, GroupId group) {
  Call call;
  call.kind = Kind::barrier;
  call.group = group;
  call.label.what = what;
  return run(call);
}

Result<std::int64_t> Communicator::minimum(std::int64_t value, const char* what, GroupId group) {
  return agree(*this, Kind::minimum, value, what, group);
}

Result<std::int64_t> Communicator::maximum(std::int64_t value, const char* what, GroupId group) {
  return agree(*this, Kind::maximum, value, what, group);
}

// All places are as long as the longest text and its length before it, so that shards are equal.
Result<std::vector<std::string>> Communicator::gather_text(std::string_view text, const char* what,
                                                           GroupId group) {
  const auto length = static_cast<std::int64_t>(text.size());
  ASSIGN_OR_RETURN(const std::int64_t longest, maximum(length, what, group));
  const auto place_bytes = sizeof length + static_cast<std::size_t>(longest);
  std::vector<std::byte> own(place_bytes);
  std::memcpy(own.data(), &length, sizeof length);
  std::copy_n(std::as_bytes(std::span(text)).data(), text.size(), own.data() + sizeof length);
  std::vector<std::byte> all(place_bytes * ranks_of(group).size());
  Call call;
  call.kind = Kind::all_gather;
  call.group = group;
  call.in = own;
  call.out = all;
  call.label.what = what;
  RETURN_IF_ERROR(run(call));
  std::vector<std::string> texts;
  for (std::size_t place = 0; place < ranks_of(group).size(); ++place) {
    const std::byte* from = all.data() + place * place_bytes;
    std::int64_t size = 0;
    std::memcpy(&size, from, sizeof size);
    texts.emplace_back(reinterpret_cast<const char*>(from) + sizeof size,
                       static_cast<std::size_t>(size));
  }
  return texts;
}

}  // namespace sluice::collective
