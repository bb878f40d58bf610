#pragma once
// The rows of the table (core/model/architecture.h), and the keys that several of them have.
//
// Thread contract: constants.

#include <array>

#include "core/model/architecture.h"

namespace sluice::model {

extern const Architecture kGpt2;
extern const Architecture kBert;
extern const Architecture kBloom;
extern const Architecture kVit;
extern const Architecture kLlama;
extern const Architecture kT5;

inline constexpr NumberKey kLayersKey = {"layers", kPlace<&ModelShape::layers>, 100'000};
inline constexpr NumberKey kHiddenKey = {"hidden", kPlace<&ModelShape::hidden>, 1'000'000};
inline constexpr NumberKey kHeadsKey = {"heads", kPlace<&ModelShape::heads>, 1'000'000};
inline constexpr NumberKey kSequenceKey = {"sequence", kPlace<&ModelShape::sequence>, 100'000'000};
inline constexpr NumberKey kVocabularyKey = {"vocabulary", kPlace<&ModelShape::vocabulary>,
                                             100'000'000};

// Dropout, by the names of a model file; a bert's embedding drops as much as its rows, and all that
// a t5 drops has one share.
inline constexpr double kMostDropped = 0.999;
inline constexpr RealKey kDropoutKey = {"dropout", kPlace<&ModelShape::dropout, &DropShares::rows>,
                                        0, kMostDropped, 0};
inline constexpr RealKey kAttentionDropoutKey = {
    "attention_dropout", kPlace<&ModelShape::dropout, &DropShares::attention>, 0, kMostDropped, 0};
inline constexpr RealKey kEmbeddingDropoutKey = {
    "embedding_dropout", kPlace<&ModelShape::dropout, &DropShares::embedding>, 0, kMostDropped, 0};

// All that a plain family of texts says of itself.
inline constexpr std::array kTextKeys = {kLayersKey, kHiddenKey, kHeadsKey, kSequenceKey,
                                         kVocabularyKey};

}  // namespace sluice::model
