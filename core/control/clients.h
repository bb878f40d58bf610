#pragma once
// The connections of a control socket: who is let in, what each says and is told, how much of that
// may wait. It knows lines, not what they mean.
//
// Thread contract: wake() from any thread, the rest from one.

#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "core/control/socket_address.h"

namespace sluice::control {

inline constexpr std::size_t kClientsMax = 256;

class Clients {
 public:
  struct Answer {
    std::string line;
    bool subscribes = false;  // to events, from now on
  };
  using AnswerLine = std::function<Answer(std::string_view line)>;

  // `wake`: an eventfd. Who is let in is greeted with `greeting_line`.
  Clients(Descriptor listener, Descriptor wake, std::string greeting_line);

  // Ends the wait under way, or the next one.
  void wake() const;
  // Until somebody says something, or comes, or wake(): answers what can be answered.
  void wait(const AnswerLine& answer);
  // To those that subscribe. One that does not read is let go: events are not kept without end.
  void spread(const std::vector<std::string>& events);
  // Those that were let go, or went.
  void forget_gone();
  bool has_subscribers() const;
  // The last line to all; they have a moment to read it.
  void say_goodbye(const std::string& line);

 private:
  struct Client {
    Descriptor fd;
    std::string in;   // what no newline has ended yet
    std::string out;  // what the client has not read yet
    bool subscribes = false;
    bool is_over = false;  // let go at the end of the turn; what could be written has been
  };

  void accept_all();
  void turn_away();
  static void read(Client& client);
  static void answer_lines(Client& client, const AnswerLine& answer);
  static void write(Client& client);

  Descriptor listener_;
  Descriptor wake_;
  Descriptor spare_;  // for turn_away()
  const std::string greeting_line_;
  std::list<Client> clients_;
};

}  // namespace sluice::control
