#include "core/collective/thread_ranks.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>

#include "base/check.h"
#include "base/mutex.h"
#include "base/split_mix.h"

namespace sluice::collective {
namespace {

// The exchange that a rank has under way in a group, where the others find it.
struct Posted {
  std::int64_t number = 0;  // of the group's exchanges on this rank, from 1
  bool is_open = false;     // others may take from it
  Exchange exchange;
  std::size_t reader_count = 0;      // that have not taken their part yet
  std::vector<std::int64_t> delays;  // by place of the sender: polls to go; kTaken
  std::size_t untaken_count = 0;     // senders whose part is not here yet
};
constexpr std::int64_t kTaken = -1;
constexpr std::chrono::microseconds kWait{250};

struct WorldGroup {
  std::vector<int> ranks;
  std::vector<Posted> posted;  // by place
};

// The state at a rank's last poll, so that its wait ends at once when there is more by now.
struct Seen {
  std::int64_t change_count = 0;
  bool has_delay = false;  // a part is there and comes some polls later
};

class World;

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(std::shared_ptr<World> world, int rank) : world_(std::move(world)), rank_(rank) {}
  int rank() const override { return rank_; }
  int rank_count() const override;
  int node_of(int rank) const override;
  Status add_group(GroupId group, std::span<const int> ranks) override;
  Status begin(GroupId group, const Exchange& exchange) override;
  Status poll(std::vector<Ended>& ended) override;
  void wait() override;
  void send_note(int rank, const JoinNote& note) override;
  std::optional<JoinNote> take_note() override;
  void abandon() override;
  void end_all(const Error& why) override;
  Status close() override { return ok_status(); }

 private:
  bool is_lost() const;
  std::shared_ptr<World> world_;
  const int rank_;
  std::int64_t exchange_count_ = 0;
  std::int64_t message_count_ = 0;
  Seen seen_;
};

class World final : public ThreadWorld, public std::enable_shared_from_this<World> {
 public:
  explicit World(const ThreadWorldOptions& options)
      : options_(options), notes_(static_cast<std::size_t>(options.rank_count)) {}
  std::unique_ptr<Transport> transport(int rank) override {
    return std::make_unique<ThreadTransport>(shared_from_this(), rank);
  }
  const ThreadWorldOptions& options() const { return options_; }

  void add_group(GroupId id, std::span<const int> ranks);
  void post(GroupId id, int rank, const Exchange& exchange, std::int64_t message_number);
  Status poll(int rank, std::vector<Ended>& ended, Seen& seen);
  void wait(const Seen& seen);
  void send_note(int rank, const JoinNote& note);
  std::optional<JoinNote> take_note(int rank);
  void abandon(int rank);
  void end_all(const Error& why);

 private:
  void note_change() REQUIRES(mutex_);
  bool take_parts(WorldGroup& group, std::size_t place, Seen& seen) REQUIRES(mutex_);
  static void take_part(const WorldGroup& group, std::size_t from, std::size_t to);

  const ThreadWorldOptions options_;
  Mutex mutex_;
  CondVar changed_;
  std::int64_t change_count_ GUARDED_BY(mutex_) = 0;
  std::vector<WorldGroup> groups_ GUARDED_BY(mutex_);
  std::vector<std::deque<JoinNote>> notes_ GUARDED_BY(mutex_);  // by rank
  Status outcome_ GUARDED_BY(mutex_);
};

bool sends_to_others(const Exchange& exchange, std::size_t place) {
  return exchange.shape != Shape::broadcast || exchange.root_place == static_cast<int>(place);
}

std::size_t place_of(const WorldGroup& group, int rank) {
  return static_cast<std::size_t>(std::find(group.ranks.begin(), group.ranks.end(), rank) -
                                  group.ranks.begin());
}

// The first of the ranks to come makes it; all bring the same list (Communicator::make_group).
void World::add_group(GroupId id, std::span<const int> ranks) {
  MutexLock lock(mutex_);
  if (static_cast<std::size_t>(index_of(id)) < groups_.size()) return;
  WorldGroup& group = groups_.emplace_back();
  group.ranks.assign(ranks.begin(), ranks.end());
  group.posted.resize(ranks.size());
  for (Posted& posted : group.posted) posted.delays.resize(ranks.size());
}

void World::post(GroupId id, int rank, const Exchange& exchange, std::int64_t message_number) {
  MutexLock lock(mutex_);
  WorldGroup& group = groups_[static_cast<std::size_t>(index_of(id))];
  const std::size_t own = place_of(group, rank);
  Posted& posted = group.posted[own];
  posted.number += 1;
  posted.is_open = true;
  posted.exchange = exchange;
  posted.reader_count = sends_to_others(exchange, own) ? group.ranks.size() - 1 : 0;
  posted.untaken_count = 0;
  const std::uint64_t key = split_mix(options_.seed, static_cast<std::uint64_t>(rank));
  for (std::size_t from = 0; from < group.ranks.size(); ++from) {
    const bool is_awaited = from != own && sends_to_others(exchange, from);
    const std::uint64_t random = split_mix(key, static_cast<std::uint64_t>(message_number) + from);
    posted.delays[from] =
        is_awaited ? static_cast<std::int64_t>(
                         random % static_cast<std::uint64_t>(options_.delay_polls_max + 1))
                   : kTaken;
    posted.untaken_count += is_awaited ? 1 : 0;
  }
  note_change();
}

void World::note_change() {
  change_count_ += 1;
  changed_.notify_all();
}

Status World::poll(int rank, std::vector<Ended>& ended, Seen& seen) {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(outcome_);
  seen.has_delay = false;
  for (std::size_t index = 0; index < groups_.size(); ++index) {
    WorldGroup& group = groups_[index];
    const std::size_t own = place_of(group, rank);
    if (own == group.ranks.size() || !group.posted[own].is_open) continue;
    Posted& posted = group.posted[own];
    if (take_parts(group, own, seen)) note_change();
    if (posted.untaken_count > 0 || posted.reader_count > 0) continue;
    posted.is_open = false;
    ended.push_back({GroupId{static_cast<std::int32_t>(index)}, ok_status()});
  }
  seen.change_count = change_count_;
  return ok_status();
}

// Whether anything was taken.
bool World::take_parts(WorldGroup& group, std::size_t place, Seen& seen) {
  Posted& posted = group.posted[place];
  bool took = false;
  for (std::size_t from = 0; from < group.ranks.size(); ++from) {
    Posted& sender = group.posted[from];
    if (posted.delays[from] == kTaken) continue;
    if (!sender.is_open || sender.number != posted.number) continue;
    if (posted.delays[from]-- > 0) {
      seen.has_delay = true;
      continue;
    }
    take_part(group, from, place);
    sender.reader_count -= 1;
    posted.untaken_count -= 1;
    posted.delays[from] = kTaken;
    took = true;
  }
  return took;
}

void World::take_part(const WorldGroup& group, std::size_t from, std::size_t to) {
  const Exchange& sent = group.posted[from].exchange;
  const Exchange& received = group.posted[to].exchange;
  const bool is_all_to_all = sent.shape == Shape::all_to_all;
  const std::size_t place = sent.shape == Shape::broadcast ? 0 : from;
  const Part source = is_all_to_all ? sent.send_parts[to] : sent.receive_parts[place];
  const Part target = received.receive_parts[place];
  // Without checks of headers ranks may differ here; this is no wire that could carry it.
  CHECK_EQ(source.count * sent.element_bytes, target.count * received.element_bytes);
  const std::byte* memory = is_all_to_all ? sent.send : sent.receive;
  if (source.count == 0) return;
  std::memcpy(received.receive + target.first * received.element_bytes,
              memory + source.first * sent.element_bytes,
              static_cast<std::size_t>(source.count * sent.element_bytes));
}

// A call that is handed in meanwhile does not end it, so it is short.
void World::wait(const Seen& seen) {
  MutexLock lock(mutex_);
  if (seen.has_delay || seen.change_count != change_count_) return;
  changed_.wait_for(mutex_, kWait);
}

void World::send_note(int rank, const JoinNote& note) {
  MutexLock lock(mutex_);
  notes_[static_cast<std::size_t>(rank)].push_back(note);
  note_change();
}

std::optional<JoinNote> World::take_note(int rank) {
  MutexLock lock(mutex_);
  std::deque<JoinNote>& notes = notes_[static_cast<std::size_t>(rank)];
  if (notes.empty()) return std::nullopt;
  const JoinNote note = notes.front();
  notes.pop_front();
  return note;
}

void World::abandon(int rank) {
  MutexLock lock(mutex_);
  for (WorldGroup& group : groups_) {
    const std::size_t own = place_of(group, rank);
    if (own < group.ranks.size()) group.posted[own].is_open = false;
  }
}

void World::end_all(const Error& why) {
  MutexLock lock(mutex_);
  if (outcome_.ok()) outcome_ = Error(ErrorCode::cancelled, why.message());
  note_change();
}

int ThreadTransport::rank_count() const { return world_->options().rank_count; }
int ThreadTransport::node_of(int rank) const { return rank / world_->options().ranks_per_node; }

bool ThreadTransport::is_lost() const {
  const ThreadWorldOptions& options = world_->options();
  return rank_ == options.lost_rank && exchange_count_ > options.lost_exchange;
}

Status ThreadTransport::add_group(GroupId group, std::span<const int> ranks) {
  world_->add_group(group, ranks);
  return ok_status();
}

Status ThreadTransport::begin(GroupId group, const Exchange& exchange) {
  const ThreadWorldOptions& options = world_->options();
  const std::int64_t number = exchange_count_++;
  if (is_lost()) return ok_status();
  if (rank_ == options.failing_rank && number == options.failing_exchange) {
    return make_error(ErrorCode::io, "the transfer failed, as planned for exchange {}", number);
  }
  world_->post(group, rank_, exchange, message_count_);
  message_count_ += rank_count();
  return ok_status();
}

Status ThreadTransport::poll(std::vector<Ended>& ended) {
  return is_lost() ? ok_status() : world_->poll(rank_, ended, seen_);
}

void ThreadTransport::wait() { world_->wait(seen_); }

void ThreadTransport::send_note(int rank, const JoinNote& note) {
  if (!is_lost()) world_->send_note(rank, note);
}

std::optional<JoinNote> ThreadTransport::take_note() {
  return is_lost() ? std::nullopt : world_->take_note(rank_);
}

void ThreadTransport::abandon() { world_->abandon(rank_); }
void ThreadTransport::end_all(const Error& why) { world_->end_all(why); }

}  // namespace

std::shared_ptr<ThreadWorld> ThreadWorld::make(const ThreadWorldOptions& options) {
  CHECK_GE(options.rank_count, 1);
  return std::make_shared<World>(options);
}

}  // namespace sluice::collective
