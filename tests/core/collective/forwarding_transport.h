#pragma once
// A transport that hands everything on to another: for those that change one thing of it.
//
// Thread contract: that of Transport.

#include <memory>
#include <vector>

#include "core/collective/transport.h"

namespace sluice::collective {

class ForwardingTransport : public Transport {
 public:
  explicit ForwardingTransport(std::unique_ptr<Transport> next) : next_(std::move(next)) {}
  int rank() const override { return next_->rank(); }
  int rank_count() const override { return next_->rank_count(); }
  int node_of(int rank) const override { return next_->node_of(rank); }
  Status add_group(GroupId id, std::span<const int> ranks) override {
    return next_->add_group(id, ranks);
  }
  Status begin(GroupId id, const Exchange& exchange) override { return next_->begin(id, exchange); }
  Status poll(std::vector<Ended>& ended) override { return next_->poll(ended); }
  void wait() override { next_->wait(); }
  void send_note(int rank, const JoinNote& note) override { next_->send_note(rank, note); }
  std::optional<JoinNote> take_note() override { return next_->take_note(); }
  void abandon() override { next_->abandon(); }
  void end_all(const Error& why) override { next_->end_all(why); }
  Status close() override { return next_->close(); }

 private:
  std::unique_ptr<Transport> next_;
};

}  // namespace sluice::collective
