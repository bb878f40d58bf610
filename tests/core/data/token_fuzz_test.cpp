// Good token files and vocabularies with seeded damage: each is opened and read, or is one error
// that names it. The address sanitizer watches the reading.

#include <catch2/catch.hpp>
#include <random>

#include "core/data/token_file.h"
#include "core/data/token_vocabulary.h"
#include "tests/core/data/foreign_tokens.h"
#include "tests/sanitizer.h"

namespace sluice::data {
namespace {

constexpr unsigned kSeeds = kIsSanitized ? 300 : 1500;
constexpr std::int64_t kVocabulary = 300;

class Damage {
 public:
  explicit Damage(unsigned seed) : random_(seed) {}

  std::string of(std::string bytes) {
    for (std::size_t i = 0, count = 1 + below(3); i < count; ++i) hurt(bytes);
    return bytes;
  }

 private:
  std::size_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
  }
  void hurt(std::string& bytes) {
    const std::size_t at = below(bytes.size() + 1);
    const std::size_t in_header = std::min(below(40), bytes.size());
    switch (below(6)) {
      case 0:
        if (at < bytes.size()) bytes[at] = static_cast<char>(below(256));
        return;
      case 1:
        if (in_header < bytes.size()) bytes[in_header] = static_cast<char>(below(256));
        return;
      case 2:
        bytes.resize(at);
        return;
      case 3:
        bytes.insert(at, bytes.substr(at, below(64)));
        return;
      case 4:
        bytes.erase(at, below(64));
        return;
      default:
        bytes.replace(in_header, std::min<std::size_t>(4, bytes.size() - in_header), 4, '\xff');
    }
  }

  std::mt19937 random_;
};

// All tokens are read, by an odd number at a time, and are of the vocabulary.
Status read_all(const std::string& path, TokenCheck check) {
  ASSIGN_OR_RETURN(const std::optional<TokenFormat> format, recognised_format(path));
  if (!format) return make_error(ErrorCode::config, "{}: is a text", path);
  ASSIGN_OR_RETURN(
      const TokenFile file,
      TokenFile::open(path, {.format = *format, .check = check, .model_vocabulary = kVocabulary}));
  for (std::int64_t first = 0; first < file.token_count(); first += 77) {
    const std::int64_t left = file.token_count() - first;
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(std::min<std::int64_t>(77, left)));
    RETURN_IF_ERROR(file.read(first, tokens));
    std::vector<std::uint8_t> marks(tokens.size());
    RETURN_IF_ERROR(file.read_marks(first, marks));
    for (const std::uint8_t mark : marks) REQUIRE(mark <= (kLearnt | kDocumentBegins));
    for (const std::int32_t token : tokens) REQUIRE((token >= 0 && token < kVocabulary));
  }
  return ok_status();
}

struct Counts {
  int refused = 0;
  int taken = 0;
  void note(const Status& status, const std::string& path) {
    (status.ok() ? taken : refused) += 1;
    if (!status.ok()) REQUIRE(status.error().message().starts_with(path));
  }
};

TEST_CASE("a damaged token file gives tokens of the vocabulary, or one error that names it") {
  const TemporaryFolder folder;
  std::vector<std::uint32_t> tokens;
  for (std::uint32_t i = 0; i < 500; ++i) tokens.push_back(i * 7 % kVocabulary);
  const std::vector<std::uint8_t> marks(tokens.size(), kLearnt);
  const std::vector<std::string> good = {sluice_tokens(tokens, 2, kVocabulary),
                                         sluice_tokens(tokens, 4, kVocabulary),
                                         llmc_tokens(tokens, 2),
                                         llmc_tokens(tokens, 4),
                                         payload_of(tokens, 2),
                                         marked_tokens(tokens, 2, kVocabulary, marks)};
  Counts counts;
  const std::string path = folder / "t.bin";
  for (const std::string& bytes : good) {
    write_file(path, bytes);
    REQUIRE(read_all(path, TokenCheck::whole).ok());
    for (unsigned seed = 0; seed < kSeeds; ++seed) {
      CAPTURE(seed, bytes.size());
      write_file(path, Damage(seed).of(bytes));
      counts.note(read_all(path, TokenCheck::whole), path);
      counts.note(read_all(path, TokenCheck::spots), path);
    }
  }
  CHECK(counts.refused > static_cast<int>(kSeeds));
  CHECK(counts.taken > static_cast<int>(kSeeds) / 10);  // headers have spare bytes
}

TEST_CASE("a damaged vocabulary is one error that names it") {
  const TemporaryFolder folder;
  const std::string path = folder / "t.vocab";
  std::vector<std::string> texts;
  for (int i = 0; i < 200; ++i) texts.push_back(std::string(static_cast<std::size_t>(i % 9), 'x'));
  const std::string good = vocabulary_file(texts);
  Counts counts;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    CAPTURE(seed);
    write_file(path, Damage(seed).of(good));
    const auto vocabulary = TokenVocabulary::load_beside(folder / "t.tok");
    counts.note(vocabulary.ok() ? ok_status() : Status(vocabulary.error()), path);
  }
  CHECK(counts.refused > static_cast<int>(kSeeds) * 9 / 10);
}

}  // namespace
}  // namespace sluice::data
