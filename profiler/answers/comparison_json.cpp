#include "profiler/answers/comparison_json.h"

#include "profiler/analyze/comparison_words.h"

namespace sluice::answers {

Json to_json(const analyze::Comparability& comparability) {
  Json mismatches = Json::array();
  for (const analyze::Mismatch& mismatch : comparability.mismatches) {
    mismatches.push_back({{"what", mismatch.what},
                          {"a", mismatch.a},
                          {"b", mismatch.b},
                          {"meaning", mismatch.meaning}});
  }
  return {{"comparable", comparability.is_comparable()},
          {"mismatches", std::move(mismatches)},
          {"same", comparability.same},
          {"unknown", comparability.unknown},
          {"cautions", comparability.cautions}};
}

Json to_json(const analyze::ComparedFigure& figure) {
  return {{"a", figure.a},
          {"b", figure.b},
          {"change", figure.change()},
          {"noise", figure.noise},
          {"is_more_than_noise", figure.is_more_than_noise()}};
}

Json differences_json(std::span<const analyze::SettingDifference> differences) {
  Json json = Json::object();
  for (const analyze::SettingDifference& difference : differences) {
    json[difference.key] = {{"a", difference.a}, {"b", difference.b}};
  }
  return json;
}

Json to_json(const analyze::Comparison& comparison) {
  Json json;
  json["comparability"] = to_json(comparison.comparability);
  json["verdict"] = analyze::words_of(comparison).headline;
  json["steps"] = {{"a", comparison.steps_a}, {"b", comparison.steps_b}};
  for (const analyze::ComparedFigure& figure : comparison.figures) {
    json["figures"][figure.key] = to_json(figure);
  }
  json["differences"] = differences_json(comparison.differences);
  json["answers"] = answers_json(comparison.answers);
  return json;
}

}  // namespace sluice::answers
