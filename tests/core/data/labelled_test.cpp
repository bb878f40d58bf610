// Records with labels: how a file has them, which are refused, and what a sampler makes of them.

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "core/data/sampler.h"
#include "core/data/token_marks.h"
#include "tests/core/data/files.h"
#include "tests/core/data/foreign_tokens.h"

namespace sluice::data {
namespace {

using Catch::Matchers::Contains;

constexpr std::uint32_t kWindow = 5;
constexpr std::uint8_t kFirst = kOfRecord, kSecond = kOfRecord | kOfSecondText;

struct Records {
  std::vector<std::uint32_t> tokens;
  std::vector<std::uint8_t> marks;
  std::vector<std::uint32_t> labels;
};

// Record i has tokens i, 1 to 5 of them, of which a second text has the last two where there are 4.
Records some_records(std::uint32_t count) {
  Records made;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t length = i % kWindow + 1;
    for (std::uint32_t column = 0; column < kWindow; ++column) {
      made.tokens.push_back(column < length ? i : 399);
      made.marks.push_back(column >= length ? 0 : length == 4 && column >= 2 ? kSecond : kFirst);
    }
    made.labels.push_back(i % 3);
  }
  return made;
}

std::string labelled_file(const Records& records, std::uint32_t version = 5) {
  TokenHeader header;
  header.version = version;
  header.window_tokens = kWindow;
  header.bytes_per_token = 2;
  header.token_count = records.tokens.size();
  header.vocabulary = 400;
  std::string packed((records.marks.size() + 3) / 4, '\0');
  for (std::size_t i = 0; i < records.marks.size(); ++i)
    packed[i / 4] = static_cast<char>(packed[i / 4] | (records.marks[i] << (2 * (i % 4))));
  return sluice_tokens(
      header, payload_of(records.tokens, 2) + packed + words_of<std::uint32_t>(records.labels));
}

struct LabelledFile {
  explicit LabelledFile(const std::string& bytes, TokenCheck check = TokenCheck::whole) {
    write_file(folder / "a.tok", bytes);
    file = std::make_unique<Result<TokenFile>>(TokenFile::open(folder / "a.tok", {.check = check}));
  }
  std::string refusal() const {
    REQUIRE_FALSE(file->ok());
    CHECK_THAT(file->error().message(), Contains(folder / "a.tok"));
    return file->error().message();
  }
  const TokenFile& opened() const {
    INFO((file->ok() ? "" : file->error().message()));
    REQUIRE(file->ok());
    return **file;
  }

  TemporaryFolder folder;
  std::unique_ptr<Result<TokenFile>> file;
};

SamplerOptions of_classes(std::int64_t batch, std::int64_t classes) {
  return {.batch = batch, .sequence = kWindow, .validation_fraction = 0.25, .classes = classes};
}

TEST_CASE("labels lie behind the marks, 4 bytes a record, and are read one by one") {
  const Records records = some_records(7);
  const std::string bytes = labelled_file(records);
  REQUIRE(bytes.size() == 64 + 35 * 2 + 9 + 7 * 4);
  for (const TokenCheck check : {TokenCheck::whole, TokenCheck::spots}) {
    const LabelledFile made(bytes, check);
    CHECK(made.opened().label_count() == 3);
    CHECK(made.opened().window_tokens() == kWindow);
    CHECK(made.opened().facts().size_bytes == std::ssize(bytes));
    for (std::int64_t i = 0; i < 7; ++i) CHECK(made.opened().read_label(i).value() == i % 3);
  }
}

TEST_CASE("labels that are cut, damaged or below 0 are refused with their place") {
  const std::string bytes = labelled_file(some_records(7));
  CHECK_THAT(LabelledFile(bytes.substr(0, bytes.size() - 4)).refusal(),
             Contains("labels of 4 bytes a record") && Contains("cut or has grown"));
  std::string damaged = bytes;
  damaged.back() = 1;
  CHECK_THAT(LabelledFile(damaged).refusal(), Contains("marks or labels, are damaged"));
  Records below = some_records(7);
  below.labels[2] = static_cast<std::uint32_t>(-1);
  for (const TokenCheck check : {TokenCheck::whole, TokenCheck::spots}) {
    CHECK_THAT(LabelledFile(labelled_file(below), check).refusal(),
               Contains("record 2, at offset 151, is -1"));
  }
  CHECK_THAT(LabelledFile(labelled_file(some_records(7), 6)).refusal(),
             Contains("versions 1 to 5"));
}

TEST_CASE("each record is a window with its label, its texts and what fills it") {
  const LabelledFile made(labelled_file(some_records(16)));
  Sampler sampler = *Sampler::make(&made.opened(), of_classes(4, 3));
  CHECK(sampler.validation_batch_count() == 1);
  CHECK(sampler.train_divisor(0, 3).value() == 4);
  std::set<std::int32_t> seen;
  for (std::uint64_t position = 0; position < 12; position += 4) {
    const auto batch = sampler.train_batch(position);
    REQUIRE(batch.ok());
    CHECK(batch->target_sequence == 1);
    CHECK(batch->targets.size() == 4);
    CHECK(batch->drop_keys.size() == 4);
    CHECK(batch->counted_targets() == 4);
    for (std::size_t row = 0; row < 4; ++row) {
      const std::int32_t record = batch->inputs[row * kWindow];
      seen.insert(record);
      CHECK(batch->targets[row] == record % 3);
      const auto length = record % static_cast<std::int32_t>(kWindow) + 1;
      for (std::int32_t i = 0; i < static_cast<std::int32_t>(kWindow); ++i) {
        const std::size_t column = row * kWindow + static_cast<std::size_t>(i);
        CHECK(batch->inputs[column] == (i < length ? record : 399));
        CHECK(batch->document_begins[column] == (i < length ? 0 : length));
        CHECK(batch->segments[column] == (length == 4 && (i == 2 || i == 3) ? 1 : 0));
      }
    }
  }
  CHECK(seen.size() == 12);
  CHECK(*seen.rbegin() == 11);  // the last quarter is held out
  CHECK(sampler.validation_batch(0)->inputs.front() == 12);
}

TEST_CASE("labels are for a model that classifies, with as many classes, and windows as long") {
  const auto refusal = [](const TokenFile& file, const SamplerOptions& options) {
    const Status status = Sampler::check(file, options);
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().code() == ErrorCode::config);
    return status.error().message();
  };
  const LabelledFile made(labelled_file(some_records(16)));
  CHECK_THAT(refusal(made.opened(), of_classes(4, 2)),
             Contains("labels up to 2") && Contains("has 2 classes"));
  CHECK_THAT(refusal(made.opened(), of_classes(4, 0)), Contains("the model answers tokens"));
  SamplerOptions longer = of_classes(4, 3);
  longer.sequence = 9;
  CHECK_THAT(refusal(made.opened(), longer),
             Contains("records of up to 5 tokens") && Contains("set sequence = 5"));
  const LabelledFile few(labelled_file(some_records(3)));
  CHECK_THAT(refusal(few.opened(), of_classes(1, 3)), Contains("3 records are too few"));
  const LabelledFile packed(marked_tokens({1, 2, 3, 4, 5}, 2, 400, {3, 1, 1, 1, 1}, 5));
  CHECK_THAT(refusal(packed.opened(), of_classes(4, 3)),
             Contains("no records with labels") && Contains("--length N"));
}

TEST_CASE("marks that are not those of a record are refused when it is read") {
  for (const std::size_t wrong : {std::size_t{0}, std::size_t{4}}) {  // of record 1, which has two
    Records records = some_records(16);
    for (std::size_t record = 0; record < 16; ++record)
      records.marks[record * kWindow + wrong] = wrong == 0 ? 0 : kFirst;
    const LabelledFile made(labelled_file(records));
    Sampler sampler = *Sampler::make(&made.opened(), of_classes(12, 3));
    const auto batch = sampler.train_batch(0);
    REQUIRE_FALSE(batch.ok());
    CHECK_THAT(batch.error().message(), Contains("marks of record"));
  }
}

}  // namespace
}  // namespace sluice::data
