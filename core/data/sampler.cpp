#include "core/data/sampler.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/check.h"
#include "base/split_mix.h"
#include "core/data/permutation.h"
#include "core/data/token_file.h"

namespace sluice::data {
namespace {

// Independent random functions of (seed, epoch); the last three of (seed, number of the window).
constexpr std::uint64_t kOrderStream = 1;
constexpr std::uint64_t kOffsetStream = 2;
constexpr std::uint64_t kHiddenStream = 3;
constexpr std::uint64_t kHiddenInValidationStream = 4;
constexpr std::uint64_t kDropStream = 5;

std::uint64_t epoch_key(std::uint64_t seed, std::uint64_t stream, std::uint64_t epoch) {
  return split_mix(mix64(seed) ^ stream, epoch);
}

Status check_options(const SamplerOptions& options) {
  if (options.batch < 1 || options.sequence < 1) {
    return make_error(ErrorCode::config,
                      "batch = {} and sequence = {} were asked for; both must be at least 1",
                      options.batch, options.sequence);
  }
  if (!(options.validation_fraction > 0 && options.validation_fraction < 1)) {
    return make_error(ErrorCode::config,
                      "validation_fraction = {} was asked for; it must lie between 0 and 1, for "
                      "instance 0.05",
                      options.validation_fraction);
  }
  return ok_status();
}

std::int64_t held_out_tokens(std::int64_t token_count, double fraction) {
  return static_cast<std::int64_t>(std::floor(static_cast<double>(token_count) * fraction));
}

// The fewest tokens of which both parts hold one window; nothing where that many cannot be.
std::optional<std::int64_t> fewest_tokens(const SamplerOptions& options) {
  constexpr double kMostTokens = 1e15;  // a petabyte of text; far below 2^53, so steps of 1 count
  const double held_out_share = options.validation_fraction;
  const std::int64_t window = options.window_tokens();
  const double least = std::max(static_cast<double>(window + 1) / held_out_share,
                                static_cast<double>(window) / (1 - held_out_share));
  if (!(least < kMostTokens)) return std::nullopt;
  // At most one or two below what is needed; rounding decides which.
  auto count = static_cast<std::int64_t>(least);
  const auto enough = [&](std::int64_t tokens) {
    const std::int64_t held_out = held_out_tokens(tokens, options.validation_fraction);
    return held_out > window && tokens - held_out > window;
  };
  while (!enough(count)) ++count;
  return count;
}

Error no_labels(const std::string& path) {
  return make_error(ErrorCode::config,
                    "{}: has no records with labels, and the model classifies; make them into "
                    "tokens with scripts/tokenize --length N, or take a model that answers tokens",
                    path);
}

// At least one of them, where the check has passed.
std::int64_t held_out_windows(const TokenFile& tokens, double fraction) {
  return held_out_tokens(tokens.token_count() / tokens.window_tokens(), fraction);
}

// Labels for whom they are, and as many as there are classes.
Status check_labels(const TokenFile& tokens, const SamplerOptions& options) {
  const bool has_labels = tokens.label_count() > 0;
  if (options.classes == 0 && !has_labels) return ok_status();
  if (options.classes == 0) {
    return make_error(ErrorCode::config,
                      "{}: has records with labels, and the model answers tokens; take a model "
                      "that classifies, or make the file without --length",
                      tokens.path());
  }
  if (!has_labels) return no_labels(tokens.path());
  if (tokens.label_count() <= options.classes) return ok_status();
  return make_error(ErrorCode::config,
                    "{}: has labels up to {}, and the model has {} classes, from 0 on; take a "
                    "model with as many, or make the file again",
                    tokens.path(), tokens.label_count() - 1, options.classes);
}

// The lengths are the same where records with labels each have a window.
Status check_packed(const TokenFile& tokens, const SamplerOptions& options) {
  const std::int64_t length = tokens.window_tokens();
  if (options.spans) {
    return make_error(ErrorCode::config,
                      "{}: is packed into windows of {} tokens, and spans are taken out of windows "
                      "of {}; make it without --pack",
                      tokens.path(), length, options.window_tokens());
  }
  if (options.sequence != length && options.classes > 0) {
    return make_error(ErrorCode::config,
                      "{}: has records of up to {} tokens, and sequence = {} was asked for; set "
                      "sequence = {}, or make it again (scripts/tokenize --length {})",
                      tokens.path(), length, options.sequence, length, options.sequence);
  }
  if (options.sequence != length) {
    return make_error(ErrorCode::config,
                      "{}: is packed into windows of {} tokens, and sequence = {} was asked for; "
                      "set sequence = {}, or pack it again (scripts/tokenize --pack {})",
                      tokens.path(), length, options.sequence, length, options.sequence);
  }
  const std::int64_t windows = tokens.token_count() / length;
  const std::int64_t held_out = held_out_windows(tokens, options.validation_fraction);
  if (held_out >= 1 && held_out < windows) return ok_status();
  return make_error(ErrorCode::config,
                    "{}: {} {} are too few for one to train and one to validate with "
                    "{:g} of them held out; there must be at least {:.0f}",
                    tokens.path(), windows, options.classes > 0 ? "records" : "packed windows",
                    options.validation_fraction, std::ceil(1 / options.validation_fraction));
}

}  // namespace

Status Sampler::check(const TokenFile& tokens, const SamplerOptions& options) {
  RETURN_IF_ERROR(check_options(options));
  RETURN_IF_ERROR(check_labels(tokens, options));
  if (tokens.window_tokens() > 0) return check_packed(tokens, options);
  return check(tokens.token_count(), options, tokens.path());
}

Status Sampler::check(std::int64_t token_count, const SamplerOptions& options,
                      const std::string& path) {
  RETURN_IF_ERROR(check_options(options));
  if (options.classes > 0) return no_labels(path);
  const std::int64_t held_out = held_out_tokens(token_count, options.validation_fraction);
  const std::int64_t window = options.window_tokens();
  if (held_out > window && token_count - held_out > window) return ok_status();
  const std::optional<std::int64_t> fewest = fewest_tokens(options);
  return make_error(ErrorCode::config,
                    "{}: {} tokens are too few for one training and one validation window of {} "
                    "tokens with {:g} of the text held out; {}",
                    path, token_count, window + 1, options.validation_fraction,
                    fewest ? fmt::format("the text must have at least {} tokens, or the sequence "
                                         "must be shorter",
                                         *fewest)
                           : "no text is long enough for that: set a validation_fraction nearer "
                             "to its default, 0.05");
}

Result<Sampler> Sampler::make(const TokenFile* tokens, const SamplerOptions& options) {
  CHECK(tokens != nullptr);
  RETURN_IF_ERROR(check(*tokens, options));
  Sampler sampler(tokens, options);
  if (tokens->window_tokens() > 0) {
    sampler.split_windows();
  } else {
    const std::int64_t count = tokens->token_count();
    const std::int64_t held_out = held_out_tokens(count, options.validation_fraction);
    sampler.split(count - held_out, held_out);
  }
  return sampler;
}

Sampler::Sampler(const TokenFile* tokens, const SamplerOptions& options)
    : tokens_(tokens),
      options_(options),
      window_tokens_(options.window_tokens()),
      spans_{.targets = options.sequence},
      read_tokens_(static_cast<std::size_t>(window_tokens_) +
                   (tokens->window_tokens() > 0 ? 0 : 1)) {
  window_.resize(window_tokens_ + 1);
  marks_.resize(window_tokens_ + 1);
  room_.inputs.resize(options.batch * options.sequence);
  if (is_apart() || is_of_records()) room_.document_begins.resize(options.batch * options.sequence);
  if (is_of_records()) {
    spans_.targets = 1;
    room_.segments.resize(options.batch * options.sequence);
  }
  if (options.spans) {
    spans_ = model::span_lengths(options.spans->rule, options.sequence);
    room_.decoder_inputs.resize(options.batch * spans_.targets);
  }
  room_.targets.resize(options.batch * target_columns());
}

void Sampler::split_windows() {
  const std::int64_t windows = tokens_->token_count() / window_tokens_;
  validation_window_count_ = held_out_windows(*tokens_, options_.validation_fraction);
  windows_per_epoch_ = windows - validation_window_count_;
  validation_first_ = windows_per_epoch_ * window_tokens_;
}

void Sampler::split(std::int64_t train_tokens, std::int64_t validation_tokens) {
  const std::int64_t sequence = window_tokens_;
  // Every epoch has the same number of windows, whatever its offset: as many as fit behind the
  // largest one. A text too short for that gives its one window less room to move.
  windows_per_epoch_ = std::max<std::int64_t>(1, (train_tokens - sequence) / sequence);
  largest_offset_ = std::min(sequence - 1, train_tokens - 1 - windows_per_epoch_ * sequence);
  validation_first_ = train_tokens;
  validation_window_count_ = (validation_tokens - 1) / sequence;
}

std::int64_t Sampler::epoch_offset(std::uint64_t epoch) const {
  const std::uint64_t random = epoch_key(options_.seed, kOffsetStream, epoch);
  return static_cast<std::int64_t>(random % static_cast<std::uint64_t>(largest_offset_ + 1));
}

Sampler::Window Sampler::train_window(std::uint64_t number) const {
  const auto windows = static_cast<std::uint64_t>(windows_per_epoch_);
  const std::uint64_t epoch = number / windows;
  const Permutation order(epoch_key(options_.seed, kOrderStream, epoch), windows);
  const auto window = static_cast<std::int64_t>(order(number % windows));
  return {epoch_offset(epoch) + window * window_tokens_,
          epoch_key(options_.seed, kHiddenStream, number)};
}

// The same ones are hidden each time, so that losses compare.
Sampler::Window Sampler::validation_window(std::int64_t number) const {
  return {validation_first_ + number * window_tokens_,
          epoch_key(options_.seed, kHiddenInValidationStream, static_cast<std::uint64_t>(number))};
}

Result<model::TokenBatch> Sampler::train_batch(std::uint64_t position) {
  room_.drop_keys.clear();
  for (std::int64_t row = 0; row < options_.batch; ++row) {
    const std::uint64_t number = position + static_cast<std::uint64_t>(row);
    RETURN_IF_ERROR(copy_window(train_window(number), row));
    const std::uint64_t key = epoch_key(options_.seed, kDropStream, number);
    room_.drop_keys.push_back(static_cast<std::uint32_t>(key >> 32));
  }
  model::TokenBatch batch = filled_batch(options_.batch);
  batch.drop_keys = room_.drop_keys;
  return batch;
}

Result<double> Sampler::train_divisor(std::uint64_t position, std::int64_t batches) {
  return mean_targets(batches, options_.batch, [&](std::int64_t window) {
    return train_window(position + static_cast<std::uint64_t>(window));
  });
}

std::int64_t Sampler::validation_batch_count() const {
  return std::max<std::int64_t>(1, validation_window_count_ / options_.batch);
}

std::int64_t Sampler::validation_rows() const {
  return std::min(options_.batch, validation_window_count_);
}

Result<model::TokenBatch> Sampler::validation_batch(std::int64_t index) {
  CHECK_GE(index, 0);
  CHECK_LT(index, validation_batch_count());
  const std::int64_t rows = validation_rows();
  for (std::int64_t row = 0; row < rows; ++row) {
    RETURN_IF_ERROR(copy_window(validation_window(index * options_.batch + row), row));
  }
  return filled_batch(rows);
}

Result<double> Sampler::validation_divisor(std::int64_t batches) {
  CHECK_LE(batches, validation_batch_count());
  return mean_targets(batches, validation_rows(),
                      [&](std::int64_t window) { return validation_window(window); });
}

template <typename WindowOf>
Result<double> Sampler::mean_targets(std::int64_t batches, std::int64_t rows, WindowOf window_of) {
  if (has_all_targets()) return static_cast<double>(rows * target_columns());
  std::int64_t targets = 0;
  for (std::int64_t i = 0; i < batches * rows; ++i) {
    ASSIGN_OR_RETURN(const std::int64_t count, count_targets(window_of(i)));
    targets += count;
  }
  return static_cast<double>(targets) / static_cast<double>(batches);
}

bool Sampler::is_apart() const { return options_.documents == model::Documents::apart; }

bool Sampler::has_all_targets() const {
  return is_of_records() || (!options_.hidden && !tokens_->has_marks());
}

Status Sampler::read_marks(const Window& window) {
  return tokens_->read_marks(window.first_token, std::span(marks_).first(read_tokens_));
}

// Column i is answered by token i + 1 of the window; a hidden token by itself.
bool Sampler::is_target(const Window& window, std::int64_t column) const {
  const std::int64_t answer = options_.hidden ? column : column + 1;
  const std::uint8_t mark = marks_[static_cast<std::size_t>(answer)];
  if ((mark & kLearnt) == 0) return false;
  if (is_apart() && answer != column && (mark & kDocumentBegins) != 0) return false;
  return !options_.hidden || options_.hidden->chooses(window.chance, column);
}

Result<std::int64_t> Sampler::count_targets(const Window& window) {
  if (options_.spans) {
    RETURN_IF_ERROR(copy_spans(window, 0));
    return std::ranges::count_if(std::span(room_.targets).first(target_columns()),
                                 [](std::int32_t target) { return target >= 0; });
  }
  RETURN_IF_ERROR(read_marks(window));
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < options_.sequence; ++i) count += is_target(window, i) ? 1 : 0;
  return count;
}

Status Sampler::copy_spans(const Window& window, std::int64_t row) {
  RETURN_IF_ERROR(tokens_->read(window.first_token, window_));
  RETURN_IF_ERROR(read_marks(window));
  const auto row_of = [row](std::vector<std::int32_t>& all, std::int64_t columns) {
    return std::span(all).subspan(static_cast<std::size_t>(row * columns),
                                  static_cast<std::size_t>(columns));
  };
  options_.spans->corrupt(window.chance, spans_, window_, marks_,
                          {.source = row_of(room_.inputs, spans_.source()),
                           .decoder_inputs = row_of(room_.decoder_inputs, target_columns()),
                           .targets = row_of(room_.targets, target_columns())});
  return ok_status();
}

Status Sampler::copy_record(const Window& window, std::int64_t row) {
  const std::span tokens = std::span(window_).first(read_tokens_);
  RETURN_IF_ERROR(tokens_->read(window.first_token, tokens));
  RETURN_IF_ERROR(read_marks(window));
  const std::int64_t number = window.first_token / window_tokens_;
  ASSIGN_OR_RETURN(room_.targets[static_cast<std::size_t>(row)], tokens_->read_label(number));
  const auto first = static_cast<std::ptrdiff_t>(row * options_.sequence);
  std::ranges::copy(tokens, room_.inputs.begin() + first);
  const auto is_of_record = [](std::uint8_t mark) { return (mark & kOfRecord) != 0; };
  const auto marks = std::span(marks_).first(read_tokens_);
  const auto end = std::ranges::find_if_not(marks, is_of_record);
  if (end == marks.begin() || std::any_of(end, marks.end(), is_of_record)) {
    return make_error(ErrorCode::corrupt,
                      "{}: the marks of record {} are not those of a record, which begins its "
                      "window and is whole; make the file again",
                      tokens_->path(), number);
  }
  const auto length = end - marks.begin();
  for (std::ptrdiff_t i = 0; i < std::ssize(marks); ++i) {
    const auto column = static_cast<std::size_t>(first + i);
    room_.document_begins[column] = static_cast<std::int32_t>(i < length ? 0 : length);
    room_.segments[column] = (marks[static_cast<std::size_t>(i)] & kOfSecondText) != 0 ? 1 : 0;
  }
  return ok_status();
}

Status Sampler::copy_window(const Window& window, std::int64_t row) {
  if (is_of_records()) return copy_record(window, row);
  if (options_.spans) return copy_spans(window, row);
  RETURN_IF_ERROR(tokens_->read(window.first_token, std::span(window_).first(read_tokens_)));
  const std::span inputs =
      std::span(room_.inputs).subspan(row * options_.sequence, options_.sequence);
  const std::span targets =
      std::span(room_.targets).subspan(row * options_.sequence, options_.sequence);
  std::copy(window_.begin(), window_.end() - 1, inputs.begin());
  std::copy(options_.hidden ? window_.begin() : window_.begin() + 1,
            options_.hidden ? window_.end() - 1 : window_.end(), targets.begin());
  if (has_all_targets()) return ok_status();
  RETURN_IF_ERROR(read_marks(window));
  if (is_apart()) copy_document_begins(row);
  for (std::int64_t i = 0; i < options_.sequence; ++i) {
    const auto column = static_cast<std::size_t>(i);
    if (!is_target(window, i)) {
      targets[column] = model::kIgnoredTarget;
    } else if (options_.hidden) {
      inputs[column] = options_.hidden->shown(window.chance, i, targets[column]);
    }
  }
  return ok_status();
}

// A document that has begun before the window begins with it.
void Sampler::copy_document_begins(std::int64_t row) {
  std::int32_t begin = 0;
  for (std::int64_t i = 0; i < options_.sequence; ++i) {
    if ((marks_[static_cast<std::size_t>(i)] & kDocumentBegins) != 0)
      begin = static_cast<std::int32_t>(i);
    room_.document_begins[static_cast<std::size_t>(row * options_.sequence + i)] = begin;
  }
}

model::TokenBatch Sampler::filled_batch(std::int64_t rows) const {
  model::TokenBatch batch{.batch = rows,
                          .sequence = options_.sequence,
                          .inputs = std::span(room_.inputs).first(rows * options_.sequence),
                          .targets = std::span(room_.targets).first(rows * target_columns())};
  if (is_of_records()) {
    batch.target_sequence = 1;
    batch.segments = std::span(room_.segments).first(rows * options_.sequence);
  }
  if (is_apart() || is_of_records()) {
    batch.document_begins = std::span(room_.document_begins).first(rows * options_.sequence);
  }
  if (!options_.spans) return batch;
  batch.sequence = spans_.source();
  batch.inputs = batch.inputs.first(rows * batch.sequence);
  batch.target_sequence = target_columns();
  batch.decoder_inputs = std::span(room_.decoder_inputs).first(rows * target_columns());
  return batch;
}

}  // namespace sluice::data
