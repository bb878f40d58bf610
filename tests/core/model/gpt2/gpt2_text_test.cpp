// A model that learns, and text sampled from it.

#include <algorithm>
#include <catch2/catch.hpp>

#include "base/float16.h"
#include "tests/core/model/gpt2/batches.h"

namespace sluice::model {
namespace {

using Catch::Matchers::Contains;

const ModelShape kBytes{"bytes", 2, 32, 2, 16, 256};

// Plain gradient descent with a full-precision copy, on one text that repeats itself.
struct Learner {
  Learner()
      : run(kBytes, {.batch = 4, .sequence = 16, .thread_count = 1}),
        master(run.parameters.size()) {
    fill_initial(run.model->layout(), 1, 0, master);
    const std::string alphabet = "sluice ";
    for (std::size_t i = 0; i < batch.inputs.size(); ++i) {
      batch.inputs[i] = alphabet[i % alphabet.size()];
      batch.targets[i] = alphabet[(i + 1) % alphabet.size()];
    }
  }

  double step(double lr) {
    const std::vector<float> gradient = run.step_16bit(batch, 1);
    for (std::size_t i = 0; i < master.size(); ++i) {
      master[i] -= static_cast<float>(lr) * gradient[i];
      run.parameters[i] = bf16_from_float(master[i]);
    }
    return run.model->loss(0);
  }

  Gpt2Run run;
  std::vector<float> master;
  Batch batch{4, 16, 256, 1};
};

TEST_CASE("a model learns a text by heart and says it again") {
  Learner learner;
  // At 0.5 the loss jumps about for a hundred steps, on each processor in another way.
  constexpr double kLr = 0.25;
  const double first = learner.step(kLr);
  for (int i = 0; i < 200; ++i) learner.step(kLr);
  const double last = learner.step(kLr);
  CHECK(first > 5);
  CHECK(last < 0.3);

  // Longer than the context, so that the window slides.
  const Result<std::string> text =
      learner.run.text({.prompt = "sluice sl", .token_count = 40, .temperature = 0});
  REQUIRE(text.ok());
  CHECK(*text == "sluice sluice sluice sluice sluice sluice sluice ");
}

TEST_CASE("a sample is a function of its seed") {
  Gpt2Run run(kBytes, {.batch = 1, .sequence = 16});
  const auto sample = [&](std::uint64_t seed, double temperature) {
    const Result<std::string> text =
        run.text({.prompt = "In ", .token_count = 30, .temperature = temperature, .seed = seed});
    REQUIRE(text.ok());
    CHECK(text->size() == 33);
    CHECK(text->starts_with("In "));
    return *text;
  };
  CHECK(sample(1, 1) == sample(1, 1));
  CHECK(sample(1, 1) != sample(2, 1));
  CHECK(sample(1, 0) == sample(2, 0));
  CHECK(sample(1, 0.001) == sample(1, 0));
}

TEST_CASE("an empty prompt and a prompt longer than the context are fine") {
  Gpt2Run run(kBytes, {.batch = 1, .sequence = 16});
  CHECK(run.text({.token_count = 5})->size() == 5);
  CHECK(run.text({.prompt = std::string(40, 'x'), .token_count = 5})->size() == 45);
  CHECK(run.text({.prompt = "x", .token_count = 0}).value() == "x");
}

TEST_CASE("tokens that are no bytes are written as the texts that they stand for") {
  const Gpt2Run words(ModelShape{"words", 1, 16, 2, 8, 300}, {.batch = 1, .sequence = 8});
  std::vector<std::string> texts;
  for (int token = 0; token < 300; ++token) texts.push_back("<" + std::to_string(token) + ">");
  const auto written = [&](std::int64_t written_tokens) {
    const Result<std::string> text =
        words.text({.prompt = "<299><7>",
                    .prompt_tokens = {static_cast<std::int32_t>(written_tokens - 1), 7},
                    .written_tokens = written_tokens,
                    .text_of = [&](std::int32_t token) { return std::string_view(texts[token]); },
                    .token_count = 40,
                    .temperature = 5});
    REQUIRE(text.ok());
    CHECK(text->starts_with("<299><7><"));
    CHECK(std::ranges::count(*text, '<') == 42);
    return *text;
  };
  CHECK(written(300).size() > written(10).size());  // none of them has two digits
}

TEST_CASE("what cannot be sampled is an error") {
  const Gpt2Run words(ModelShape{"words", 1, 16, 2, 8, 300}, {.batch = 1, .sequence = 8});
  CHECK_FALSE(words.text({.written_tokens = 301}).ok());
  CHECK_FALSE(words.text({.prompt_tokens = {7}, .written_tokens = 7}).ok());
  const Gpt2Run few(ModelShape{"few", 1, 16, 2, 8, 200}, {.batch = 1, .sequence = 8});
  CHECK_FALSE(few.text({.prompt = "x"}).ok());  // it does not know all bytes
  const Gpt2Run bytes(kBytes, {.batch = 1, .sequence = 16});
  CHECK_FALSE(bytes.text({.temperature = -1}).ok());
  CHECK_FALSE(bytes.text({.token_count = -1}).ok());
}

}  // namespace
}  // namespace sluice::model
