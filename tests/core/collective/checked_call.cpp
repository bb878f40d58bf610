#include "checked_call.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/float16.h"
#include "base/split_mix.h"

namespace sluice::collective {
namespace {

constexpr std::size_t kGuardBytes = 64;
constexpr std::byte kGuard{0xa5};

// Signs and sizes differ, so that another order of a sum rounds otherwise.
double number(std::uint64_t random) {
  const double magnitude = unit_interval(random) * static_cast<double>(1 << (random % 8));
  return (random & 256) != 0 ? -magnitude : magnitude;
}

std::uint64_t stored(ElementType type, double value) {
  switch (type) {
    case ElementType::bf16:
      return bf16_from_float(static_cast<float>(value));
    case ElementType::fp16:
      return fp16_from_float(static_cast<float>(value));
    case ElementType::fp32:
      return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    default:
      return std::bit_cast<std::uint64_t>(value);
  }
}

float loaded(ElementType type, std::uint64_t bits) {
  switch (type) {
    case ElementType::bf16:
      return float_from_bf16(static_cast<std::uint16_t>(bits));
    case ElementType::fp16:
      return float_from_fp16(static_cast<std::uint16_t>(bits));
    default:
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  }
}

bool is_all(std::span<const std::byte> bytes, std::byte value) {
  return std::all_of(bytes.begin(), bytes.end(), [&](std::byte byte) { return byte == value; });
}

}  // namespace

std::uint64_t given_bits(const CallPlan& plan, int rank, std::int64_t index) {
  const std::uint64_t random = split_mix(split_mix(plan.salt, static_cast<std::uint64_t>(rank)),
                                         static_cast<std::uint64_t>(index));
  if (plan.type == ElementType::bytes) return random & 0xff;
  return stored(plan.type, number(random));
}

std::uint64_t plain_sum_bits(const CallPlan& plan, std::span<const int> ranks, std::int64_t index) {
  if (plan.type == ElementType::fp64) {
    double sum = std::bit_cast<double>(given_bits(plan, ranks[0], index));
    for (const int rank : ranks.subspan(1)) {
      sum = sum + std::bit_cast<double>(given_bits(plan, rank, index));
    }
    return std::bit_cast<std::uint64_t>(sum);
  }
  float sum = loaded(plan.type, given_bits(plan, ranks[0], index));
  for (const int rank : ranks.subspan(1)) {
    sum = sum + loaded(plan.type, given_bits(plan, rank, index));
  }
  return stored(plan.type, static_cast<double>(sum));
}

// Elements of the shard at `place`: units are dealt out one by one. Written here as a loop, not as
// core/collective has it.
std::int64_t plain_shard_count(const CallPlan& plan, std::int64_t rank_count, std::int64_t place) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(rank_count));
  std::int64_t left = plan.count;
  // As many units for each, and then one more for the first.
  std::vector<std::int64_t> units(counts.size());
  for (std::int64_t dealt = 0; dealt * plan.unit < plan.count; ++dealt) {
    units[static_cast<std::size_t>(dealt % rank_count)] += 1;
  }
  for (std::size_t p = 0; p < counts.size(); ++p) {
    counts[p] = std::min(left, units[p] * plan.unit);
    left -= counts[p];
  }
  return counts[static_cast<std::size_t>(place)];
}

CheckedCall::Memory CheckedCall::memory_of(std::int64_t size_bytes) {
  Memory memory;
  const auto size = static_cast<std::size_t>(size_bytes);
  memory.bytes.assign(size + 2 * kGuardBytes, kGuard);
  memory.inner = std::span(memory.bytes).subspan(kGuardBytes, size);
  return memory;
}

CheckedCall::CheckedCall(const CallPlan& plan, std::span<const int> ranks, int rank)
    : plan_(plan), ranks_(ranks.begin(), ranks.end()), rank_(rank) {
  const auto place = std::find(ranks_.begin(), ranks_.end(), rank) - ranks_.begin();
  std::int64_t own_first = 0;
  std::int64_t own_count = 0;
  for (std::int64_t p = 0; p <= place; ++p) {
    own_first += own_count;
    own_count = plain_shard_count(plan, std::ssize(ranks_), p);
  }
  call_.kind = plan.kind;
  call_.group = plan.group;
  call_.type = plan.type;
  call_.root = plan.root;
  call_.unit = plan.unit;
  call_.label = {"test", LayerId{static_cast<std::int32_t>(plan.salt % 100)}, 7};
  make_spans(own_first, own_count);
  const std::int64_t bytes = element_bytes(plan.type);
  const std::int64_t first = plan.kind == Kind::all_gather ? own_first : 0;
  std::byte* to = const_cast<std::byte*>(call_.in.data());  // our own memory
  for (std::int64_t i = 0; i < std::ssize(call_.in) / bytes; ++i) {
    const std::uint64_t bits = given_bits(plan, rank, first + i);
    std::memcpy(to + i * bytes, &bits, static_cast<std::size_t>(bytes));
  }
  given_.assign(call_.in.begin(), call_.in.end());
}

void CheckedCall::make_spans(std::int64_t own_first, std::int64_t own_count) {
  const std::int64_t bytes = element_bytes(plan_.type);
  const std::int64_t whole_bytes = plan_.count * bytes;
  const bool gives = plan_.kind != Kind::broadcast || plan_.root == rank_;
  const std::int64_t in_bytes = !gives                           ? 0
                                : plan_.kind == Kind::all_gather ? own_count * bytes
                                                                 : whole_bytes;
  const std::int64_t out_bytes =
      plan_.kind == Kind::reduce_scatter ? own_count * bytes : whole_bytes;
  in_ = memory_of(plan_.place == Place::in_place ? whole_bytes : in_bytes);
  out_ = memory_of(plan_.place == Place::in_place ? 0 : out_bytes);
  if (plan_.place == Place::apart) {
    call_.in = in_.inner;
    call_.out = out_.inner;
    return;
  }
  const auto own = in_.inner.subspan(static_cast<std::size_t>(own_first * bytes),
                                     static_cast<std::size_t>(own_count * bytes));
  call_.in = plan_.kind == Kind::all_gather ? own : gives ? in_.inner : std::span<std::byte>{};
  call_.out = plan_.kind == Kind::reduce_scatter ? own : in_.inner;
}

std::string CheckedCall::problem() const {
  const auto said = [this](const std::string& what) {
    return "rank " + std::to_string(rank_) + ", " + call_text(call_) + ", " + ranks_text(ranks_) +
           (plan_.place == Place::in_place ? ", in place" : "") + ": " + what;
  };
  for (const Memory* memory : {&in_, &out_}) {
    if (memory->bytes.empty()) continue;
    const std::span<const std::byte> all = memory->bytes;
    if (!is_all(all.first(kGuardBytes), kGuard) || !is_all(all.last(kGuardBytes), kGuard))
      return said("bytes beside its memory were written");
  }
  if (plan_.place == Place::apart && !std::ranges::equal(call_.in, given_))
    return said("what went in was written");
  const std::int64_t bytes = element_bytes(plan_.type);
  std::int64_t first = 0;
  if (plan_.kind == Kind::reduce_scatter) {
    const auto place = std::find(ranks_.begin(), ranks_.end(), rank_) - ranks_.begin();
    for (std::int64_t p = 0; p < place; ++p) {
      first += plain_shard_count(plan_, std::ssize(ranks_), p);
    }
  }
  for (std::int64_t i = 0; i < std::ssize(call_.out) / bytes; ++i) {
    const std::int64_t index = first + i;
    std::uint64_t wanted = 0;
    if (is_reduction(plan_.kind)) {
      wanted = plain_sum_bits(plan_, ranks_, index);
    } else if (plan_.kind == Kind::broadcast) {
      wanted = given_bits(plan_, plan_.root, index);
    } else {
      std::int64_t behind = 0;  // the owner's shard ends here
      std::size_t owner = 0;
      for (; owner < ranks_.size(); ++owner) {
        behind += plain_shard_count(plan_, std::ssize(ranks_), static_cast<std::int64_t>(owner));
        if (index < behind) break;
      }
      wanted = given_bits(plan_, ranks_[owner], index);
    }
    if (std::memcmp(call_.out.data() + i * bytes, &wanted, static_cast<std::size_t>(bytes)) != 0)
      return said("element " + std::to_string(index) + " of what came out is wrong");
  }
  return "";
}

// Each rank with its own byte, so that one that is moved late shows where it arrives.
std::byte CheckedCall::filling() const { return static_cast<std::byte>(0x50 + rank_); }

void CheckedCall::fill() {
  std::fill(in_.inner.begin(), in_.inner.end(), filling());
  std::fill(out_.inner.begin(), out_.inner.end(), filling());
}

std::string CheckedCall::problem_after_fill() const {
  if (is_all(in_.inner, filling()) && is_all(out_.inner, filling())) return "";
  return "rank " + std::to_string(rank_) + ", " + call_text(call_) +
         ": its memory was written after its end was noted";
}

}  // namespace sluice::collective
