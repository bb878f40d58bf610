// Who has not joined a call that takes long. While calls end in time no note is sent. A rank that
// has waited half its patience asks the others of the group; who has asked for that call as well
// answers, at once or as soon as it does. Who has not answered by the end of the patience is named:
// a stopped process answers nothing, and neither does one that is elsewhere or has failed.

#include "base/clock.h"
#include "core/collective/detail/progress_engine.h"

namespace sluice::collective::detail {

void ProgressEngine::take_notes() {
  while (const std::optional<JoinNote> note = transport_.take_note()) {
    if (!outcome_.ok()) continue;
    if (note->group < 0 || static_cast<std::size_t>(note->group) >= groups_.size()) continue;
    Group& group = groups_[static_cast<std::size_t>(note->group)];
    for (std::size_t place = 0; place < group.ranks.size(); ++place) {
      if (group.ranks[place] != note->from || !group.is_member) continue;
      if (note->what == JoinNote::What::have_you_joined) {
        group.asked_call_number[place] = note->call_number;
        if (group.accepted_count >= note->call_number) answer(group, place);
      } else if (group.active != nullptr && group.active->number == note->call_number) {
        group.has_joined[place] = 1;
      }
    }
  }
}

void ProgressEngine::answer(Group& group, std::size_t place) {
  transport_.send_note(group.ranks[place], {JoinNote::What::i_have_joined, index_of(group.id),
                                            group.asked_call_number[place], transport_.rank()});
  group.asked_call_number[place] = 0;
}

// The second half of the patience runs from the question, not from the start: a process that was
// itself stopped asks before it blames.
void ProgressEngine::watch_patience(Group& group, TimeNs now_ns) {
  const TimeNs half_ns = options_.patience_ns / 2;
  if (group.asked_ns < 0) {
    if (now_ns - group.exchange_start_ns < half_ns) return;
    group.asked_ns = now_ns;
    for (std::size_t place = 0; place < group.ranks.size(); ++place) {
      group.has_joined[place] = place == group.place;
      if (place == group.place) continue;
      transport_.send_note(group.ranks[place], {JoinNote::What::have_you_joined, index_of(group.id),
                                                group.active->number, transport_.rank()});
    }
  } else if (now_ns - group.asked_ns >= options_.patience_ns - half_ns) {
    fail(overdue_error(group, now_ns - group.exchange_start_ns));
  }
}

Error ProgressEngine::overdue_error(const Group& group, TimeNs waited_ns) const {
  std::vector<int> missing;
  for (std::size_t place = 0; place < group.ranks.size(); ++place) {
    if (group.has_joined[place] == 0) missing.push_back(group.ranks[place]);
  }
  const std::string why =
      missing.empty() ? "all ranks have joined it, and its bytes do not move: look at the network, "
                        "and for a rank that has failed since"
                      : fmt::format(
                            "no word of having joined it from {}: stopped, dead, failed, or "
                            "busy with something else",
                            ranks_text(missing));
  const Error error = make_error(ErrorCode::io,
                                 "it has not ended for {}; {}. The last committed step is intact: "
                                 "end all ranks and go on with --resume",
                                 format_duration(waited_ns), why);
  return with_call(group, error);
}

}  // namespace sluice::collective::detail
