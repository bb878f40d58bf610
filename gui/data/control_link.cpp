#include "gui/data/control_link.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <thread>

#include "base/check.h"
#include "base/mutex.h"
#include "core/control/control_client.h"

namespace sluice::gui {
namespace {

using control::ChangeState;
using control::Message;
using control::RequestKind;

struct Order {
  std::uint64_t number = 0;
  control::Request request;
};

SetOutcome outcome_of(ChangeState state) {
  switch (state) {
    case ChangeState::in_force:
      return SetOutcome::in_force;
    case ChangeState::refused:
      return SetOutcome::refused;
    case ChangeState::kept:
      return SetOutcome::kept;
    case ChangeState::reverted:
      return SetOutcome::reverted;
    case ChangeState::superseded:
      return SetOutcome::superseded;
  }
  return SetOutcome::refused;
}

template <typename T>
void keep_newest(std::vector<T>& all) {
  if (all.size() > kHeardMax) all.erase(all.begin());
}

}  // namespace

const control::Knob* ControlState::knob(const std::string& key) const {
  const auto found = std::ranges::find(knobs, key, &control::Knob::key);
  return found == knobs.end() ? nullptr : &*found;
}

const AskedSet* ControlState::asked_set(std::uint64_t number) const {
  const auto found = std::ranges::find(asked, number, &AskedSet::number);
  return found == asked.end() ? nullptr : &*found;
}

// Held by the link and by its thread, whichever lasts longer.
struct ControlLink::Shared {
  Shared(std::string path, ControlOptions link_options)
      : socket_path(std::move(path)),
        options(std::move(link_options)),
        bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    CHECK_GE(bell, 0);
  }
  ~Shared() { ::close(bell); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  void ring() const {
    const std::uint64_t once = 1;
    // It fails only when it has been rung 2^64 times and not heard: then it is ringing.
    [[maybe_unused]] const ssize_t written = ::write(bell, &once, sizeof once);
  }
  void take_in(Order order) {
    const MutexLock lock(mutex);
    orders.push_back(std::move(order));
    ring();
  }
  std::deque<Order> take_orders() {
    const MutexLock lock(mutex);
    return std::exchange(orders, {});
  }
  bool ends() {
    const MutexLock lock(mutex);
    return is_over;
  }

  const std::string socket_path;
  const ControlOptions options;
  const int bell;  // readable: there are orders, or the link is gone
  Published<ControlState> state;
  Mutex mutex;
  std::deque<Order> orders GUARDED_BY(mutex);
  std::uint64_t last_number GUARDED_BY(mutex) = 0;
  bool is_over GUARDED_BY(mutex) = false;
};

// The thread's own part.
class ControlLink::Worker {
 public:
  explicit Worker(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  void run() {
    while (!shared_->ends()) {
      if (client_ == nullptr) connect();
      for (const Order& order : shared_->take_orders()) carry_out(order);
      if (client_ != nullptr) hear();
      publish();
      wait();
    }
  }

 private:
  std::chrono::milliseconds answer_time() const {
    return std::chrono::milliseconds(shared_->options.answer_ms);
  }

  void connect() {
    auto client = control::ControlClient::connect(shared_->socket_path, answer_time());
    if (!client.ok()) {
      // After a goodbye, that nobody listens any more is no news.
      const bool is_gone = client.error().code() == ErrorCode::not_found;
      if (!is_gone || !has_ended_) say_why_not(client.error().message());
      return;
    }
    client_ = *std::move(client);
    state_.is_stopping = false;
    has_ended_ = false;
    Status status = ask({.kind = RequestKind::subscribe}).status;
    if (status.ok()) status = refresh_knobs();
    if (!status.ok()) return lose_line(status.error().message());
    state_.is_connected = true;
    state_.why_not.clear();
    has_news_ = true;
  }

  struct Answer {
    Status status;
    Message message;
    bool is_refusal = false;  // the connection is as good as before
  };
  Answer ask(control::Request request) {
    Result<Message> message = client_->ask(std::move(request), answer_time());
    if (message.ok()) return {ok_status(), *std::move(message), false};
    // A refusal by the run itself comes as a configuration error; all other errors are of the line.
    return {message.error(), {}, message.error().code() == ErrorCode::config};
  }

  Status refresh_knobs() {
    Answer answer = ask({.kind = RequestKind::knobs});
    RETURN_IF_ERROR(answer.status);
    state_.knobs = std::move(answer.message.knobs);
    has_news_ = true;
    return ok_status();
  }

  void carry_out(const Order& order) {
    has_news_ = true;
    if (order.request.kind == RequestKind::stop) return carry_out_stop(order);
    AskedSet asked{.number = order.number,
                   .settings = order.request.set.settings,
                   .revert_if = order.request.set.revert_if,
                   .message = {}};
    if (client_ == nullptr) {
      asked.outcome = SetOutcome::refused;
      asked.message = state_.why_not;
      return note(std::move(asked));
    }
    const Answer answer = ask(order.request);
    asked.outcome = answer.status.ok() ? SetOutcome::waiting : SetOutcome::refused;
    if (!answer.status.ok()) asked.message = answer.status.error().message();
    asked.change = answer.message.change;
    asked.from_step = answer.message.from_step;
    note(std::move(asked));
    if (answer.status.ok() || answer.is_refusal) {
      if (const Status refreshed = refresh_knobs(); refreshed.ok()) return;
    }
    lose_line(answer.status.ok() ? "the run no longer answers" : answer.status.error().message());
  }

  void carry_out_stop(const Order& order) {
    if (client_ == nullptr) {
      state_.stop_refusal = state_.why_not;
      return;
    }
    const Answer answer = ask(order.request);
    state_.is_stopping = answer.status.ok();
    state_.stop_refusal = answer.status.ok() ? "" : answer.status.error().message();
  }

  void note(AskedSet asked) {
    state_.asked.push_back(std::move(asked));
    keep_newest(state_.asked);
  }

  // Whatever the run has said since.
  void hear() {
    if (!hear_events()) return;
    if (const Status status = refresh_knobs(); !status.ok()) lose_line(status.error().message());
  }

  // Whether knobs have changed.
  bool hear_events() {
    bool has_changed_knobs = false;
    while (client_ != nullptr) {
      Result<std::optional<Message>> event = client_->next_event(std::chrono::milliseconds(0));
      if (!event.ok()) return lose(event.error().message()), false;
      if (!event->has_value()) break;
      const Message& message = **event;
      has_news_ = true;
      if (message.status) state_.status = *message.status;
      if (message.change_event) has_changed_knobs = true, on_change(*message.change_event);
      if (message.is_end) {
        has_ended_ = true;
        lose("the run has ended; its knobs can no longer be turned");
      }
    }
    return has_changed_knobs && client_ != nullptr;
  }

  void on_change(const control::ChangeEvent& event) {
    state_.changes.push_back(event);
    keep_newest(state_.changes);
    const auto asked = std::ranges::find(state_.asked, event.change, &AskedSet::change);
    if (asked == state_.asked.end()) return;
    asked->outcome = outcome_of(event.state);
    asked->from_step = event.state == ChangeState::in_force ? event.step : asked->from_step;
    asked->message = event.message;
  }

  void say_why_not(const std::string& why) {
    has_news_ = has_news_ || state_.is_connected || state_.why_not != why;
    state_.is_connected = false;
    state_.why_not = why;
  }

  // The line broke while an answer was awaited. What the run said before that still counts: it may
  // have been its goodbye.
  void lose_line(const std::string& why) {
    hear_events();
    if (client_ != nullptr) lose(why);
  }

  // Requests that waited will not happen any more.
  void lose(const std::string& why) {
    client_ = nullptr;
    say_why_not(why);
    for (AskedSet& asked : state_.asked) {
      if (asked.outcome != SetOutcome::waiting) continue;
      asked.outcome = SetOutcome::refused;
      asked.message = "the run ended before it took this over";
    }
  }

  void publish() {
    if (!has_news_) return;
    has_news_ = false;
    const MutexLock lock(shared_->mutex);
    if (shared_->is_over) return;  // nobody is left to be woken
    shared_->state.publish(std::make_shared<const ControlState>(state_));
    shared_->options.wake();
  }

  void wait() {
    std::array<pollfd, 2> polled = {{{shared_->bell, POLLIN, 0}, {-1, POLLIN, 0}}};
    if (client_ != nullptr) polled[1].fd = client_->descriptor();
    const int timeout_ms = client_ != nullptr ? -1 : shared_->options.retry_ms;
    if (::poll(polled.data(), polled.size(), timeout_ms) <= 0) return;
    std::uint64_t count = 0;
    if ((polled[0].revents & POLLIN) != 0) {
      [[maybe_unused]] const ssize_t read = ::read(shared_->bell, &count, sizeof count);
    }
  }

  std::shared_ptr<Shared> shared_;
  std::unique_ptr<control::ControlClient> client_;
  ControlState state_;
  bool has_news_ = false;
  bool has_ended_ = false;  // it said goodbye
};

ControlLink::ControlLink(const std::string& socket_path, ControlOptions options)
    : shared_(std::make_shared<Shared>(socket_path, std::move(options))) {
  std::thread([shared = shared_] { Worker(shared).run(); }).detach();
}

ControlLink::~ControlLink() {
  const MutexLock lock(shared_->mutex);
  shared_->is_over = true;
  shared_->ring();
}

std::shared_ptr<const ControlState> ControlLink::state() const { return shared_->state.latest(); }

std::uint64_t ControlLink::set(control::SetRequest request) {
  std::uint64_t number = 0;
  {
    const MutexLock lock(shared_->mutex);
    number = ++shared_->last_number;
  }
  shared_->take_in({number, {.kind = RequestKind::set, .set = std::move(request)}});
  return number;
}

void ControlLink::stop() { shared_->take_in({0, {.kind = RequestKind::stop, .who = kWho}}); }

}  // namespace sluice::gui
