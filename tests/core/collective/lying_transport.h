#pragma once
// A transport with a mistake in it, which the checks of schedules must find.
//
// Thread contract: that of Transport.

#include <algorithm>
#include <memory>
#include <vector>

#include "forwarding_transport.h"

namespace sluice::collective {

enum class Lie : std::uint8_t {
  none,
  swaps_senders,     // what two others send to be summed lies in each other's place
  ends_at_once,      // an exchange is said to have ended before the last byte is here
  releases_at_once,  // one that only sends is said to have ended before anybody read it
};

class LyingTransport final : public ForwardingTransport {
 public:
  LyingTransport(std::unique_ptr<Transport> honest, Lie lie)
      : ForwardingTransport(std::move(honest)), lie_(lie) {}
  Status add_group(GroupId id, std::span<const int> ranks) override {
    groups_.push_back({{ranks.begin(), ranks.end()}, {}, {}, {}, false});
    return ForwardingTransport::add_group(id, ranks);
  }
  Status begin(GroupId id, const Exchange& exchange) override {
    Group& group = groups_[static_cast<std::size_t>(index_of(id))];
    group.send_parts.assign(exchange.send_parts.begin(), exchange.send_parts.end());
    group.receive_parts.assign(exchange.receive_parts.begin(), exchange.receive_parts.end());
    group.exchange = exchange;
    group.exchange.send_parts = group.send_parts;
    group.exchange.receive_parts = group.receive_parts;
    if (lie_ == Lie::swaps_senders && exchange.shape == Shape::all_to_all) swap_senders(group);
    const bool only_sends = exchange.shape == Shape::broadcast &&
                            group.ranks[static_cast<std::size_t>(exchange.root_place)] == rank();
    group.ends_early = lie_ == Lie::ends_at_once || (lie_ == Lie::releases_at_once && only_sends);
    if (group.ends_early) early_.push_back(id);
    return ForwardingTransport::begin(id, group.exchange);
  }
  Status poll(std::vector<Ended>& ended) override {
    for (const GroupId id : early_) ended.push_back({id, ok_status()});
    early_.clear();
    std::vector<Ended> honest;
    RETURN_IF_ERROR(ForwardingTransport::poll(honest));
    for (const Ended& one : honest) {
      if (!groups_[static_cast<std::size_t>(index_of(one.group))].ends_early) ended.push_back(one);
    }
    return ok_status();
  }

 private:
  struct Group {
    std::vector<int> ranks;
    std::vector<Part> send_parts;
    std::vector<Part> receive_parts;
    Exchange exchange;
    bool ends_early = false;
  };
  // The first two others.
  void swap_senders(Group& group) {
    std::vector<std::size_t> others;
    for (std::size_t place = 0; place < group.ranks.size(); ++place) {
      if (group.ranks[place] != rank()) others.push_back(place);
    }
    if (others.size() < 2) return;
    std::swap(group.receive_parts[others[0]], group.receive_parts[others[1]]);
  }

  const Lie lie_;
  std::vector<Group> groups_;
  std::vector<GroupId> early_;
};

}  // namespace sluice::collective
