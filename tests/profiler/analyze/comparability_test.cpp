#include "profiler/analyze/comparability.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "profiler/analyze/comparison_words.h"
#include "profiler/analyze/settings_text.h"

namespace sluice::analyze {
namespace {

using Strings = std::vector<std::string>;

std::map<std::string, std::string> facts() {
  return {{"model_text", "name = \"m\"\nlayers = 4\n"},
          {"platform_text", "[[device]]\ncount = 2\n"},
          {"text", "out/data/kjv.txt"},
          {"batch", "8"},
          {"sequence", "128"},
          {"grad_accum_steps", "1"},
          {"optimizer", "adamw"},
          {"precision", "bf16"},
          {"machine", "Xeon, 2 processors, Linux 6.1"},
          {"method", "csd"},
          {"backend", "emulated"},
          {"clock", "emulated"},
          {"time_scale", "12"},
          {"record", "all"}};
}

Strings differing(const std::map<std::string, std::string>& a,
                  const std::map<std::string, std::string>& b) {
  Strings names;
  for (const Mismatch& mismatch : comparability_of(a, b).mismatches) names.push_back(mismatch.what);
  return names;
}

Comparison compared(std::vector<ComparedFigure> figures) {
  Comparison comparison;
  comparison.figures = std::move(figures);
  return comparison;
}

}  // namespace

TEST_CASE("what a comparison rests on is looked at where it matters") {
  CHECK(comparability_of(facts(), facts()).is_comparable());
  CHECK(comparability_of(facts(), facts()).unknown.empty());
  auto other = facts();
  SECTION("a text by another path to the same end is the same") {
    other["text"] = "/elsewhere/out/data/kjv.txt";
    CHECK(differing(facts(), other).empty());
    other["text"] = "/elsewhere/other.txt";
    CHECK(differing(facts(), other) == Strings{"text"});
  }
  SECTION("the kernel's version is no other processor") {
    other["machine"] = "Xeon, 2 processors, Linux 6.2";
    CHECK(differing(facts(), other).empty());
    other["machine"] = "Xeon, 4 processors, Linux 6.1";
    CHECK(differing(facts(), other) == Strings{"processor"});
  }
  SECTION("by the real clock the platform file charges nothing") {
    auto one = facts();
    one["clock"] = other["clock"] = "real";
    other["platform_text"] = "[[device]]\ncount = 3\n";
    other["time_scale"] = "1";
    CHECK(differing(one, other).empty());
    other["clock"] = "emulated";
    CHECK(differing(one, other) == Strings{"platform", "clock"});
  }
  SECTION("what the devices are counts where both update on them") {
    other["backend"] = "xrt";
    CHECK(differing(facts(), other) == Strings{"devices' kind"});
    other["method"] = "host";
    CHECK(differing(facts(), other).empty());
  }
  SECTION("a few of the lines in which long texts differ are shown") {
    other["model_text"] = "layers = 6\na = 1\nb = 1\nc = 1\nd = 1\n";
    const Mismatch found = comparability_of(facts(), other).mismatches.at(0);
    CHECK(found.a == "layers = 4");
    CHECK(found.b == "a = 1, b = 1, c = 1, d = 1, and 1 more");
  }
  SECTION("without the model's text its parameters are looked at") {
    other.erase("model_text");
    CHECK(comparability_of(facts(), other).unknown == Strings{"model"});
    other["parameters"] = "12";
    CHECK(differing(facts(), other) == Strings{"model"});
  }
}

TEST_CASE("settings of a TOML file: comments, spaces and names do not count") {
  const Strings settings = settings_in(
      "name = \"one\"  # of two\nlayers=4\ntext = \"a # b\"\n[[link]]\nname = \"host\"\n"
      "[[device]]\n[device.drive]\nread  =  \"1\"\n[[device]]\n[device.drive]\nread = \"2\"\n"
      "curve = [\n  [\"4 KiB\", \"5\"]\n]\n");
  const Strings wanted = {"device 1.drive: read = \"1\"",
                          "device 2.drive: [\"4 KiB\", \"5\"]",
                          "device 2.drive: ]",
                          "device 2.drive: curve = [",
                          "device 2.drive: read = \"2\"",
                          "layers = 4",
                          "link 1: name = \"host\"",
                          "text = \"a # b\""};
  CHECK(settings == wanted);
  CHECK(settings_in("").empty());
}

TEST_CASE("the sentence of a comparison says which is faster, by how much, and where") {
  const ComparedFigure step{"step_time", "s", 0.6, 0.5, 0.006};
  const ComparedFigure forward{"forward", "s", 0.1, 0.1005, 0.001};
  const ComparedFigure backward{"backward", "s", 0.2, 0.2215, 0.001};
  const ComparedFigure update{"update", "s", 0.3, 0.18, 0.001};
  const ComparisonWords words = words_of(compared({step, forward, backward, update}));
  CHECK(words.headline ==
        "B is faster: a step takes 500 ms, 16.7 % less than the 600 ms of A; noise +-1.0 %.");
  CHECK(words.where ==
        "By phases: update takes 120 ms less; backward takes 21.5 ms more; forward differs by no "
        "more than noise.");
  CHECK(words_of(compared({{"step_time", "s", 0.6, 0.603, 0.006}})).headline ==
        "No difference beyond noise: a step takes 600 ms in A and 603 ms in B (+0.5 %, noise +-1.0 "
        "%).");
  CHECK(words_of(compared({{"step_time", "s", 0.6, 0.6, 0}})).headline ==
        "A step takes 600 ms in both.");
  Comparison unlike = compared({step, update});
  unlike.comparability.mismatches = {{"batch", "8", "16", "."}, {"clock", "real", "emulated", "."}};
  CHECK(words_of(unlike).headline.starts_with("As recorded, a step takes 600 ms in A and 500 ms"));
  CHECK(words_of(unlike).where.empty());
  CHECK(incomparable_words(unlike.comparability) ==
        "A and B cannot be compared: batch and clock differ.");
}

}  // namespace sluice::analyze
