// XXH3-64 of any even stretch of a buffer: the host's gradients are checked by it, chunk by chunk
// as they were sent.
//
// Thread contract: that of kernels.h.

#include "hls/kernels/kernels.h"
#include "hls/kernels/xxh3_digest.h"

namespace sluice::hls_kernels {
namespace {

using CheckedWords = hls::stream<Word, 64>;

void load_bytes(const Word* bytes, std::uint64_t first_byte, std::uint64_t size_bytes,
                CheckedWords& words) {
  const std::uint64_t first = first_byte / kWordBytes;
  const std::uint64_t end = (first_byte + size_bytes + kWordBytes - 1) / kWordBytes;
load_byte_words:
  for (std::uint64_t i = first; i < end; ++i) {
#pragma HLS loop_tripcount min = 1 max = 134217728 avg = 65536
#pragma HLS pipeline II = 1
    words.write(bytes[i]);
  }
}

// Words that begin where the stretch does. `shift` halves of the first word are before it.
void align_words(CheckedWords& words, std::uint64_t first_byte, std::uint64_t size_bytes,
                 CheckedWords& aligned) {
  const int shift = static_cast<int>(first_byte % kWordBytes);
  const std::uint64_t in = (shift + size_bytes + kWordBytes - 1) / kWordBytes;
  const std::uint64_t out = (size_bytes + kWordBytes - 1) / kWordBytes;
  Word word = words.read();
align_each:
  for (std::uint64_t i = 0; i < out; ++i) {
#pragma HLS loop_tripcount min = 1 max = 134217728 avg = 65536
#pragma HLS pipeline II = 1
    Word next = Word(0u);
    if (i + 1 < in) next = words.read();
    aligned.write(shift == 0 ? word : last_stripe_of<2>(word, next, shift));
    word = next;
  }
}

void write_digest(HashedStream& hashed, std::uint64_t size_bytes, Word* result) {
  Word word = Word(0u);
  set_lane64(word, 0, digest(hashed.read(), size_bytes));
  result[0] = word;
}

void checksum_region(const Word* bytes, Word* result, std::uint64_t first_byte,
                     std::uint64_t size_bytes) {
#pragma HLS dataflow
  HLS_BEGIN();
  CheckedWords words("words"), aligned("aligned");
  SumStream sums("sums");
  TailStream tails("tails");
  HashedStream hashed("hashed");
  HLS_PROCESS(load_bytes(bytes, first_byte, size_bytes, words));
  HLS_PROCESS(align_words(words, first_byte, size_bytes, aligned));
  HLS_PROCESS(sum_stripes(size_bytes, aligned, sums, tails));
  HLS_PROCESS(fold_blocks(size_bytes, sums, tails, hashed));
  HLS_PROCESS(write_digest(hashed, size_bytes, result));
  HLS_END();
}

}  // namespace

extern "C" void checksum(const Word* bytes, Word* result, std::uint64_t first_byte,
                         std::uint64_t size_bytes) {
#pragma HLS interface m_axi port = bytes bundle = bytes offset = slave
#pragma HLS interface m_axi port = result bundle = result offset = slave
#pragma HLS interface s_axilite port = first_byte
#pragma HLS interface s_axilite port = size_bytes
#pragma HLS interface s_axilite port = return
  if (size_bytes > 0) checksum_region(bytes, result, first_byte, size_bytes);
}

}  // namespace sluice::hls_kernels
