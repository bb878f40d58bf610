// A subgroup's initial state, encoded some blocks at a time and written by whole pages, is what
// encode() makes of it as a whole.

#include "core/offload/split_pieces.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "core/optimizer/split_update.h"
#include "storage/io/page_aligned_buffer.h"
#include "storage/state/checksum.h"

using namespace sluice;

namespace {

using Bytes = std::vector<std::byte>;

state::Geometry split_geometry(optimizer::RuleKind rule, const StateFormat& format,
                               std::int64_t element_count) {
  const StoredArrays stored = optimizer::stored_arrays(rule, format);
  return {element_count, element_count, stored.count, 1, stored.codes};
}

float initial_value(std::int32_t variable, std::int64_t flat_index) {
  const auto i = static_cast<float>((flat_index * 2654435761) % 10007);
  if (variable == 0) return 0.003f * (i - 5000);
  return variable == 1 ? 1e-6f * i : 1e-8f * i;  // never negative: a sum may be variable 1
}

Status fill(std::int32_t variable, std::int64_t first, std::span<float> out) {
  CHECK(std::ranges::all_of(out, [](float value) { return value == 0; }));
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = initial_value(variable, first + static_cast<std::int64_t>(i));
  }
  return ok_status();
}

// By the codec alone.
std::vector<Bytes> encoded(const state::Geometry& geometry, std::int64_t flat_first) {
  const std::int64_t count = geometry.parameter_count;
  std::vector<std::vector<float>> values;
  for (std::int32_t v = 0; v < geometry.stored().decoded_count(); ++v) {
    std::vector<float>& of_variable = values.emplace_back();
    for (std::int64_t i = 0; i < count; ++i)
      of_variable.push_back(initial_value(v, flat_first + i));
  }
  StoredSpan span{geometry.stored(), {}, count};
  std::vector<Bytes> arrays;
  for (std::int32_t v = 0; v < geometry.variable_count; ++v) {
    arrays.emplace_back(static_cast<std::size_t>(geometry.array_bytes(v, count)));
    span.data[static_cast<std::size_t>(v)] = arrays.back().data();
  }
  encode(std::vector<std::span<const float>>(values.begin(), values.end()), CodeRounding::nearest(),
         flat_first, span);
  return arrays;
}

struct Written {
  std::vector<Bytes> arrays;  // without payload empty
  Bytes copy;                 // as make() returned it
  std::vector<std::int64_t> sizes;
  csd::UpdatedChecksums checksums{};
  int pieces = 0;
};

// As InitialState does it, into memory in place of a drive.
Written write_all(const state::Geometry& geometry, std::int64_t flat_first,
                  std::span<std::byte> bounce, std::int64_t bounce_bytes) {
  offload::SplitPieces pieces(geometry, bounce, bounce_bytes);
  REQUIRE(pieces.element_count() % kBlockElements == 0);
  const auto variables = static_cast<std::size_t>(geometry.variable_count);
  Written written{.arrays = std::vector<Bytes>(variables),
                  .copy = {},
                  .sizes = std::vector<std::int64_t>(variables)};
  const std::int64_t element_count = geometry.parameter_count;
  for (std::int64_t first = 0; first < element_count; first += pieces.element_count()) {
    const std::int64_t count = std::min(pieces.element_count(), element_count - first);
    const bool is_last = first + count == element_count;
    written.pieces += 1;
    if (!bounce.empty()) {
      const auto made = pieces.make(fill, flat_first + first, count);
      REQUIRE(made.ok());
      written.copy.insert(written.copy.end(), made->begin(), made->end());
    }
    pieces.on_made(count);
    for (std::size_t v = 0; v < variables; ++v) {
      const auto variable = static_cast<std::int32_t>(v);
      const csd::HostTransfer transfer = pieces.pages(variable, is_last);
      REQUIRE(transfer.offset_bytes == written.sizes[v]);
      REQUIRE(transfer.offset_bytes % kPageBytes == 0);
      REQUIRE((is_last || transfer.size_bytes % kPageBytes == 0));
      if (transfer.size_bytes == 0) continue;
      written.sizes[v] += transfer.size_bytes;
      if (!bounce.empty()) {
        const auto pages = transfer.bytes.first(
            static_cast<std::size_t>(round_up(transfer.size_bytes, kPageBytes)));
        written.arrays[v].insert(written.arrays[v].end(), pages.begin(), pages.end());
      }
      pieces.on_written(variable, transfer);
    }
  }
  written.checksums = pieces.checksums();
  return written;
}

constexpr optimizer::RuleKind kPieceRules[] = {optimizer::RuleKind::adamw, optimizer::RuleKind::sgd,
                                               optimizer::RuleKind::adagrad};
constexpr StateFormat kPieceFormats[] = {{.kind = StateFormatKind::exact},
                                         {.kind = StateFormatKind::compact},
                                         {.kind = StateFormatKind::compact, .remainder_bits = 8}};
constexpr std::int64_t kBounceBytes[] = {32 * kPageBytes, 100 * kPageBytes, 512 * kPageBytes};

}  // namespace

TEST_CASE("what is written piece by piece is the whole encoded, padded with zeros") {
  for (const optimizer::RuleKind rule : kPieceRules) {
    for (const StateFormat& format : kPieceFormats) {
      for (const std::int64_t count : {1L, 4096L, 3 * 4096L + 100, 40'000L}) {
        const state::Geometry geometry = split_geometry(rule, format, count);
        const std::vector<Bytes> wanted = encoded(geometry, 64 * 1000);
        for (const std::int64_t bounce_bytes : kBounceBytes) {
          CAPTURE(static_cast<int>(rule), format_text(format), count, bounce_bytes);
          auto bounce = io::PageAlignedBuffer::allocate(bounce_bytes);
          REQUIRE(bounce.ok());
          std::ranges::fill(bounce->bytes(), std::byte{0xee});
          const Written written = write_all(geometry, 64 * 1000, bounce->bytes(), bounce_bytes);
          if (count == 40'000 && bounce_bytes == kBounceBytes[0]) CHECK(written.pieces >= 5);
          CHECK(written.copy == wanted[0]);
          for (std::size_t v = 0; v < wanted.size(); ++v) {
            CHECK(written.sizes[v] == std::ssize(wanted[v]));
            CHECK(written.checksums[v] == state::checksum(wanted[v]));
            Bytes padded = wanted[v];
            padded.resize(static_cast<std::size_t>(round_up(std::ssize(padded), kPageBytes)));
            CHECK(written.arrays[v] == padded);
          }
        }
      }
    }
  }
}

TEST_CASE("without payload the pieces have the sizes of those with it") {
  for (const std::int64_t count : {100L, 3 * 4096L + 100, 40'000L}) {
    const state::Geometry geometry =
        split_geometry(optimizer::RuleKind::adamw, {.kind = StateFormatKind::compact}, count);
    for (const std::int64_t bounce_bytes : kBounceBytes) {
      const Written written = write_all(geometry, 0, {}, bounce_bytes);
      for (std::int32_t v = 0; v < geometry.variable_count; ++v) {
        CHECK(written.sizes[static_cast<std::size_t>(v)] == geometry.array_bytes(v, count));
      }
    }
  }
}

TEST_CASE("an error of whoever fills the initial state ends it") {
  const state::Geometry geometry =
      split_geometry(optimizer::RuleKind::adamw, {.kind = StateFormatKind::compact}, 5000);
  auto bounce = io::PageAlignedBuffer::allocate(kBounceBytes[1]);
  REQUIRE(bounce.ok());
  offload::SplitPieces pieces(geometry, bounce->bytes(), kBounceBytes[1]);
  const auto made = pieces.make(
      [](std::int32_t variable, std::int64_t, std::span<float>) -> Status {
        if (variable == 0) return ok_status();
        return make_error(ErrorCode::io, "the weights file is cut");
      },
      0, 4096);
  REQUIRE_FALSE(made.ok());
  CHECK(made.error().message() == "the weights file is cut");
}
