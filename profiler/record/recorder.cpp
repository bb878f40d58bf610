#include "profiler/record/recorder.h"

#include <algorithm>
#include <utility>

#include "profiler/record/scoped_span.h"

namespace sluice::record {

void Recorder::set_level(Level level, std::string_view who) {
  const std::lock_guard lock(mutex_);
  const Level before = level_.load(std::memory_order_relaxed);
  if (level == before) return;
  level_.store(level, std::memory_order_relaxed);
  level_changes_.push_back({span_now_ns(), before, level, std::string(who)});
}

std::vector<LevelChange> Recorder::take_level_changes() {
  const std::lock_guard lock(mutex_);
  return std::exchange(level_changes_, {});
}

void Recorder::note(std::string text) {
  const std::lock_guard lock(mutex_);
  notes_.push_back({span_now_ns(), std::move(text)});
}

std::vector<Note> Recorder::take_notes() {
  const std::lock_guard lock(mutex_);
  return std::exchange(notes_, {});
}

NameId Recorder::intern(std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (const auto known = name_ids_.find(name); known != name_ids_.end()) return known->second;
  const NameId id{static_cast<std::uint32_t>(names_.size())};
  name_ids_.emplace(names_.emplace_back(name), id);
  return id;
}

TrackId Recorder::add_track(TrackId parent, std::string_view kind, std::string_view name,
                            std::span<const TrackLink> links) {
  const std::lock_guard lock(mutex_);
  // Tens of tracks, each added once: a search is enough.
  const auto known = std::find_if(tracks_.begin(), tracks_.end(), [&](const Track& track) {
    return track.parent == parent && track.kind == kind && track.name == name &&
           std::ranges::equal(track.links, links);
  });
  if (known != tracks_.end()) return known->id;
  const TrackId id{static_cast<std::uint32_t>(tracks_.size())};
  tracks_.push_back(
      {id, parent, std::string(kind), std::string(name), {links.begin(), links.end()}});
  return id;
}

Ring& Recorder::add_ring(std::size_t capacity) {
  const std::uint32_t index = ring_count_.fetch_add(1, std::memory_order_relaxed);
  auto ring = std::make_unique<Ring>(capacity, index);  // megabytes: not under the lock
  const std::lock_guard lock(mutex_);
  return *rings_.emplace_back(std::move(ring));
}

std::vector<std::string> Recorder::names_since(std::size_t from) const {
  const std::lock_guard lock(mutex_);
  if (from >= names_.size()) return {};
  return {names_.begin() + static_cast<std::ptrdiff_t>(from), names_.end()};
}

std::vector<Track> Recorder::tracks_since(std::size_t from) const {
  const std::lock_guard lock(mutex_);
  if (from >= tracks_.size()) return {};
  return {tracks_.begin() + static_cast<std::ptrdiff_t>(from), tracks_.end()};
}

std::vector<Ring*> Recorder::rings() const {
  const std::lock_guard lock(mutex_);
  std::vector<Ring*> rings;
  rings.reserve(rings_.size());
  for (const auto& ring : rings_) rings.push_back(ring.get());
  return rings;
}

}  // namespace sluice::record
