// Runs that learn a token file: the same numbers as from the text, whoever wrote the file; what
// they are refused for; and resumes of them.

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "core/data/token_file.h"
#include "tests/core/data/foreign_tokens.h"
#include "tests/core/train/small_run.h"
#include "tests/core/train/stderr_text.h"

using namespace sluice;

namespace {

using Catch::Contains;
using data::llmc_tokens;
using data::payload_of;
using data::sluice_tokens;

std::vector<std::uint32_t> tokens_of_text(const SmallRun& files) {
  const std::string text = data::read_file(files.folder.file("text.txt"));
  std::vector<std::uint32_t> tokens;
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

std::string written(const SmallRun& files, const std::string& name, const std::string& bytes) {
  data::write_file(files.folder.file(name), bytes);
  return "text=" + files.folder.file(name);
}

void give_vocabulary(const SmallRun& files, int vocabulary) {
  write_text(files.folder.file("model.toml"),
             fmt::format("name = \"small\"\nlayers = 2\nhidden = 16\nheads = 2\n"
                         "sequence = 16\nvocabulary = {}\n",
                         vocabulary));
}

Trained trained(const SmallRun& files, const std::vector<std::string>& settings,
                session::StartFrom start = session::StartFrom::new_state) {
  const auto run = train_small(files, settings, start);
  INFO(message_of(run));
  REQUIRE(run.ok());
  return *run;
}

Error refused(const SmallRun& files, const std::vector<std::string>& settings,
              session::StartFrom start = session::StartFrom::new_state) {
  const auto run = train_small(files, settings, start);
  REQUIRE_FALSE(run.ok());
  return run.error();
}

// The run of `files`, opened alone: what it says of the text that it is to write.
std::string why_no_sample(const SmallRun& files, const std::vector<std::string>& settings) {
  const auto config = files.config(settings);
  REQUIRE(config.ok());
  const auto shape = model::load_model_shape(config->files.model);
  const auto text =
      train::TrainingText::look_at(*config, *shape, session::StartFrom::new_state, {});
  if (!text.ok()) return text.error().message();
  return text->why_no_sample();
}

}  // namespace

TEST_CASE("the tokens of a text give the numbers of the text, in each format") {
  const Trained bytes = trained(SmallRun(), {"validation_every=2"});
  for (const std::string name :
       {"own1.tok", "own2.tok", "own4.tok", "gpt2.bin", "llama3.bin", "nano.bin", "nano.dat"}) {
    INFO(name);
    const SmallRun files;
    const auto tokens = tokens_of_text(files);
    const std::string file =
        name.starts_with("own")
            ? sluice_tokens(tokens, static_cast<std::uint32_t>(name[3] - '0'), 256)
        : name == "gpt2.bin"   ? llmc_tokens(tokens, 2)
        : name == "llama3.bin" ? llmc_tokens(tokens, 4)
                               : payload_of(tokens, 2);
    std::vector<std::string> settings = {"validation_every=2", written(files, name, file)};
    if (name == "nano.dat") settings.push_back("text_format=nanogpt");
    const Trained run = trained(files, settings);
    CHECK(run.losses == bytes.losses);
    CHECK(run.digest == bytes.digest);
    CHECK_FALSE(std::filesystem::exists(files.folder.file("text.tokens")));  // no copy
  }
}

TEST_CASE("any vocabulary above the largest token will do, and no other") {
  const SmallRun files;
  std::vector<std::uint32_t> tokens;
  for (std::uint32_t i = 0; i < 4000; ++i) tokens.push_back(i * 7 % 1000);
  const std::string text = written(files, "t.bin", payload_of(tokens, 2));
  give_vocabulary(files, 999);
  const Error error = refused(files, {text});
  CHECK(error.code() == ErrorCode::config);
  CHECK_THAT(error.message(), Contains("t.bin: token ") && Contains(", at offset ") &&
                                  Contains("the model's vocabulary is 999"));
  give_vocabulary(files, 1000);
  trained(files, {text});
  const SmallRun few;
  give_vocabulary(few, 30);
  trained(few, {written(few, "t.bin", payload_of(std::vector<std::uint32_t>(3000, 29), 2))});
  CHECK_THAT(refused(few, {}).message(), Contains("knows 30 different tokens; a text has 256"));
}

TEST_CASE("a run of tokens resumes to the bit") {
  const auto text_of_run = [](const SmallRun& files) {
    give_vocabulary(files, 600);
    std::vector<std::uint32_t> tokens;
    for (std::uint32_t i = 0; i < 5000; ++i) tokens.push_back(i * i % 599);
    return written(files, "t.bin", llmc_tokens(tokens, 2));
  };
  const SmallRun whole;
  const Trained at_once = trained(whole, {"steps=6", text_of_run(whole)});
  const SmallRun parts;
  const std::string text = text_of_run(parts);
  trained(parts, {"steps=3", "schedule_steps=6", text});
  const Trained rest = trained(parts, {"steps=6", text}, session::StartFrom::last_commit);
  CHECK(rest.digest == at_once.digest);
  CHECK(rest.losses == std::vector(at_once.losses.begin() + 3, at_once.losses.end()));
}

TEST_CASE("a resume with other tokens, or with the same file read otherwise, is refused") {
  const SmallRun files;
  std::vector<std::uint32_t> tokens = tokens_of_text(files);
  const std::string text = written(files, "t.bin", payload_of(tokens, 2));
  trained(files, {text, "steps=2"});
  const auto resume_error = [&](std::vector<std::string> settings) {
    settings.push_back(text);
    return refused(files, settings, session::StartFrom::last_commit).message();
  };
  CHECK_THAT(resume_error({"text_format=bytes"}),
             Contains("one has bytes, the other one tokens") && Contains("text_format"));
  tokens[1234] += 1;
  data::write_file(files.folder.file("t.bin"), payload_of(tokens, 2));
  CHECK_THAT(resume_error({}), Contains("it is another text") && Contains("tokens of nanoGPT"));
  data::write_file(files.folder.file("t.bin"), llmc_tokens(tokens, 2));
  CHECK_THAT(resume_error({}), Contains("it is another text") && Contains("tokens of llm.c"));
}

TEST_CASE("a token of no vocabulary that comes after the start ends the run, and is not learnt") {
  const SmallRun files;
  const auto tokens = tokens_of_text(files);
  const std::string text = written(files, "t.bin", payload_of(tokens, 2));
  trained(files, {text, "steps=2"});
  // Under the run's feet: it looks at a file of 8 KB as a whole, so the change comes after that.
  const auto config = files.config({text, "steps=6"});
  train::TrainingRun::Request request;
  const model::ModelFactory factory = arithmetic_factory();
  request.config = &*config;
  request.factory = &factory;
  request.start = session::StartFrom::last_commit;
  auto run = train::TrainingRun::open(request);
  REQUIRE(run.ok());
  REQUIRE((*run)->prepare(request.start).ok());
  data::write_file(files.folder.file("t.bin"),
                   payload_of(std::vector<std::uint32_t>(4000, 999), 2));
  const auto report = train::train(**run, {});
  REQUIRE_FALSE(report.ok());
  CHECK_THAT(report.error().message(),
             Contains("t.bin: token ") && Contains("is 999, and the model's vocabulary is 256"));
}

TEST_CASE("what the model writes needs the bytes of the tokens, and says so") {
  const SmallRun files;
  give_vocabulary(files, 300);
  const std::string text =
      written(files, "t.bin", payload_of(std::vector<std::uint32_t>(3000, 1), 2));
  const std::vector<std::string> settings = {text, "sample_tokens=5", "sample_prompt=ab"};
  CHECK_THAT(why_no_sample(files, settings), Contains("t.bin has tokens, and there is no ") &&
                                                 Contains("t.vocab that says their bytes"));
  data::write_file(files.folder.file("t.vocab"), data::vocabulary_file({"a", "b"}));
  CHECK(why_no_sample(files, settings) == "");
  CHECK_THAT(why_no_sample(files, {text, "sample_tokens=5", "sample_prompt=abc"}),
             Contains("no token stands for the byte 2 of 'abc'"));
  data::write_file(files.folder.file("t.vocab"), "SLCVOCAB");
  CHECK_THAT(why_no_sample(files, settings), Contains("t.vocab: 8 bytes are too few"));
  CHECK(why_no_sample(files, {text, "sample_tokens=0"}) == "");  // nobody asks for it
  CHECK_THAT(why_no_sample(files, {"sample_tokens=5"}), Contains("knows 300 tokens"));
}
